// How many first packets the kernel lets through in a flood, and which ones.
#include "quic/flood_filter.h"

#include <sys/socket.h>

#include <utility>

#include "check.h"
#include "net/udp_socket.h"
#include "quic/first_packet_socket.h"
#include "support.h"

namespace shredway::test {
namespace {

constexpr uint64_t kPeriod_ns = FloodShare::kPeriod_ns;

// Reads the share of what arrives, as the socket does.
struct FloodLab {
  FloodShare share;
  uint64_t now_ns = 1'000'000'000'000;
  uint64_t read = 0;

  FloodLab() { share.adjust(0, now_ns); }
  bool period(uint64_t arriving) {
    read += arriving * share.parts() / FloodShare::kAll;
    now_ns += kPeriod_ns;
    return share.adjust(read, now_ns);
  }
  // As a number in [0, 1].
  double passed() const {
    return static_cast<double>(share.parts()) / static_cast<double>(FloodShare::kAll);
  }
};

TEST(quic_flood_share_is_all_without_a_flood) {
  FloodLab lab;
  for (const uint64_t arriving :
       {uint64_t{0}, uint64_t{10}, FloodShare::kWanted, 2 * FloodShare::kWanted}) {
    CHECK(!lab.period(arriving));
    CHECK(lab.share.is_all());
  }
}

TEST(quic_flood_share_keeps_the_number_of_read_packets_near_the_wanted_one) {
  FloodLab lab;
  for (const uint64_t arriving : {500u, 2'000u, 20'000u, 1'400u, 10'000u}) {
    lab.period(arriving);
    const uint64_t before = lab.read;
    lab.period(arriving);
    const double share = static_cast<double>(lab.read - before) / FloodShare::kWanted;
    CHECK(share > 0.8 && share < 1.25);
  }
}

TEST(quic_flood_share_is_all_again_after_a_flood) {
  FloodLab lab;
  lab.period(2'000);
  CHECK(!lab.share.is_all());
  // Fewer than twice the wanted number do not begin a flood, and do not end one.
  lab.period(FloodShare::kWanted * 3 / 2);
  CHECK(!lab.share.is_all());
  CHECK(lab.period(0));
  CHECK(lab.share.is_all());
}

TEST(quic_flood_share_does_not_change_within_a_period) {
  FloodLab lab;
  CHECK(!lab.share.adjust(1'000'000, lab.now_ns + kPeriod_ns - 1));
  CHECK(lab.share.adjust(1'000'000, lab.now_ns + kPeriod_ns));
  CHECK(lab.passed() >= 0.0009);
}

TEST(quic_flood_share_counts_a_long_pause_as_many_periods) {
  FloodLab lab;
  lab.now_ns += 9 * kPeriod_ns;
  CHECK(!lab.period(10 * FloodShare::kWanted));
  CHECK(lab.share.is_all());
}

struct FilterLab {
  UdpSocket to = open_bound_socket(address()).socket;
  UdpSocket from = open_bound_socket(address()).socket;

  static Endpoint address() {
    return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, 0};
  }
  // Loopback delivers within the call that sends.
  bool passes(const Bytes& packet) {
    sockaddr_storage to_address;
    const socklen_t bytes = to_sockaddr(local_endpoint(to.fd()), to_address);
    CHECK(sendto(from.fd(), packet.data(), packet.size(), 0,
                 reinterpret_cast<const sockaddr*>(&to_address), bytes) >= 0);
    uint8_t read[2048];
    return recv(to.fd(), read, sizeof read, MSG_DONTWAIT) >= 0;
  }
};

// Ids of 8 and 5 bytes.
Bytes first_packet(uint8_t first, uint8_t version, uint8_t token_bytes) {
  Bytes packet = {first, 0, 0, 0, version, 8, 1, 2, 3, 4,          5,
                  6,     7, 8, 5, 1,       2, 3, 4, 5, token_bytes};
  packet.resize(1200);
  return packet;
}

TEST(quic_flood_filter_drops_only_first_packets_without_a_token) {
  FilterLab lab;
  CHECK(lab.passes(first_packet(0xc3, 1, 0)));
  CHECK(attach_flood_filter(lab.to.fd(), 0));
  CHECK(!lab.passes(first_packet(0xc3, 1, 0)));
  CHECK(!lab.passes(first_packet(0xcf, 1, 0)));
  CHECK(lab.passes(first_packet(0xc3, 1, 60)));
  CHECK(lab.passes(first_packet(0xe3, 1, 0)));  // Handshake
  CHECK(lab.passes(first_packet(0xd3, 1, 0)));  // 0-RTT
  CHECK(lab.passes(first_packet(0xc3, 2, 0)));
  const Bytes whole = first_packet(0xc3, 1, 60);
  for (long length = 0; length <= 20; length++)
    CHECK(!lab.passes(Bytes(whole.begin(), whole.begin() + length)));
  detach_filter(lab.to.fd());
  CHECK(lab.passes(first_packet(0xc3, 1, 0)));
  detach_filter(lab.to.fd());
}

TEST(quic_flood_filter_lets_its_share_through) {
  FilterLab lab;
  constexpr int kPackets = 20'000;
  for (const double share : {0.02, 0.25, 0.9}) {
    CHECK(attach_flood_filter(
        lab.to.fd(), static_cast<uint64_t>(share * static_cast<double>(FloodShare::kAll))));
    int passed = 0;
    for (int i = 0; i < kPackets; i++)
      if (lab.passes(first_packet(0xc3, 1, 0))) passed++;
    const double part = static_cast<double>(passed) / kPackets;
    CHECK(part > share - 0.03 && part < share + 0.03);
  }
  CHECK(attach_flood_filter(lab.to.fd(), FloodShare::kAll));
  for (int i = 0; i < 1000; i++) CHECK(lab.passes(first_packet(0xc3, 1, 0)));
}

TEST(quic_flood_filter_does_not_outlive_its_process) {
  FilterLab lab;
  CHECK(attach_flood_filter(lab.to.fd(), 0));
  const Endpoint port = local_endpoint(lab.to.fd());
  FirstPacketSocket socket(std::move(lab.to), RetryKey{7}, ConnectionIds(ConnectionIdKey{3}));
  sockaddr_storage to_address;
  const socklen_t bytes = to_sockaddr(port, to_address);
  const Bytes packet = first_packet(0xc3, 1, 0);
  CHECK(sendto(lab.from.fd(), packet.data(), packet.size(), 0,
               reinterpret_cast<const sockaddr*>(&to_address), bytes) > 0);
  (void)socket.handle_batch();
  CHECK_EQ(socket.counts().unproven, 1u);
}

}  // namespace
}  // namespace shredway::test
