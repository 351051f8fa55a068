// The relay over real sockets: sources send, destinations receive, counters and bytes must agree.
#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "loopback_relay.h"
#include "net/steering.h"
#include "net_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

std::vector<Bytes> cut(std::vector<Bytes> packets) {
  for (Bytes& packet : packets) packet.resize((packet[64] & 0xc0) == 0x40 ? 1228 : 1203);
  return packets;
}

// Opens a relay with two workers on a port that was free just before, with one source.
std::unique_ptr<Relay> open_two_workers(const Endpoint& destination) {
  RelayOptions options;
  {
    const Peer probe;
    options.listen = {probe.endpoint()};
  }
  options.workers = 2;
  options.worker = LoopbackRelay::default_worker();
  auto relay = test::open_relay(options);
  if (!relay) return nullptr;
  publish_to(*relay, &Relay::publish_sources, source_table({{"127.0.0.11", 32, 0, 0}}));
  publish_to(*relay, &Relay::publish_fanout, fanout_table({{destination, 0, 0}}));
  publish_to(*relay, &Relay::publish_leaders, leader_table(leader_key(1), kSlot, 10));
  return relay;
}

}  // namespace

TEST(worker_sends_every_shred_once_to_its_tiers) {
  LoopbackRelay relayed;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 3});
  for (const Bytes& packet : slot.packets) relayed.tier2_source.send(relayed.in(), packet);
  CHECK(sorted(relayed.tier2.receive(192)) == sorted(slot.packets));
  CHECK(relayed.tier1.receive(0).empty());
  for (const Bytes& packet : slot.packets) relayed.tier1_source.send(relayed.in(), packet);
  CHECK(sorted(relayed.tier1.receive(192)) == sorted(slot.packets));
  for (const Bytes& packet : slot.packets) relayed.tier1_source.send(relayed.in(), packet);
  const auto counts = relayed.counts(3 * 192);
  CHECK_EQ(counts.verdicts.at("first"), 192u);
  CHECK_EQ(counts.verdicts.at("new_tier"), 192u);
  CHECK_EQ(counts.verdicts.at("duplicate"), 192u);
  CHECK_EQ(counts.signature_checks, 3u);
  CHECK_EQ(relayed.tier2.receive(192).size(), 192u);
}

TEST(worker_cuts_to_the_shreds_own_length) {
  LoopbackRelay relayed;
  const auto slot = make_slot({.slot = kSlot});
  for (Bytes packet : slot.packets) {
    packet.resize(1232, 0xab);
    relayed.tier1_source.send(relayed.in(), packet);
  }
  CHECK(sorted(relayed.tier1.receive(64)) == sorted(cut(slot.packets)));
  CHECK(sorted(relayed.tier2.receive(64)) == sorted(cut(slot.packets)));
}

TEST(worker_earlier_forged_copies_never_suppress_the_real_shred) {
  LoopbackRelay relayed;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 2});
  std::mt19937 random(5);
  uint64_t forged = 0;
  for (const Bytes& packet : slot.packets) {
    for (const size_t at : {size_t{3}, size_t{500}, packet.size() - 130}) {
      Bytes copy = packet;
      copy[at] = static_cast<uint8_t>(copy[at] + 1 + random() % 255);
      relayed.tier1_source.send(relayed.in(), copy);
      forged++;
    }
    relayed.tier1_source.send(relayed.in(), packet);
  }
  CHECK(sorted(relayed.tier1.receive(128)) == sorted(slot.packets));
  const auto counts = relayed.counts(forged + 128);
  CHECK_EQ(counts.verdicts.at("first"), 128u);
}

TEST(worker_gives_each_fault_its_verdict) {
  LoopbackRelay relayed(LoopbackRelay::default_worker(), false);
  const auto good = make_slot({.slot = kSlot});
  const auto send_all = [&](const Peer& from, const std::vector<Bytes>& packets) {
    for (const Bytes& packet : packets) from.send(relayed.in(), packet);
  };
  send_all(relayed.tier1_source, good.packets);
  relayed.counts(64);
  send_all(relayed.stranger, good.packets);
  send_all(relayed.tier1_source, make_slot({.slot = kSlot + 1, .leader_seed = 2}).packets);
  send_all(relayed.tier1_source, make_slot({.slot = kSlot + 2, .version = 2}).packets);
  send_all(relayed.tier1_source, make_slot({.slot = kSlot + 1000}).packets);
  send_all(relayed.tier1_source, make_slot({.slot = kSlot - 1000}).packets);
  Bytes altered = good.packets[0];
  altered[700] ^= 1;
  altered[offset::kIndex] = 1;  // an identity that was already served, so the bytes are not checked
  relayed.tier1_source.send(relayed.in(), altered);
  relayed.tier1_source.send(relayed.in(), Bytes(132, 4));
  relayed.tier1_source.send(relayed.in(), Bytes(1233, 0x96));
  relayed.tier1_source.send(relayed.in(), Bytes(2000, 0x96));
  relayed.tier1_source.send(relayed.in(), Bytes());
  const auto counts = relayed.counts(64 * 6 + 5);
  const std::map<std::string, uint64_t> expected = {
      {"first", 64},      {"unknown_source", 64}, {"signature_invalid", 64}, {"wrong_version", 64},
      {"slot_ahead", 64}, {"slot_behind", 64},    {"duplicate", 1},          {"oversized", 2},
      {"too_short", 1},   {"unknown_variant", 1}};
  for (const auto& [name, count] : expected)
    CHECK_EQ(
        name + " " + std::to_string(counts.verdicts.count(name) ? counts.verdicts.at(name) : 0),
        name + " " + std::to_string(count));
  CHECK(sorted(relayed.tier1.receive(64)) == sorted(good.packets));
}

// Only multicast groups have heartbeats.
TEST(worker_takes_no_short_packet_of_a_sender_for_a_heartbeat) {
  const LoopbackRelay relayed(LoopbackRelay::default_worker(), false);
  const Bytes heartbeat = {0x44, 0x5a, 0x00, 0x01};
  relayed.tier1_source.send(relayed.in(), heartbeat);
  relayed.stranger.send(relayed.in(), heartbeat);
  const std::map<std::string, uint64_t> expected = {{"too_short", 2}};
  CHECK(relayed.counts(2).verdicts == expected);
}

TEST(worker_limits_the_checked_roots_of_a_fec_set) {
  LoopbackRelay relayed;
  for (uint8_t content = 0; content < 20; content++) {
    const auto slot = make_slot({.slot = kSlot, .first_byte = content});
    // Each root with a different shred, so that no identity has a third root.
    relayed.tier1_source.send(relayed.in(), slot.packets[content]);
    relayed.counts(content + 1u);
  }
  const auto counts = relayed.counts(20);
  CHECK_EQ(counts.signature_checks, 4u);
  CHECK_EQ(counts.verdicts.at("first"), 4u);
  CHECK_EQ(counts.verdicts.at("equivocation_excess"), 16u);
}

TEST(worker_sends_an_equivocation_once) {
  LoopbackRelay relayed;
  for (const uint8_t content : Bytes{1, 2, 3, 1, 2, 3})
    for (const Bytes& packet : make_slot({.slot = kSlot, .first_byte = content}).packets)
      relayed.tier1_source.send(relayed.in(), packet);
  const auto counts = relayed.counts(6 * 64);
  // Code shreds and the used data shreds differ; all 64 leaves have another root.
  CHECK_EQ(counts.verdicts.at("first"), 64u);
  CHECK_EQ(counts.verdicts.at("equivocation"), 64u);
  CHECK_EQ(counts.verdicts.at("duplicate"), 128u);
  CHECK_EQ(counts.verdicts.at("equivocation_excess"), 128u);
  CHECK_EQ(relayed.tier1.receive(128).size(), 128u);
  std::vector<Event> events(1024);
  const size_t count = relayed.relay->drain_events(events.data(), events.size());
  CHECK_EQ(std::count_if(events.begin(), events.begin() + long(count),
                         [](const Event& e) { return e.kind == EventKind::equivocation; }),
           64);
}

TEST(worker_lead_time_is_credited_to_the_first_source) {
  LoopbackRelay relayed;
  const auto slot = make_slot({.slot = kSlot});
  for (const Bytes& packet : slot.packets) relayed.tier1_source.send(relayed.in(), packet);
  relayed.counts(64);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  for (int copies = 0; copies < 2; copies++)  // only the first of the later copies counts
    for (const Bytes& packet : slot.packets) relayed.tier2_source.send(relayed.in(), packet);
  relayed.counts(3 * 64);
  const SnapshotLayout layout = relayed.relay->layout(2, 2);
  std::vector<uint64_t> words(layout.words);
  relayed.relay->snapshot(layout, words.data());
  const auto lead_times = [&](size_t source) {
    const uint64_t* buckets =
        &words[layout.sources_begin + source * layout.kSourceWords + kVerdictCount + 2];
    uint64_t early = 0;
    for (size_t i = 0; i < kHistogramBuckets; i++)
      if (histogram_floor(i) < 15'000'000) early += buckets[i];
    return std::pair(std::accumulate(buckets, buckets + kHistogramBuckets, uint64_t{0}), early);
  };
  CHECK(lead_times(0) == std::pair(uint64_t{64}, uint64_t{0}));
  CHECK(lead_times(1) == std::pair(uint64_t{0}, uint64_t{0}));
}

TEST(worker_sends_the_widest_tier_first_and_rotates_destinations) {
  LoopbackRelay relayed;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<DestinationEntry> entries;
  for (uint32_t i = 0; i < 6; i++) {
    peers.push_back(std::make_unique<Peer>());
    entries.push_back({peers.back()->endpoint(), static_cast<uint8_t>(i < 3 ? 0 : 1), i});
  }
  relayed.publish(&Relay::publish_fanout, fanout_table(entries));
  const auto slot = make_slot({.slot = kSlot});
  for (size_t i = 0; i < 60; i++) {  // one batch per iteration
    relayed.tier1_source.send(relayed.in(), slot.packets[i]);
    relayed.counts(i + 1);
  }
  for (auto& peer : peers) CHECK_EQ(peer->receive(60).size(), 60u);
  uint32_t last[6] = {};
  for (size_t i = 0; i < 60; i++) {
    const auto time = [&](size_t peer) { return peers[peer]->times_ns()[i]; };
    CHECK(std::max({time(3), time(4), time(5)}) <= std::min({time(0), time(1), time(2)}));
    for (const size_t tier : {size_t{0}, size_t{3}})
      for (size_t peer = tier; peer < tier + 3; peer++)
        if (time(peer) == std::max({time(tier), time(tier + 1), time(tier + 2)})) last[peer]++;
  }
  for (const uint32_t times : last) CHECK(times >= 19 && times <= 24);
}

TEST(worker_resigned_copies_of_several_forwarders_count_once) {
  LoopbackRelay relayed;
  const auto slot = make_slot({.slot = kSlot});  // a single set, which is the last one: resigned
  for (uint8_t forwarder = 0; forwarder < 5; forwarder++) {
    for (Bytes packet : slot.packets) {
      std::fill(packet.end() - 64, packet.end(), forwarder);
      relayed.tier1_source.send(relayed.in(), packet);
    }
  }
  const auto counts = relayed.counts(5 * 64);
  CHECK_EQ(counts.verdicts.at("first"), 64u);
  CHECK_EQ(counts.verdicts.at("duplicate"), 256u);
  CHECK(sorted(relayed.tier1.receive(64)) == sorted(slot.packets));
}

namespace {

// Sends a resigned set with a foreign retransmitter signature and returns what arrives.
std::vector<Bytes> relay_resigned(bool keep) {
  WorkerOptions options = LoopbackRelay::default_worker();
  options.keep_retransmitter_signatures = keep;
  LoopbackRelay relayed(options);
  for (Bytes packet : make_slot({.slot = kSlot}).packets) {
    std::fill(packet.end() - 64, packet.end(), 0xee);
    relayed.tier1_source.send(relayed.in(), packet);
  }
  return sorted(relayed.tier2.receive(64));
}

}  // namespace

TEST(worker_clears_retransmitter_signatures) {
  auto packets = make_slot({.slot = kSlot}).packets;
  CHECK(relay_resigned(false) == sorted(packets));
  for (Bytes& packet : packets) std::fill(packet.end() - 64, packet.end(), 0xee);
  CHECK(relay_resigned(true) == sorted(packets));
}

TEST(worker_sends_two_resigned_sets_at_the_end_of_a_slot) {
  LoopbackRelay relayed;
  auto packets = make_slot({.slot = kSlot}).packets;
  for (const Bytes& packet : make_slot({.slot = kSlot, .first_fec_set_index = 32}).packets)
    packets.push_back(packet);
  for (const Bytes& packet : packets)
    CHECK((packet[64] & 0xf0) == 0xb0 || (packet[64] & 0xf0) == 0x70);
  for (const Bytes& packet : packets) relayed.tier1_source.send(relayed.in(), packet);
  CHECK(sorted(relayed.tier1.receive(128)) == sorted(packets));
  CHECK_EQ(relayed.counts(128).verdicts.at("first"), 128u);
}

TEST(worker_without_authentication_one_absurd_slot_has_no_effect) {
  WorkerOptions options = LoopbackRelay::default_worker();
  options.authenticate = false;
  LoopbackRelay relayed(options);
  Bytes absurd = make_slot({.slot = kSlot}).packets[0];
  store(absurd, offset::kSlot, ~uint64_t{0});
  relayed.tier1_source.send(relayed.in(), absurd);
  const auto first = make_slot({.slot = kSlot, .fec_sets = 2});
  for (const Bytes& packet : first.packets) relayed.tier1_source.send(relayed.in(), packet);
  relayed.counts(129);
  relayed.tier1_source.send(relayed.in(), absurd);
  const auto second = make_slot({.slot = kSlot + 1, .fec_sets = 2});
  for (const Bytes& packet : second.packets) relayed.tier1_source.send(relayed.in(), packet);
  const auto counts = relayed.counts(258);
  CHECK_EQ(counts.verdicts.at("first"), 1u + 256u);
  CHECK_EQ(counts.verdicts.at("slot_ahead"), 1u);
  CHECK_EQ(relayed.tier1.receive(257).size(), 257u);
}

TEST(worker_tables_swapped_under_load_lose_and_repeat_nothing) {
  LoopbackRelay relayed;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 40});
  std::atomic<bool> stop{false};
  std::atomic<int> swaps{0};
  std::thread swapper([&] {
    const Bytes sources = source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.12", 32, 1, 1}});
    const Bytes fanout =
        fanout_table({{relayed.tier1.endpoint(), 0, 0}, {relayed.tier2.endpoint(), 1, 1}});
    const Bytes leaders = leader_table(leader_key(1), kSlot - 100, 1000);
    while (!stop) {
      relayed.relay->publish_sources(sources.data(), sources.size());
      relayed.relay->publish_fanout(fanout.data(), fanout.size());
      relayed.relay->publish_leaders(leaders.data(), leaders.size());
      relayed.relay->publish_fanout(fanout.data(), 3);  // refused: the previous table stays
      swaps++;
    }
  });
  std::vector<Bytes> got1, got2;
  for (size_t begin = 0; begin < slot.packets.size(); begin += 128) {
    const int before = swaps;
    for (size_t i = begin; i < begin + 128; i++) {
      relayed.tier1_source.send(relayed.in(), slot.packets[i]);
      relayed.tier2_source.send(relayed.in(), slot.packets[i]);
    }
    relayed.tier1.receive(begin + 128);
    relayed.tier2.receive(begin + 128);
    while (swaps == before) std::this_thread::yield();  // at least one swap between bursts
  }
  stop = true;
  swapper.join();
  CHECK(sorted(relayed.tier1.receive(slot.packets.size())) == sorted(slot.packets));
  CHECK(sorted(relayed.tier2.receive(slot.packets.size())) == sorted(slot.packets));
}

TEST(worker_a_dead_destination_does_not_affect_others) {
  LoopbackRelay relayed;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<DestinationEntry> entries;
  for (uint32_t i = 0; i < 20; i++) {
    peers.push_back(std::make_unique<Peer>());
    entries.push_back({peers.back()->endpoint(), 0, i});
  }
  peers[7].reset();
  relayed.publish(&Relay::publish_fanout, fanout_table(entries));
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 4});
  for (const Bytes& packet : slot.packets) relayed.tier1_source.send(relayed.in(), packet);
  for (uint32_t i = 0; i < 20; i++)
    if (i != 7) CHECK(sorted(peers[i]->receive(256)) == sorted(slot.packets));
  relayed.counts(256);  // every sent datagram is counted
  const SnapshotLayout layout = relayed.relay->layout(2, 20);
  std::vector<uint64_t> words(layout.words);
  for (int tries = 0; tries < 3000; tries++) {  // the worker's housekeeping reads errors
    relayed.relay->snapshot(layout, words.data());
    if (words[layout.destinations_begin + 7 * layout.kDestinationWords + 1 + kSendFailureCount])
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (uint32_t i = 0; i < 20; i++) {
    const uint64_t* row = &words[layout.destinations_begin + i * layout.kDestinationWords];
    const uint64_t failed = std::accumulate(row + 1, row + 1 + kSendFailureCount, uint64_t{0});
    CHECK_EQ(row[0] + failed, 256u);
    CHECK_EQ(row[1 + kSendFailureCount] > 0, i == 7);  // ICMP errors
  }
}

TEST(worker_two_workers_share_a_port_but_no_fec_set) {
  Peer destination;
  const auto relay = open_two_workers(destination.endpoint());
  if (!relay) return;
  const Peer source("127.0.0.11");
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 24});
  auto twice = slot.packets;
  twice.insert(twice.end(), slot.packets.begin(), slot.packets.end());
  std::shuffle(twice.begin(), twice.end(), std::mt19937(9));
  for (size_t i = 0; i < twice.size(); i++) {
    source.send(relay->addresses()[0], twice[i]);
    if (i % 64 == 63) destination.receive(0);
  }
  CHECK(sorted(destination.receive(slot.packets.size())) == sorted(slot.packets));
  const SnapshotLayout layout = relay->layout(1, 1);
  std::vector<uint64_t> words(layout.words);
  relay->snapshot(layout, words.data());
  CHECK(words[size_t(WorkerCounter::received)] > 0);
  CHECK(words[kWorkerCounterCount + size_t(WorkerCounter::received)] > 0);
  uint64_t checks = 0;
  for (size_t w = 0; w < 2; w++)
    checks += words[w * kWorkerCounterCount + size_t(WorkerCounter::signature_checks)];
  CHECK_EQ(checks, 24u);  // each FEC set was handled by one worker
  const uint64_t* slots = &words[layout.slots_begin];
  CHECK_EQ(slots[0], kSlot);
  CHECK_EQ(slots[3], 24u * 32);
  CHECK_EQ(slots[4], 24u * 32);
  CHECK_EQ(slots[6], 24u * 32);
  for (size_t w = 0; w < 2; w++)
    CHECK_EQ(words[w * kWorkerCounterCount + size_t(WorkerCounter::misdirected)], 0u);
}

// The kernel steers a segmented message of this host by its first shred.
TEST(worker_counts_shreds_that_a_segmented_message_brought_to_the_wrong_worker) {
  const Peer destination;
  const auto relay = open_two_workers(destination.endpoint());
  if (!relay) return;
  auto packets = make_slot({.slot = kSlot, .fec_sets = 6}).packets;
  std::erase_if(packets, [](const Bytes& packet) { return packet.size() != kDataShredBytes; });
  std::shuffle(packets.begin(), packets.end(), std::mt19937(9));
  packets.resize(kGsoSegmentsMax);
  std::vector<iovec> parts;
  uint64_t misdirected = 0;
  std::optional<uint32_t> first;
  for (Bytes& packet : packets) {
    parts.push_back({packet.data(), packet.size()});
    Shred shred;
    CHECK(check_packet(packet.data(), packet.size(), shred) == Verdict::first);
    const uint32_t worker = steered_worker(shred.slot, shred.fec_set_index, 2);
    misdirected += worker != first.value_or(worker);
    if (!first) first = worker;
  }
  CHECK(misdirected > 0);
  const SocketResult from = open_send_socket({ipv4_endpoint("127.0.0.11", 0), 4u << 20});
  CHECK_EQ(from.error, std::string());
  SendCounts counts;
  SendBatch batch(from.socket.fd(), true, counts);
  const Address to(relay->addresses()[0]);
  batch.add({parts.data(), static_cast<uint32_t>(parts.size()), kDataShredBytes}, to.get(),
            to.bytes, 0);
  batch.flush();
  if (batch.gso_fallbacks() > 0) SKIP("needs UDP segmentation");
  const SnapshotLayout layout = relay->layout(1, 1);
  std::vector<uint64_t> words(layout.words);
  CHECK(eventually([&] {
    relay->snapshot(layout, words.data());
    return words[layout.sources_begin] == packets.size();  // all are first arrivals
  }));
  if (words[(1 - *first) * kWorkerCounterCount + size_t(WorkerCounter::received)] > 0)
    SKIP("needs tx-udp-segmentation of the loopback interface");
  CHECK_EQ(words[*first * kWorkerCounterCount + size_t(WorkerCounter::misdirected)], misdirected);
}

TEST(relay_refuses_invalid_options) {
  const auto error_of = [](const std::function<void(RelayOptions&)>& change) {
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker.prefault = false;
    change(options);
    std::string error;
    CHECK(Relay::open(options, error) == nullptr);
    return error;
  };
  const auto contains = [](const std::string& text, const char* part) {
    if (text.find(part) == std::string::npos) CHECK_EQ(text, std::string(part));
  };
  contains(error_of([](auto& o) { o.workers = 0; }), "1 to 64 workers, got 0");
  contains(error_of([](auto& o) { o.listen.clear(); }), "at least one listening address");
  contains(error_of([](auto& o) { o.worker.tier_count = 9; }), "1 to 8 tiers, got 9");
  contains(error_of([](auto& o) { o.workers = 2; }), "port other than 0");
  contains(error_of([](auto& o) { o.cpus = {1, 2}; }), "one CPU for each of 1 workers, got 2");
  contains(error_of([](auto& o) { o.cpus = {1000}; }), "CPU 1000");
  const Peer occupied;
  contains(error_of([&](auto& o) { o.listen = {occupied.endpoint()}; }), "ddress already in use");

  // Also refuses a port that another relay shares among its workers.
  RelayOptions first;
  {
    const Peer probe;
    first.listen = {probe.endpoint()};
  }
  first.workers = 2;
  first.worker.prefault = false;
  std::string error;
  const auto relay = Relay::open(first, error);
  CHECK_EQ(error, std::string());
  contains(error_of([&](auto& o) {
             o.listen = first.listen;
             o.workers = 2;
           }),
           "ddress already in use");
}
