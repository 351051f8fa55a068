// The relay over real sockets: sources send, destinations receive, counters and bytes must agree.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "check.h"
#include "relay/relay.h"
#include "support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// A plain UDP socket on loopback.
class Peer {
 public:
  explicit Peer(const char* address = "127.0.0.1")
      : socket_(open_receive_socket({ipv4_endpoint(address, 0), 8u << 20, false}).socket) {
    CHECK(socket_.valid());
  }
  Endpoint endpoint() const { return local_endpoint(socket_.fd()); }
  void send(const Endpoint& to, const Bytes& packet) const {
    sockaddr_storage address{};
    const socklen_t length = to_sockaddr(to, address);
    while (sendto(socket_.fd(), packet.data(), packet.size(), 0,
                  reinterpret_cast<sockaddr*>(&address), length) < 0 &&
           errno == EAGAIN)
      std::this_thread::yield();
  }
  // Takes what has come; waits for `expected` datagrams for two seconds at most, then a little
  // longer for any that should not come.
  const std::vector<Bytes>& receive(size_t expected) {
    using namespace std::chrono;
    const auto until = steady_clock::now() + seconds(2);
    while (received_.size() < expected && steady_clock::now() < until) take(20);
    take(expected ? 5 : 50);
    return received_;
  }

 private:
  void take(int wait_ms) {
    pollfd entry{socket_.fd(), POLLIN, 0};
    if (poll(&entry, 1, wait_ms) <= 0) return;
    uint8_t buffer[2048];
    for (ssize_t n; (n = recv(socket_.fd(), buffer, sizeof buffer, MSG_DONTWAIT)) >= 0;)
      received_.emplace_back(buffer, buffer + n);
  }
  UdpSocket socket_;
  std::vector<Bytes> received_;
};

constexpr uint64_t kSlot = 5000;

struct Bench {
  std::unique_ptr<Relay> relay;
  Peer tier1_source{"127.0.0.11"}, tier2_source{"127.0.0.12"}, stranger{"127.0.0.13"};
  Peer tier1, tier2;

  explicit Bench(const WorkerOptions& worker = default_worker()) {
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = worker;
    std::string error;
    relay = Relay::open(options, error);
    CHECK_EQ(error, std::string());
    publish(&Relay::publish_sources,
            source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.12", 32, 1, 1}}));
    publish(&Relay::publish_fanout,
            fanout_table({{tier1.endpoint(), 0, 0}, {tier2.endpoint(), 1, 1}}));
    publish(&Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
  }
  static WorkerOptions default_worker() {
    WorkerOptions options;
    options.tier_count = 2;
    options.shred_version = 1;
    options.prefault = false;
    return options;
  }
  void publish(std::string (Relay::*part)(const uint8_t*, size_t), const Bytes& bytes) const {
    CHECK_EQ((relay.get()->*part)(bytes.data(), bytes.size()), std::string());
  }
  Endpoint in() const { return relay->addresses()[0]; }

  struct Counts {
    std::map<std::string, uint64_t> verdicts;
    uint64_t received = 0, signature_checks = 0;
  };
  // Waits until `received` datagrams have been counted.
  Counts counts(uint64_t received) const {
    const SnapshotLayout layout = relay->layout(2, 2);
    std::vector<uint64_t> words(layout.words);
    Counts out;
    for (int i = 0; i < 400; i++) {
      relay->snapshot(layout, words.data());
      out = {};
      for (size_t row = 0; row <= 2; row++)
        for (size_t v = 0; v < kVerdictCount; v++)
          if (const uint64_t n = words[layout.sources_begin + row * layout.kSourceWords + v])
            out.verdicts[verdict_name(static_cast<Verdict>(v))] += n;
      out.received = words[size_t(WorkerCounter::received)];
      out.signature_checks = words[size_t(WorkerCounter::signature_checks)];
      if (out.received >= received) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    uint64_t sum = 0;
    for (const auto& [name, count] : out.verdicts) sum += count;
    CHECK_EQ(sum, out.received);  // every packet ends in exactly one verdict
    return out;
  }
};

std::vector<Bytes> sorted(std::vector<Bytes> packets) {
  std::sort(packets.begin(), packets.end());
  return packets;
}
std::vector<Bytes> cut(std::vector<Bytes> packets) {
  for (Bytes& packet : packets) packet.resize((packet[64] & 0xc0) == 0x40 ? 1228 : 1203);
  return packets;
}

}  // namespace

TEST(worker_passes_every_shred_once_to_its_tiers) {
  Bench bench;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 3});
  for (const Bytes& packet : slot.packets) bench.tier2_source.send(bench.in(), packet);
  CHECK(sorted(bench.tier2.receive(192)) == sorted(slot.packets));
  CHECK(bench.tier1.receive(0).empty());
  for (const Bytes& packet : slot.packets) bench.tier1_source.send(bench.in(), packet);
  CHECK(sorted(bench.tier1.receive(192)) == sorted(slot.packets));
  for (const Bytes& packet : slot.packets) bench.tier1_source.send(bench.in(), packet);
  const auto counts = bench.counts(3 * 192);
  CHECK_EQ(counts.verdicts.at("first"), 192u);
  CHECK_EQ(counts.verdicts.at("widened"), 192u);
  CHECK_EQ(counts.verdicts.at("duplicate"), 192u);
  CHECK_EQ(counts.signature_checks, 3u);
  CHECK_EQ(bench.tier2.receive(192).size(), 192u);
}

TEST(worker_cuts_to_the_shreds_own_length) {
  Bench bench;
  const auto slot = make_slot({.slot = kSlot});
  for (Bytes packet : slot.packets) {
    packet.resize(1232, 0xab);
    bench.tier1_source.send(bench.in(), packet);
  }
  CHECK(sorted(bench.tier1.receive(64)) == sorted(cut(slot.packets)));
  CHECK(sorted(bench.tier2.receive(64)) == sorted(cut(slot.packets)));
}

TEST(worker_forged_copies_first_never_suppress_the_real_one) {
  Bench bench;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 2});
  std::mt19937 random(5);
  uint64_t forged = 0;
  for (const Bytes& packet : slot.packets) {
    for (const size_t at : {size_t{3}, size_t{500}, packet.size() - 130}) {
      Bytes copy = packet;
      copy[at] = static_cast<uint8_t>(copy[at] + 1 + random() % 255);
      bench.tier1_source.send(bench.in(), copy);
      forged++;
    }
    bench.tier1_source.send(bench.in(), packet);
  }
  CHECK(sorted(bench.tier1.receive(128)) == sorted(slot.packets));
  const auto counts = bench.counts(forged + 128);
  CHECK_EQ(counts.verdicts.at("first"), 128u);
}

TEST(worker_verdicts_name_what_was_wrong) {
  Bench bench;
  const auto good = make_slot({.slot = kSlot});
  const auto send_all = [&](const Peer& from, const std::vector<Bytes>& packets) {
    for (const Bytes& packet : packets) from.send(bench.in(), packet);
  };
  send_all(bench.tier1_source, good.packets);
  bench.counts(64);
  send_all(bench.stranger, good.packets);
  send_all(bench.tier1_source, make_slot({.slot = kSlot + 1, .leader_seed = 2}).packets);
  send_all(bench.tier1_source, make_slot({.slot = kSlot + 2, .version = 2}).packets);
  send_all(bench.tier1_source, make_slot({.slot = kSlot + 1000}).packets);
  send_all(bench.tier1_source, make_slot({.slot = kSlot - 1000}).packets);
  Bytes altered = good.packets[0];
  altered[700] ^= 1;
  altered[offset::kIndex] = 1;  // an identity that was served already: the bytes are not looked at
  bench.tier1_source.send(bench.in(), altered);
  bench.tier1_source.send(bench.in(), Bytes(132, 4));
  bench.tier1_source.send(bench.in(), Bytes(1233, 0x96));
  bench.tier1_source.send(bench.in(), Bytes(2000, 0x96));
  bench.tier1_source.send(bench.in(), Bytes());
  const auto counts = bench.counts(64 * 6 + 5);
  const std::map<std::string, uint64_t> expected = {
      {"first", 64},      {"unknown_source", 64}, {"signature_invalid", 64}, {"wrong_version", 64},
      {"slot_ahead", 64}, {"slot_behind", 64},    {"duplicate", 1},          {"oversized", 2},
      {"too_short", 1},   {"unknown_variant", 1}};
  for (const auto& [name, count] : expected)
    CHECK_EQ(
        name + " " + std::to_string(counts.verdicts.count(name) ? counts.verdicts.at(name) : 0),
        name + " " + std::to_string(count));
  CHECK(sorted(bench.tier1.receive(64)) == sorted(good.packets));
}

TEST(worker_altered_bytes_under_a_known_signature_cost_no_verification) {
  Bench bench;
  auto packets = make_slot({.slot = kSlot}).packets;
  bench.tier1_source.send(bench.in(), packets[0]);
  bench.counts(1);
  for (size_t i = 1; i < 64; i++) {
    packets[i][600] ^= 0x10;
    bench.tier1_source.send(bench.in(), packets[i]);
  }
  const auto counts = bench.counts(64);
  CHECK_EQ(counts.verdicts.at("root_mismatch"), 63u);
  CHECK_EQ(counts.signature_checks, 1u);
}

TEST(worker_a_source_that_fails_too_many_checks_is_held_back) {
  WorkerOptions options = Bench::default_worker();
  options.failed_checks_per_second = 10;
  Bench bench(options);
  std::mt19937_64 random(1);
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 4});
  for (size_t i = 0; i < 256; i++) {
    Bytes forged = slot.packets[i];
    for (size_t at = 0; at < 64; at++) forged[at] = static_cast<uint8_t>(random());
    bench.tier1_source.send(bench.in(), forged);
  }
  for (const Bytes& packet : slot.packets) bench.tier2_source.send(bench.in(), packet);
  CHECK(sorted(bench.tier2.receive(256)) == sorted(slot.packets));
  const auto counts = bench.counts(512);
  CHECK(counts.verdicts.at("source_over_budget") > 150);
  CHECK_EQ(counts.verdicts.at("first"), 256u);
  CHECK(counts.signature_checks <= 4 + 10 * 30);
}

TEST(worker_equivocation_is_passed_on_once) {
  Bench bench;
  for (const uint8_t content : Bytes{1, 2, 3, 1, 2, 3})
    for (const Bytes& packet : make_slot({.slot = kSlot, .first_byte = content}).packets)
      bench.tier1_source.send(bench.in(), packet);
  const auto counts = bench.counts(6 * 64);
  // Code shreds and the used data shreds differ; all 64 leaves have another root.
  CHECK_EQ(counts.verdicts.at("first"), 64u);
  CHECK_EQ(counts.verdicts.at("equivocation"), 64u);
  CHECK_EQ(counts.verdicts.at("duplicate"), 128u);
  CHECK_EQ(counts.verdicts.at("equivocation_excess"), 128u);
  CHECK_EQ(bench.tier1.receive(128).size(), 128u);
  std::vector<Event> events(1024);
  const size_t count = bench.relay->drain_events(events.data(), events.size());
  CHECK_EQ(std::count_if(events.begin(), events.begin() + long(count),
                         [](const Event& e) { return e.kind == EventKind::equivocation; }),
           64);
}

TEST(worker_resigned_copies_of_several_forwarders_count_once) {
  Bench bench;
  const auto slot = make_slot({.slot = kSlot});  // one set, the last: resigned
  for (uint8_t forwarder = 0; forwarder < 5; forwarder++) {
    for (Bytes packet : slot.packets) {
      std::fill(packet.end() - 64, packet.end(), forwarder);
      bench.tier1_source.send(bench.in(), packet);
    }
  }
  const auto counts = bench.counts(5 * 64);
  CHECK_EQ(counts.verdicts.at("first"), 64u);
  CHECK_EQ(counts.verdicts.at("duplicate"), 256u);
  CHECK(sorted(bench.tier1.receive(64)) == sorted(slot.packets));
}

TEST(worker_without_authentication_one_absurd_slot_does_nothing) {
  WorkerOptions options = Bench::default_worker();
  options.authenticate = false;
  Bench bench(options);
  Bytes absurd = make_slot({.slot = kSlot}).packets[0];
  store(absurd, offset::kSlot, ~uint64_t{0});
  bench.tier1_source.send(bench.in(), absurd);
  const auto first = make_slot({.slot = kSlot, .fec_sets = 2});
  for (const Bytes& packet : first.packets) bench.tier1_source.send(bench.in(), packet);
  bench.counts(129);
  bench.tier1_source.send(bench.in(), absurd);
  const auto second = make_slot({.slot = kSlot + 1, .fec_sets = 2});
  for (const Bytes& packet : second.packets) bench.tier1_source.send(bench.in(), packet);
  const auto counts = bench.counts(258);
  CHECK_EQ(counts.verdicts.at("first"), 1u + 256u);
  CHECK_EQ(counts.verdicts.at("slot_ahead"), 1u);
  CHECK_EQ(bench.tier1.receive(257).size(), 257u);
}

TEST(worker_tables_swapped_under_load_lose_and_repeat_nothing) {
  Bench bench;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 40});
  std::atomic<bool> stop{false};
  std::atomic<int> swaps{0};
  std::thread swapper([&] {
    const Bytes sources = source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.12", 32, 1, 1}});
    const Bytes fanout =
        fanout_table({{bench.tier1.endpoint(), 0, 0}, {bench.tier2.endpoint(), 1, 1}});
    const Bytes leaders = leader_table(leader_key(1), kSlot - 100, 1000);
    while (!stop) {
      bench.relay->publish_sources(sources.data(), sources.size());
      bench.relay->publish_fanout(fanout.data(), fanout.size());
      bench.relay->publish_leaders(leaders.data(), leaders.size());
      bench.relay->publish_fanout(fanout.data(), 3);  // refused: the old one stays
      swaps++;
    }
  });
  std::vector<Bytes> got1, got2;
  for (size_t begin = 0; begin < slot.packets.size(); begin += 128) {
    for (size_t i = begin; i < begin + 128; i++) {
      bench.tier1_source.send(bench.in(), slot.packets[i]);
      bench.tier2_source.send(bench.in(), slot.packets[i]);
    }
    bench.tier1.receive(begin + 128);
    bench.tier2.receive(begin + 128);
  }
  stop = true;
  swapper.join();
  CHECK(swaps > 10);
  CHECK(sorted(bench.tier1.receive(slot.packets.size())) == sorted(slot.packets));
  CHECK(sorted(bench.tier2.receive(slot.packets.size())) == sorted(slot.packets));
}

TEST(worker_one_dead_destination_among_many_harms_nobody) {
  Bench bench;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<DestinationEntry> entries;
  Endpoint dead;
  {
    const Peer gone;
    dead = gone.endpoint();
  }
  for (uint32_t i = 0; i < 20; i++) {
    peers.push_back(std::make_unique<Peer>());
    entries.push_back({i == 7 ? dead : peers.back()->endpoint(), 0, i});
  }
  bench.publish(&Relay::publish_fanout, fanout_table(entries));
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 4});
  for (const Bytes& packet : slot.packets) bench.tier1_source.send(bench.in(), packet);
  for (uint32_t i = 0; i < 20; i++)
    if (i != 7) CHECK(sorted(peers[i]->receive(256)) == sorted(slot.packets));
  const SnapshotLayout layout = bench.relay->layout(2, 20);
  std::vector<uint64_t> words(layout.words);
  for (int tries = 0; tries < 100; tries++) {  // errors are read in the worker's house-keeping
    bench.relay->snapshot(layout, words.data());
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

TEST(worker_two_workers_share_a_port_and_no_fec_set) {
  RelayOptions options;
  {
    const Peer probe;
    options.listen = {probe.endpoint()};
  }
  options.workers = 2;
  options.worker = Bench::default_worker();
  std::string error;
  const auto relay = Relay::open(options, error);
  CHECK_EQ(error, std::string());
  if (!relay) return;
  const Peer source("127.0.0.11");
  Peer destination;
  const Bytes sources = source_table({{"127.0.0.11", 32, 0, 0}});
  const Bytes fanout = fanout_table({{destination.endpoint(), 0, 0}});
  const Bytes leaders = leader_table(leader_key(1), kSlot, 10);
  relay->publish_sources(sources.data(), sources.size());
  relay->publish_fanout(fanout.data(), fanout.size());
  relay->publish_leaders(leaders.data(), leaders.size());
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
  CHECK_EQ(checks, 24u);  // each FEC set met one worker
  const uint64_t* slots = &words[layout.slots_begin];
  CHECK_EQ(slots[0], kSlot);
  CHECK_EQ(slots[3], 24u * 32);
  CHECK_EQ(slots[4], 24u * 32);
  CHECK_EQ(slots[6], 24u * 32);
}

TEST(relay_refuses_options_that_cannot_work) {
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
  contains(error_of([](auto& o) { o.workers = 2; }), "must be named");
  contains(error_of([](auto& o) { o.cpus = {1, 2}; }), "one CPU for each of 1 workers, got 2");
  contains(error_of([](auto& o) { o.cpus = {1000}; }), "CPU 1000");
  const Peer taken;
  contains(error_of([&](auto& o) { o.listen = {taken.endpoint()}; }), "ddress already in use");
}
