#include "net/steering.h"

#include <sys/socket.h>

#include <algorithm>
#include <set>

#include "net_support.h"

namespace shredway::test {
namespace {

constexpr uint64_t kFirstSlot = 385'970'984;  // a testnet slot; neighbours differ only in low bits
constexpr uint32_t kSlots = 200;

// A packet that contains only the fields that the program reads.
Bytes packet_of(uint64_t slot, uint32_t fec_set_index, size_t length) {
  Bytes packet(std::max<size_t>(length, 83), 0x5a);
  for (size_t i = 0; i < 8; i++) packet[65 + i] = static_cast<uint8_t>(slot >> 8 * i);
  for (size_t i = 0; i < 4; i++) packet[79 + i] = static_cast<uint8_t>(fec_set_index >> 8 * i);
  packet.resize(length);
  return packet;
}

TEST(steering_spreads_within_ten_percent) {
  for (const uint64_t first : {kFirstSlot, uint64_t{0}, uint64_t{0xfffffff0}}) {
    for (uint32_t workers = 1; workers <= 8; workers++) {
      for (const uint32_t sets : {1u, 5u, 40u}) {
        std::vector<uint32_t> shares(workers);
        // Few sets per slot need more slots for the same sample.
        const uint32_t slots = kSlots * 40 / sets;
        for (uint64_t slot = first; slot < first + slots; slot++)
          for (uint32_t set = 0; set < sets; set++)
            shares[steered_worker(slot, set * 32, workers)]++;
        const double fair = double(slots) * sets / workers;
        for (const uint32_t share : shares) CHECK(share > 0.9 * fair && share < 1.1 * fair);
      }
    }
  }
}

TEST(steering_consecutive_slots_begin_at_different_workers) {
  // A leader has four slots in a row; with equal starts, its first sets would go to one worker.
  for (uint32_t workers = 2; workers <= 8; workers++) {
    std::vector<uint32_t> starts(workers);
    for (uint64_t slot = 0; slot < 4000; slot++)
      starts[steered_worker(kFirstSlot + slot * 4, 0, workers)]++;
    for (const uint32_t share : starts)
      CHECK(share > 0.85 * 4000 / workers && share < 1.15 * 4000 / workers);
  }
}

TEST(steering_gives_every_worker_sets_of_each_slot) {
  for (uint32_t workers = 1; workers <= 8; workers++) {
    for (uint64_t slot = kFirstSlot; slot < kFirstSlot + kSlots; slot++) {
      std::vector<uint32_t> shares(workers);
      for (uint32_t set = 0; set < 32; set++) shares[steered_worker(slot, set * 32, workers)]++;
      const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
      CHECK(*least >= 32 / workers);
      CHECK(*most <= 32 / workers + 1);
    }
  }
}

struct Group {
  std::vector<UdpSocket> sockets;
  Endpoint address;
};

Group steered_group(bool is_ipv4, uint32_t workers) {
  Group group;
  uint16_t port = 0;
  for (uint32_t i = 0; i < workers; i++) {
    group.sockets.push_back(receiver(is_ipv4, true, port));
    port = local_endpoint(group.sockets[0].fd()).port;
  }
  group.address = loopback(is_ipv4, port);
  CHECK_EQ(attach_steering(group.sockets[0].fd(), workers), std::string());
  return group;
}

void send_to(int fd, const Bytes& bytes, const Address& address) {
  const ssize_t sent = sendto(fd, bytes.data(), bytes.size(), 0, address.get(), address.bytes);
  CHECK_EQ(sent, static_cast<ssize_t>(bytes.size()));
}

TEST(steering_sends_sets_to_the_predicted_socket) {
  Random random{2};
  for (const bool is_ipv4 : families()) {
    for (const uint32_t workers : {1u, 2u, 3u, 8u}) {
      const Group group = steered_group(is_ipv4, workers);
      const Address address(group.address);
      for (uint32_t round = 0; round < 60; round++) {
        // Realistic sets, and extreme numbers that the program must treat like the C++ code.
        const bool hostile = round % 3 == 2;
        const uint64_t slot = hostile ? random.next() : kFirstSlot + round / 8;
        const auto index = static_cast<uint32_t>(hostile ? random.next() : round * 32);
        const UdpSocket from = sender(is_ipv4);  // another source port per set
        for (uint32_t shred = 0; shred < 64; shred++)
          send_to(from.fd(), packet_of(slot, index, shred < 32 ? 1203 : 1228), address);
        const uint32_t predicted = steered_worker(slot, index, workers);
        const size_t arrived = arrivals(group.sockets[predicted].fd(), 64).size();
        CHECK_EQ(arrived, 64u);
        if (arrived != 64) return;  // waiting for the others would be in vain, too
        for (const UdpSocket& socket : group.sockets) CHECK_EQ(arrivals(socket.fd(), 0).size(), 0u);
      }
    }
  }
}

TEST(steering_treats_gso_like_single_packets) {
  const Group group = steered_group(true, 4);
  const Address address(group.address);
  const UdpSocket from = sender(true);
  SendCounts tally;
  SendBatch batch(from.fd(), true, tally);
  for (uint32_t set = 0; set < 16; set++) {
    Bytes packet = packet_of(kFirstSlot, set * 32, 1203);
    std::vector<iovec> payloads(32, iovec{packet.data(), packet.size()});
    batch.add({payloads.data(), 32, 1203}, address.get(), address.bytes, 0);
    batch.flush();
    const uint32_t predicted = steered_worker(kFirstSlot, set * 32, 4);
    CHECK_EQ(arrivals(group.sockets[predicted].fd(), 32).size(), 32u);
  }
}

TEST(steering_sends_short_packets_to_socket_0) {
  for (const bool is_ipv4 : families()) {
    const Group group = steered_group(is_ipv4, 4);
    const Address address(group.address);
    const UdpSocket from = sender(is_ipv4);
    size_t sent = 0;
    for (size_t length = 0; length <= 80; length++, sent++)
      send_to(from.fd(), packet_of(kFirstSlot + length, 32, length), address);
    CHECK_EQ(arrivals(group.sockets[0].fd(), sent).size(), sent);
    for (const UdpSocket& socket : group.sockets) CHECK_EQ(arrivals(socket.fd(), 0).size(), 0u);
  }
}

TEST(steering_reports_errors) {
  const UdpSocket socket = receiver(true, true);
  CHECK(attach_steering(socket.fd(), 0).find("at least one worker") != std::string::npos);
  CHECK(attach_steering(-1, 2).find("SO_ATTACH_REUSEPORT_CBPF") != std::string::npos);
}

}  // namespace
}  // namespace shredway::test
