// receive_filter: the program in the kernel against a model, and the causes of drops.
#include "net/receive_filter.h"

#include <random>

#include "loopback_relay.h"
#include "net/shred_filter.h"

using namespace shredway;
using namespace shredway::test;

// The network layer does not include shred/wire.h.
static_assert(filter::kShredBytesMin == kDataShredBytes);
static_assert(filter::kPacketBytesMax == kPacketBytesMax);
static_assert(filter::kVariantAt == offset::kVariant && filter::kSlotAt == offset::kSlot);
static_assert(filter::kFecSetIndexAt == offset::kFecSetIndex);

namespace {

struct Filtered {
  UdpSocket socket;
  Endpoint at;
  ReceiveBatch batch;

  explicit Filtered(const char* address = "127.0.0.98", uint32_t buffer_bytes = 8u << 20) {
    ReceiveSocketOptions options{ipv4_endpoint(address, 0), buffer_bytes, false};
    options.filter = true;
    SocketResult opened = open_receive_socket(options);
    CHECK_EQ(opened.error, std::string());
    socket = std::move(opened.socket);
    at = local_endpoint(socket.fd());
  }
  size_t receive_all() {
    size_t count = 0;
    while (size_t got = batch.receive(socket.fd())) count += got;
    return count;
  }
};

bool passes(const Bytes& packet) {
  const bool is_shred =
      packet.size() >= 1203 && packet.size() <= 1232 && packet[64] >= 0x40 && packet[64] <= 0xbf;
  const bool is_trace = packet.size() >= 8 && packet.size() <= 116 && packet[0] == 0x0a;
  const bool is_challenge = packet.size() >= 24 && packet.size() <= 64 &&
                            std::equal(packet.begin(), packet.begin() + 8, "SWPROOF1");
  return is_shred || is_trace || is_challenge;
}

}  // namespace

TEST(receive_filter_passes_what_the_model_passes) {
  Filtered filtered;
  const Peer sender("127.0.0.97");
  const auto expect = [&](const Bytes& packet) {
    sender.send(filtered.at, packet);  // on loopback the filter has run when this returns
    const size_t got = filtered.receive_all();
    if (got != passes(packet))
      CHECK_EQ("length " + std::to_string(packet.size()) + " passes", std::string("as the model"));
  };
  for (size_t length = 0; length <= 1300; length++) {
    expect(Bytes(length, 0x96));
    expect(Bytes(length, 0x0a));
    Bytes challenge = {'S', 'W', 'P', 'R', 'O', 'O', 'F', '1'};
    challenge.resize(length, 1);
    expect(challenge);
  }
  for (int byte = 0; byte < 256; byte++)
    for (const size_t length : {1202u, 1203u, 1228u, 1232u, 1233u}) {
      Bytes packet(length, 0);
      packet[64] = static_cast<uint8_t>(byte);
      expect(packet);
    }
  for (size_t at = 0; at < 8; at++) {
    Bytes challenge = {'S', 'W', 'P', 'R', 'O', 'O', 'F', '1'};
    challenge.resize(40, 1);
    challenge[at] ^= 0x20;
    expect(challenge);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2000; i++) {
    Bytes packet(random() % 2000);
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random());
    expect(packet);
  }
}

TEST(receive_filter_drops_are_counted_by_cause) {
  Filtered filtered("127.0.0.98", 64u << 10);
  const Peer sender("127.0.0.97");
  ReceiveDropCounter counter({filtered.socket.fd()}, {}, true);
  for (int i = 0; i < 500; i++) sender.send(filtered.at, Bytes(132, 4));
  ReceiveDrops drops = counter.update();
  // Full buffers of other programs may be counted as this socket's, but no drop is counted twice.
  CHECK_EQ(drops.filtered + drops.buffer_full, 500u);
  CHECK(drops.filtered > 0u);
  const Bytes shred = make_slot({.slot = 5}).packets[0];
  for (int i = 0; i < 2000; i++) sender.send(filtered.at, shred);  // more than the buffer holds
  const size_t received = filtered.receive_all();
  CHECK(received < 2000);
  const ReceiveDrops later = counter.update();
  CHECK_EQ(later.buffer_full - drops.buffer_full, 2000 - received);
  CHECK_EQ(later.filtered, drops.filtered);
}

TEST(receive_filter_without_the_filter_every_drop_is_a_full_buffer) {
  SocketResult opened = open_receive_socket({ipv4_endpoint("127.0.0.98", 0), 64u << 10, false});
  const Peer sender("127.0.0.97");
  ReceiveDropCounter counter({opened.socket.fd()}, {}, false);
  const Endpoint to = local_endpoint(opened.socket.fd());
  for (int i = 0; i < 2000; i++) sender.send(to, Bytes(1203, 4));
  CHECK(counter.update().buffer_full > 0);
  CHECK_EQ(counter.update().filtered, 0u);
}

TEST(receive_filter_lets_a_relay_count_noise_without_receiving_it) {
  LoopbackRelay relayed;
  for (int i = 0; i < 1000; i++) relayed.stranger.send(relayed.in(), Bytes(132, 4));
  const auto slot = make_slot({.slot = kSlot});
  for (const Bytes& packet : slot.packets) relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(64).received, 64u);
  const SnapshotLayout layout = relayed.relay->layout(2, 2);
  std::vector<uint64_t> words(layout.words);
  uint64_t dropped = 0;
  for (int tries = 0; tries < 3000 && dropped < 1000; tries++) {  // counted once a second
    relayed.relay->snapshot(layout, words.data());
    dropped = words[size_t(WorkerCounter::filtered)] + words[size_t(WorkerCounter::receive_drops)];
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK_EQ(dropped, 1000u);
}
