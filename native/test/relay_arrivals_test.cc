// Arrivals of a measuring relay: every arrival with its source and kernel time, only authentic
// shreds, and a count of records that found the ring full.
#include "relay/arrivals.h"

#include <set>

#include "loopback_relay.h"

using namespace shredway;
using namespace shredway::test;

namespace {

struct MeasuringRelay {
  std::unique_ptr<Relay> relay;
  Peer a{"127.0.0.11"}, b{"127.0.0.12"};

  explicit MeasuringRelay(bool authenticate = true) {
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = LoopbackRelay::default_worker();
    options.worker.tier_count = 1;
    options.worker.authenticate = authenticate;
    options.deshred = false;
    options.arrivals = options.capture_packets = true;
    std::string error;
    relay = Relay::open(options, error);
    CHECK_EQ(error, std::string());
    const Bytes sources = source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.12", 32, 0, 1}});
    CHECK_EQ(relay->publish_sources(sources.data(), sources.size()), std::string());
    const Bytes leaders = leader_table(leader_key(1), kSlot - 100, 10'000);
    CHECK_EQ(relay->publish_leaders(leaders.data(), leaders.size()), std::string());
  }
  // Waits until `received` packets were captured, at most 30 s, then drains the arrivals.
  std::vector<ArrivalRecord> arrivals(size_t received) const {
    std::vector<ArrivalRecord> all;
    for (int i = 0; i < 6000 && relay->arrivals()->packets->waiting() < received; i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ArrivalRecord arrival{};
    while (relay->arrivals()->arrivals.pop(arrival)) all.push_back(arrival);
    return all;
  }
};

}  // namespace

TEST(arrivals_record_source_time_and_identity_of_every_packet) {
  MeasuringRelay measuring;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 2});
  const uint64_t before_ns = clock_ns(CLOCK_REALTIME);
  for (const Bytes& packet : slot.packets)
    measuring.a.send(measuring.relay->addresses()[0], packet);
  for (const Bytes& packet : slot.packets)
    measuring.b.send(measuring.relay->addresses()[0], packet);
  const auto arrivals = measuring.arrivals(256);
  const uint64_t after_ns = clock_ns(CLOCK_REALTIME);
  CHECK_EQ(arrivals.size(), 256u);
  std::set<std::tuple<uint16_t, uint32_t, uint32_t, uint8_t>> identities;
  for (const ArrivalRecord& arrival : arrivals) {
    CHECK_EQ(arrival.slot, kSlot);
    CHECK(arrival.received_ns >= before_ns && arrival.received_ns <= after_ns);
    identities.insert({arrival.source, arrival.fec_set_index, arrival.index, arrival.type});
  }
  CHECK_EQ(identities.size(), 256u);
  CHECK_EQ(measuring.relay->arrivals()->arrivals_lost.load(), 0u);
  CHECK_EQ(measuring.relay->receive_drops().size(), 1u);
}

// A feed must not get credit for altered bytes under a known signature.
TEST(arrivals_exclude_altered_bytes_under_a_known_signature) {
  MeasuringRelay measuring;
  const auto slot = make_slot({.slot = kSlot});
  for (const Bytes& packet : slot.packets)
    measuring.a.send(measuring.relay->addresses()[0], packet);
  measuring.arrivals(64);
  for (Bytes packet : slot.packets) {
    packet[600] ^= 1;
    measuring.b.send(measuring.relay->addresses()[0], packet);
  }
  CHECK_EQ(measuring.arrivals(128).size(), 0u);
}

TEST(arrivals_capture_the_unchanged_datagrams) {
  MeasuringRelay measuring(false);
  const auto slot = make_slot({.slot = kSlot});
  const Bytes none(2000, 7);
  measuring.a.send(measuring.relay->addresses()[0], slot.packets[0]);
  measuring.b.send(measuring.relay->addresses()[0], none);
  measuring.arrivals(2);
  PacketRing& ring = *measuring.relay->arrivals()->packets;
  CHECK_EQ(ring.waiting(), 2u);
  CapturedPacket first = ring.front(0);
  CapturedPacket second = ring.front(1);
  if (first.length == kReceiveBufferBytes) std::swap(first, second);
  CHECK_EQ(first.length, slot.packets[0].size());
  CHECK(std::equal(slot.packets[0].begin(), slot.packets[0].end(), first.bytes.begin()));
  CHECK_EQ(first.sender_port, measuring.a.endpoint().port);
  CHECK_EQ(first.port, measuring.relay->addresses()[0].port);
  CHECK_EQ(second.length, kReceiveBufferBytes);
}

TEST(arrivals_require_one_worker) {
  RelayOptions options;
  options.listen = {ipv4_endpoint("127.0.0.1", 1)};
  options.workers = 2;
  options.arrivals = true;
  std::string error;
  CHECK(Relay::open(options, error) == nullptr);
  CHECK_EQ(error, std::string("expected one worker for measuring feeds, got 2"));
}
