// Sender threads: what a worker sends together with them is the same as what it sends alone, by
// count, by destination and by order.
#include <condition_variable>
#include <mutex>
#include <set>

#include "allocations.h"
#include "clone_support.h"
#include "loopback_relay.h"
#include "net_support.h"
#include "relay/sender_threads.h"

namespace shredway::test {
namespace {

constexpr uint32_t kTargets = 200;

uint64_t payload_of(const msghdr& message, size_t part) {
  uint64_t payload;
  std::memcpy(&payload, message.msg_iov[part].iov_base, sizeof payload);
  return payload;
}

// A kernel for several threads. Target n has port n + 1.
struct SharedKernel {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, std::vector<uint64_t>> accepted;  // payloads by target, in order
  std::map<std::thread::id, uint64_t> calls;
  std::set<uint32_t> refused_targets;
  bool worker_and_others_wait = false;  // each for the first call of the other side
  bool clock_stops = false;
  uint32_t threads_in_clock = 0;
  const std::thread::id worker = std::this_thread::get_id();

  SharedKernel() { current() = this; }
  ~SharedKernel() { current() = nullptr; }

  static SharedKernel*& current() {
    static SharedKernel* kernel = nullptr;
    return kernel;
  }
  static const SocketCalls& socket_calls() {
    static const SocketCalls kCalls = {&::recvmmsg, &send, &::recvmsg, &::poll, &clock_ns};
    return kCalls;
  }
  static int send(int, mmsghdr* messages, unsigned count, int) {
    return current()->accept(messages, count);
  }
  static uint64_t clock_ns(clockid_t clock) {
    current()->pass_clock();
    return system_clock_ns(clock);
  }

  int accept(mmsghdr* messages, unsigned count) {
    std::unique_lock lock(mutex);
    calls[std::this_thread::get_id()]++;
    changed.notify_all();
    const bool is_worker = std::this_thread::get_id() == worker;
    if (worker_and_others_wait)
      changed.wait(lock, [&] { return is_worker ? calls.size() > 1 : calls.contains(worker); });
    for (unsigned i = 0; i < count; i++) {
      const msghdr& message = messages[i].msg_hdr;
      const uint32_t target =
          endpoint_from_sockaddr(static_cast<const sockaddr*>(message.msg_name)).port - 1u;
      if (refused_targets.contains(target)) {
        if (i > 0) return static_cast<int>(i);
        errno = EPERM;
        return -1;
      }
      for (size_t part = 0; part < message.msg_iovlen; part++)
        accepted[target].push_back(payload_of(message, part));
    }
    return static_cast<int>(count);
  }
  // A sender thread reads the clock before it looks for work, so it does not begin meanwhile.
  void pass_clock() {
    std::unique_lock lock(mutex);
    threads_in_clock++;
    changed.notify_all();
    changed.wait(lock, [this] { return !clock_stops; });
    threads_in_clock--;
  }
};

// Counts by tag without a lock: ThreadSanitizer would report two threads at one target.
struct TargetCounts final : TransmitObserver {
  std::array<uint64_t, kTargets> sent_to{}, failed_to{};
  void cloned(uint32_t, uint64_t, uint64_t) override {}
  void clone_failed(uint32_t, uint64_t, SendFailure) override {}
  void sent(uint32_t tag, uint32_t datagrams) override { sent_to[tag] += datagrams; }
  void failed(uint32_t tag, uint32_t datagrams, SendFailure failure) override {
    CHECK(failure == SendFailure::not_permitted);
    failed_to[tag] += datagrams;
  }
};

struct SendersFixture {
  SharedKernel kernel;
  TargetCounts counts;
  SendSockets sockets{3, 4, true};
  TargetBatch own{sockets, counts, SharedKernel::socket_calls()};
  std::vector<TransmitTarget> targets;
  std::unique_ptr<SenderThreads> threads;
  uint32_t sends = 0;
  uint32_t first_rotation = 0;

  // Targets of both address families; every third is of the second kind.
  explicit SendersFixture(uint32_t count, uint32_t poll_us = 0, uint32_t target_count = kTargets) {
    for (uint32_t i = 0; i < target_count; i++) {
      TransmitTarget& target = targets.emplace_back();
      sockaddr_storage address{};
      to_sockaddr(loopback(i % 2 == 0, static_cast<uint16_t>(i + 1)), address);
      std::memcpy(&target.ipv6, &address, sizeof target.ipv6);
      target.tag = i;
      target.kind = i % 3 == 0 ? 1 : 0;
    }
    std::string error;
    threads = SenderThreads::start({count, 0, poll_us}, sockets, counts,
                                   SharedKernel::socket_calls(), error);
    CHECK_EQ(error, "");
  }
  // Payloads 3n and 3n + 1 as one group to all, 3n + 2 only to targets of the first kind.
  void send() {
    std::array<uint64_t, 3> payloads{3 * sends, 3 * sends + 1, 3 * sends + 2};
    std::array<iovec, 3> parts;
    for (size_t i = 0; i < parts.size(); i++) parts[i] = {&payloads[i], sizeof payloads[i]};
    TransmitGroups groups{};
    groups[0] = {PayloadGroup{parts.data(), 2, 8}, PayloadGroup{&parts[2], 1, 8}};
    groups[1] = {PayloadGroup{parts.data(), 2, 8}, PayloadGroup{nullptr, 0, 8}};
    threads->send_to_all(targets, groups, first_rotation + sends++, own);
    payloads = {~0ull, ~0ull, ~0ull};  // nobody may read them now
  }
  void check_all_sent() {
    for (uint32_t i = 0; i < targets.size(); i++) {
      std::vector<uint64_t> expected;
      for (uint64_t n = 0; n < sends; n++)
        for (uint64_t part = 0; part < (targets[i].kind == 0 ? 3u : 2u); part++)
          expected.push_back(3 * n + part);
      CHECK(kernel.accepted[i] == expected);
      CHECK_EQ(counts.sent_to[i], expected.size());
      CHECK_EQ(counts.failed_to[i], 0u);
    }
  }
};

// Whether `shreds` shreds to this many destinations are divided.
bool is_divided(uint32_t destinations, uint32_t shreds, bool gso) {
  SharedKernel kernel;
  TargetCounts counts;
  Transmit transmit({{3, 4, gso}, {}}, counts, SharedKernel::socket_calls());
  CHECK_EQ(transmit.start_senders({1, 0, 0}), "");
  std::vector<DestinationEntry> entries;
  for (uint32_t i = 0; i < destinations; i++)
    entries.push_back({loopback(true, static_cast<uint16_t>(i + 1)), 0, i});
  const Bytes bytes = fanout_table(entries);
  std::string error;
  const auto fanout = FanoutTable::parse(bytes.data(), bytes.size(), 1, error);
  CHECK_EQ(error, "");
  const TargetLists lists(fanout.get(), nullptr, transmit.target_rules(1));
  transmit.set_lists(lists);
  std::array<uint64_t, 8> payloads{};
  std::array<iovec, 8> parts;
  for (size_t i = 0; i < parts.size(); i++) parts[i] = {&payloads[i], sizeof payloads[i]};
  TransmitGroups groups{};
  groups[0][0] = {parts.data(), shreds, 8};
  transmit.add(0, groups, false);
  transmit.flush();
  for (uint32_t i = 0; i < destinations; i++) CHECK_EQ(counts.sent_to[i], shreds);
  return transmit.divided_sends() > 0;
}

// A relay with many destinations of tier 1, in which `watched` is one, and two sender threads.
struct DividingRelay {
  static constexpr uint32_t kOthers = 80;
  LoopbackRelay relayed;
  Peer watched;

  explicit DividingRelay(WaitMode wait = WaitMode::block) : relayed(options(wait)) { publish(1); }
  static WorkerOptions options(WaitMode wait) {
    WorkerOptions options = LoopbackRelay::default_worker();
    options.sender_threads = 2;
    options.wait = wait;
    return options;
  }
  // `watched_tier` 2: `watched` is removed.
  void publish(uint8_t watched_tier) const {
    std::vector<DestinationEntry> entries;
    for (uint32_t i = 0; i < kOthers; i++)
      entries.push_back({ipv4_endpoint("127.0.0.99", static_cast<uint16_t>(40'000 + i)), 1, i});
    entries.push_back({relayed.tier1.endpoint(), 0, kOthers});
    entries.push_back({relayed.tier2.endpoint(), 1, kOthers + 1});
    if (watched_tier < 2) entries.push_back({watched.endpoint(), watched_tier, kOthers + 2});
    relayed.publish(&Relay::publish_fanout, fanout_table(entries));
  }
  uint64_t counter(WorkerCounter which) const {
    const SnapshotLayout layout = relayed.relay->layout(2, kOthers);
    std::vector<uint64_t> words(layout.words);
    relayed.relay->snapshot(layout, words.data());
    return words[layout.worker_begin + static_cast<size_t>(which)];
  }
};

}  // namespace

TEST(sender_threads_send_each_target_the_same_in_the_same_order) {
  for (const uint32_t count : {1u, 2u, 5u}) {
    for (const uint32_t poll_us : {0u, 200u}) {
      SendersFixture fixture(count, poll_us);
      for (int i = 0; i < 300; i++) fixture.send();
      fixture.check_all_sent();
      CHECK_EQ(fixture.threads->sends(), 300u);
    }
  }
}

TEST(sender_threads_share_the_targets_with_the_worker) {
  SendersFixture fixture(2);
  fixture.kernel.worker_and_others_wait = true;
  fixture.send();
  fixture.check_all_sent();
  CHECK(fixture.kernel.calls.size() >= 2);
  CHECK(fixture.kernel.calls[fixture.kernel.worker] > 0);
  CHECK(fixture.threads->system_calls() > 0);
}

// Shares of no target and of less than one piece.
TEST(sender_threads_send_to_few_targets) {
  for (const uint32_t count : {0u, 1u, 2u, 17u, 33u}) {
    SendersFixture fixture(3, 0, count);
    for (int i = 0; i < 50; i++) fixture.send();
    fixture.check_all_sent();
  }
}

// The rotation counts batches and begins again at 0; a share has 66 or 67 targets.
TEST(sender_threads_send_to_each_target_when_the_rotation_overflows) {
  SendersFixture fixture(2);
  fixture.first_rotation = ~0u - 150;
  for (int i = 0; i < 300; i++) fixture.send();
  fixture.check_all_sent();
}

// A thread that does not begin in time is not waited for, its targets miss nothing, and it takes
// part again afterwards.
TEST(sender_threads_that_are_late_are_counted_and_replaced) {
  SendersFixture fixture(2, 1);
  SharedKernel& kernel = fixture.kernel;
  {
    const std::lock_guard lock(kernel.mutex);
    kernel.clock_stops = true;
  }
  // The threads read the clock each time they have nothing to do.
  const auto both_stand = [&] {
    const std::lock_guard lock(kernel.mutex);
    return kernel.threads_in_clock == 2;
  };
  CHECK(eventually([&] {
    if (both_stand()) return true;
    fixture.send();  // wakes those that sleep
    return both_stand();
  }));
  const uint64_t late = fixture.threads->late();
  for (int i = 0; i < 20; i++) fixture.send();
  CHECK_EQ(fixture.threads->late() - late, 40u);
  fixture.check_all_sent();
  {
    const std::lock_guard lock(kernel.mutex);
    kernel.clock_stops = false;
    kernel.calls.clear();
    kernel.worker_and_others_wait = true;
  }
  kernel.changed.notify_all();
  fixture.send();  // returns after another thread has sent
  fixture.check_all_sent();
}

TEST(sender_threads_report_a_refusal_for_its_target_only) {
  SendersFixture fixture(1);
  fixture.kernel.worker_and_others_wait = true;
  fixture.kernel.refused_targets = {0, 7, 100, 150, 199};
  constexpr uint32_t kSends = 40;
  for (uint32_t i = 0; i < kSends; i++) {
    {
      const std::lock_guard lock(fixture.kernel.mutex);
      fixture.kernel.calls.clear();
    }
    fixture.send();
  }
  for (uint32_t i = 0; i < kTargets; i++) {
    const bool is_refused = fixture.kernel.refused_targets.contains(i);
    const uint64_t datagrams = kSends * (fixture.targets[i].kind == 0 ? 3u : 2u);
    CHECK_EQ(fixture.counts.sent_to[i], is_refused ? 0 : datagrams);
    CHECK_EQ(fixture.counts.failed_to[i], is_refused ? datagrams : 0);
  }
}

// The limit counts messages: with GSO one per destination, otherwise one per shred.
TEST(sender_threads_leave_small_sends_to_the_worker) {
  constexpr uint32_t kLeast = SenderThreads::kMessagesLeast;
  CHECK(!is_divided(kLeast - 1, 1, true));
  CHECK(is_divided(kLeast, 1, true));
  CHECK(!is_divided(kLeast - 1, 8, true));
  CHECK(is_divided(kLeast / 8, 8, false));
  CHECK(!is_divided(kLeast / 8 - 1, 8, false));
}

TEST(sender_threads_stop_while_they_poll_sleep_or_have_never_worked) {
  for (const uint32_t poll_us : {0u, 1'000'000u}) {
    for (int sends = 0; sends < 3; sends++) {
      SendersFixture fixture(3, poll_us);
      for (int i = 0; i < sends; i++) fixture.send();
      fixture.threads.reset();
      fixture.check_all_sent();
    }
  }
}

// Sums of a whole relay: each destination gets each shred once, from any thread.
TEST(sender_threads_of_a_relay_lose_and_repeat_nothing) {
  for (const WaitMode wait : {WaitMode::block, WaitMode::spin}) {
    DividingRelay dividing(wait);
    LoopbackRelay& relayed = dividing.relayed;
    CHECK_EQ(relayed.relay->sender_threads(), 2u);
    const auto slot = make_slot({.slot = kSlot, .fec_sets = 6});
    const WorkerAllocations allocations;
    for (const Bytes& packet : slot.packets) relayed.tier1_source.send(relayed.in(), packet);
    relayed.counts(slot.packets.size());
    CHECK_EQ(allocations.count(), 0u);
    for (Peer* peer : {&relayed.tier1, &relayed.tier2, &dividing.watched})
      CHECK(sorted(peer->receive(slot.packets.size())) == sorted(slot.packets));
    const SnapshotLayout layout = relayed.relay->layout(2, DividingRelay::kOthers);
    std::vector<uint64_t> words(layout.words);
    CHECK(eventually([&] {
      relayed.relay->snapshot(layout, words.data());
      return words[layout.worker_begin + size_t(WorkerCounter::divided_sends)] > 0;
    }));
    for (uint32_t i = 0; i < DividingRelay::kOthers; i++) {
      const uint64_t* row = &words[layout.destinations_begin + i * layout.kDestinationWords];
      const uint64_t failed = std::accumulate(row + 1, row + 1 + kSendFailureCount, uint64_t{0});
      CHECK_EQ(row[0] + failed, slot.packets.size());
    }
    CHECK(dividing.counter(WorkerCounter::sender_cpu_ns) > 0);
  }
}

// Each part is sent after the publication of its table, and received before that of the next.
TEST(sender_threads_follow_every_table_from_its_publication_on) {
  DividingRelay dividing;
  LoopbackRelay& relayed = dividing.relayed;
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 12});
  const size_t part = slot.packets.size() / 12;
  std::vector<Bytes> expected;
  for (size_t i = 0; i < 12; i++) {
    // The destination is in the wide tier, removed, in the narrow tier.
    const auto tier = std::array<uint8_t, 3>{1, 2, 0}[i % 3];
    dividing.publish(tier);
    for (size_t at = i * part; at < (i + 1) * part; at++) {
      relayed.tier2_source.send(relayed.in(), slot.packets[at]);  // for the wide tier only
      if (tier == 1) expected.push_back(slot.packets[at]);
    }
    relayed.counts((i + 1) * part);
  }
  CHECK(sorted(dividing.watched.receive(expected.size())) == sorted(expected));
  CHECK_EQ(relayed.tier2.receive(slot.packets.size()).size(), slot.packets.size());
}

TEST(sender_threads_end_with_their_relay_under_traffic) {
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 4});
  for (int i = 0; i < 10; i++) {
    DividingRelay dividing(i % 2 ? WaitMode::spin : WaitMode::block);
    const Endpoint in = dividing.relayed.in();
    std::atomic<bool> stop{false};
    std::thread generator([&] {
      const Peer source("127.0.0.11");
      while (!stop)
        for (const Bytes& packet : slot.packets) source.send(in, packet);
    });
    CHECK(eventually([&] { return dividing.counter(WorkerCounter::received) > 50; }));
    dividing.relayed.relay.reset();
    stop = true;
    generator.join();
  }
}

TEST(sender_threads_are_limited) {
  RelayOptions options;
  options.listen = {ipv4_endpoint("127.0.0.1", 0)};
  options.worker = LoopbackRelay::default_worker();
  options.worker.sender_threads = kSenderThreadsMax + 1;
  std::string error;
  CHECK(Relay::open(options, error) == nullptr);
  CHECK_EQ(error, "expected at most 15 sender threads per worker, got 16");
}

TEST(sender_threads_are_off_in_a_simulation) {
  MemoryNetwork network;
  RelayOptions options;
  options.listen = {ipv4_endpoint("127.0.0.1", 20'000)};
  options.worker = LoopbackRelay::default_worker();
  options.worker.sender_threads = 2;
  options.network = &network;
  const auto relay = open_relay(options);
  CHECK_EQ(relay->sender_threads(), 0u);
}

TEST(sender_threads_are_off_while_clones_are_in_use) {
  in_clone_lab([](Lab&) {
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = LoopbackRelay::default_worker();
    options.worker.sender_threads = 2;
    options.transmit = TransmitMode::clone;
    const auto relay = open_relay(options);
    CHECK_EQ(relay->sender_threads(), 0u);
  });
}

}  // namespace shredway::test
