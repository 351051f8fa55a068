// The relay finds watched transactions in its own feed, outside the packet path and across its
// workers.
#include <chrono>
#include <functional>

#include "deshred_thread_support.h"
#include "loopback_relay.h"

namespace {

using namespace shredway;
using namespace std::chrono_literals;
using test::BatchedSlot;
using test::Bytes;
using test::eventually;
using test::push_shred;
using test::signature_of;
using test::Watcher;

struct CountingNotifier : WakeUpNotifier {
  std::atomic<int> notified{0};
  void notify() override { notified++; }
};

}  // namespace

TEST(deshred_thread_reports_only_watched_transactions) {
  std::mt19937 random(1);
  const BatchedSlot slot = test::make_batched_slot(77, {30, 40}, random);
  const std::string& wanted = slot.batches[1].signatures[13];
  Watcher watcher;
  const TransactionSignature signature = signature_of(wanted);
  CHECK_EQ(watcher.thread->watch({&signature, 1}), std::string());
  CHECK(eventually([&] { return watcher.counter(DeshredCounter::watched) == 1; }));
  for (size_t i = 0; i < slot.packets.size(); i++)
    push_shred(watcher.thread->ring_of(0), slot.packets[i], 1000 + i);
  CHECK(eventually([&] { return watcher.counter(DeshredCounter::transactions) == 70; }));
  CHECK(watcher.has(1));
  CHECK_EQ(watcher.landings.size(), 1u);
  const Landing& landing = watcher.landings[0];
  CHECK(landing.signature == signature);
  CHECK_EQ(landing.slot, 77u);
  CHECK_EQ(landing.batch_index, slot.batches[1].first_index);
  CHECK_EQ(landing.ordinal, 13u);
  CHECK_EQ(landing.flags & kBeforeWatch, 0u);
  CHECK(landing.shred_index >= landing.batch_index &&
        landing.shred_index < landing.batch_index + 32);
  // Times are those of the shreds: set 0 is 64 packets, followed by the data shreds of set 1.
  CHECK_EQ(landing.arrival_ns, 1000u + 64 + landing.shred_index - landing.batch_index);
  CHECK_EQ(watcher.counter(DeshredCounter::landings), 1u);
}

TEST(deshred_thread_reports_landings_before_the_watch) {
  std::mt19937 random(2);
  const BatchedSlot slot = test::make_batched_slot(78, {30}, random);
  CountingNotifier notifier;  // outlives the thread
  Watcher watcher;
  for (const Bytes& packet : slot.packets) push_shred(watcher.thread->ring_of(0), packet, 5);
  CHECK(eventually([&] { return watcher.counter(DeshredCounter::transactions) == 30; }));
  std::vector<TransactionSignature> late;
  for (const std::string& text : slot.batches[0].signatures) late.push_back(signature_of(text));
  // `watched` is updated after the thread has applied all orders, so the last notification has
  // happened.
  const auto watches = [&](size_t count) {
    return eventually([&] { return watcher.counter(DeshredCounter::watched) == count; });
  };
  watcher.thread->set_notifier(&notifier);
  CHECK_EQ(watcher.thread->watch(late), std::string());
  CHECK(watches(30));
  CHECK_EQ(watcher.counter(DeshredCounter::landings), 30u);
  CHECK_EQ(notifier.notified.load(), 1);  // one notification for all waiting landings
  CHECK(watcher.has(30));
  CHECK(watcher.landings[29].flags & kBeforeWatch && watcher.landings[29].slot == 78);
  // Already watched signatures are reported again, and after draining there is a new notification.
  CHECK_EQ(watcher.thread->watch(late), std::string());
  watcher.thread->unwatch(late);
  CHECK(watches(0));
  CHECK_EQ(watcher.counter(DeshredCounter::landings), 60u);
  CHECK_EQ(notifier.notified.load(), 2);
  CHECK(watcher.has(60));
  // The same after unwatching and watching again.
  CHECK_EQ(watcher.thread->watch({&late[3], 1}), std::string());
  CHECK(watches(1));
  CHECK_EQ(notifier.notified.load(), 3);
  CHECK(watcher.has(61));
  CHECK(watcher.landings[60].signature == late[3]);
}

TEST(deshred_thread_refuses_too_many_signatures) {
  Watcher watcher;
  std::vector<TransactionSignature> all(WatchList::kSignaturesMax);
  for (size_t i = 0; i < all.size(); i++) std::memcpy(all[i].data(), &i, sizeof i);
  CHECK_EQ(watcher.thread->watch(all), std::string());
  TransactionSignature one_more;
  one_more.fill(9);
  CHECK_EQ(
      watcher.thread->watch({&one_more, 1}),
      std::string("expected at most 262144 watched signatures, got 1 more than the 262144 that "
                  "are watched"));
  watcher.thread->unwatch({all.data(), 1});
  CHECK(eventually([&] { return watcher.thread->watch({&one_more, 1}).empty(); }));
  CHECK(eventually(
      [&] { return watcher.counter(DeshredCounter::watched) == WatchList::kSignaturesMax; }));
}

TEST(deshred_thread_merges_the_workers_rings) {
  std::mt19937 random(3);
  const BatchedSlot slot = test::make_batched_slot(79, {300, 300, 20}, random);
  Watcher watcher(3);
  std::vector<TransactionSignature> all;
  for (const auto& batch : slot.batches)
    for (const std::string& text : batch.signatures) all.push_back(signature_of(text));
  CHECK_EQ(watcher.thread->watch(all), std::string());
  for (size_t i = 0; i < slot.packets.size(); i++)
    if (i % 3 != 0)  // some are lost
      push_shred(watcher.thread->ring_of(static_cast<uint32_t>(i / 64 % 3)), slot.packets[i],
                 i + 1);
  CHECK(watcher.has(620));
  std::sort(watcher.landings.begin(), watcher.landings.end(), [](const auto& a, const auto& b) {
    return std::pair(a.batch_index, a.ordinal) < std::pair(b.batch_index, b.ordinal);
  });
  for (size_t i = 0; i < 620; i++) CHECK(watcher.landings[i].signature == all[i]);
}

TEST(relay_finds_landings_in_its_own_feed) {
  std::mt19937 random(4);
  const BatchedSlot slot = test::make_batched_slot(test::kSlot, {30, 300, 40}, random);
  test::LoopbackRelay net;
  net.publish(&Relay::publish_leaders,
              test::leader_table(test::batched_slot_leader(), test::kSlot - 100, 10'000));
  const TransactionSignature signature = signature_of(slot.batches[1].signatures[250]);
  DeshredThread* deshred = net.relay->deshred();
  CHECK(deshred != nullptr);
  CHECK_EQ(deshred->watch({&signature, 1}), std::string());
  std::vector<Bytes> packets = slot.packets;
  std::shuffle(packets.begin(), packets.end(), random);
  size_t sent = 0;
  for (const Bytes& packet : packets) {
    if (random() % 4 == 0) continue;  // lost on the way
    Bytes forged = packet;
    forged[300] ^= 1;
    net.tier1_source.send(net.in(), forged);
    net.tier1_source.send(net.in(), packet);
    net.tier2_source.send(net.in(), packet);
    sent += 3;
  }
  net.counts(sent);
  Landing landing;
  CHECK(eventually([&] { return deshred->drain(&landing, 1) == 1; }));
  CHECK(landing.signature == signature);
  CHECK_EQ(landing.slot, test::kSlot);
  CHECK_EQ(landing.ordinal, 250u);
  const auto counter = [&](DeshredCounter which) {
    return deshred->counters().counters[static_cast<size_t>(which)].get();
  };
  CHECK(eventually([&] { return counter(DeshredCounter::transactions) == 370; }));
  CHECK_EQ(counter(DeshredCounter::batches), 3u);
  CHECK_EQ(counter(DeshredCounter::sets_refused), 0u);
  CHECK_EQ(counter(DeshredCounter::shreds_conflicting), 0u);
}

// ---- recovered shreds ----------------------------------------------------------------------

namespace {

// A relay with one plain destination and one that wants recovered shreds in tier 1, and one that
// wants recovered shreds in tier 0.
struct RecoveringRelay : test::LoopbackRelay {
  test::Peer wants_recovered, wants_recovered_narrow;
  RecoveringRelay() {
    publish(&Relay::publish_leaders,
            test::leader_table(test::batched_slot_leader(), test::kSlot - 100, 10'000));
    publish(&Relay::publish_fanout,
            test::fanout_table({{tier2.endpoint(), 1, 0},
                                {wants_recovered.endpoint(), 1, 1, true},
                                {wants_recovered_narrow.endpoint(), 0, 2, true}}));
  }
  uint64_t destination_counter(size_t destination, size_t word) const {
    const SnapshotLayout layout = relay->layout(2, 3);
    std::vector<uint64_t> words(layout.words);
    relay->snapshot(layout, words.data());
    return words[layout.destinations_begin + destination * layout.kDestinationWords + word];
  }
  uint64_t sent(size_t destination) const { return destination_counter(destination, 0); }
  uint64_t recovered_sent(size_t destination) const {
    return destination_counter(destination, 2 + kSendFailureCount);
  }
};

bool same_packets(std::vector<Bytes> left, std::vector<Bytes> right) {
  std::sort(left.begin(), left.end());
  std::sort(right.begin(), right.end());
  return left == right;
}

}  // namespace

TEST(relay_sends_recovered_shreds_once_to_destinations_that_want_them) {
  std::mt19937 random(5);
  const BatchedSlot slot = test::make_batched_slot(test::kSlot, {20}, random);
  RecoveringRelay net;
  std::vector<Bytes> packets = slot.packets;
  std::shuffle(packets.begin(), packets.end(), random);
  const std::vector<Bytes> first_half(packets.begin(), packets.begin() + 32);
  for (const Bytes& packet : first_half) net.tier2_source.send(net.in(), packet);
  // The destination that wants recovered shreds gets all 64; the plain one gets those received.
  CHECK(same_packets(net.wants_recovered.receive(64), slot.packets));
  CHECK(same_packets(net.tier2.receive(32), first_half));
  // They are counted shortly after they were sent.
  CHECK(eventually([&] { return net.recovered_sent(1) == 32; }));
  CHECK_EQ(net.sent(1), 32u);
  CHECK_EQ(net.recovered_sent(0), 0u);
  // The real shreds arrive twice: no destination gets a shred twice, and every destination gets
  // all.
  for (size_t i = 32; i < 64; i++) {
    net.tier2_source.send(net.in(), packets[i]);
    net.tier2_source.send(net.in(), packets[i]);
  }
  net.counts(32 + 64);
  CHECK(same_packets(net.tier2.receive(64), slot.packets));
  CHECK_EQ(net.wants_recovered.receive(64).size(), 64u);
  CHECK_EQ(net.sent(0), 64u);
  CHECK_EQ(net.sent(1), 32u);
  // The narrow tier's sources sent nothing, so no shred was recoverable for that tier.
  CHECK_EQ(net.wants_recovered_narrow.receive(0).size(), 0u);
  for (const Bytes& packet : slot.packets) net.tier1_source.send(net.in(), packet);
  CHECK(same_packets(net.wants_recovered_narrow.receive(64), slot.packets));
  CHECK_EQ(net.wants_recovered.receive(64).size(), 64u);
}

TEST(relay_keeps_recovered_shreds_within_their_tier) {
  std::mt19937 random(6);
  const BatchedSlot slot = test::make_batched_slot(test::kSlot, {20}, random);
  RecoveringRelay net;
  // 20 shreds from a source of the narrow tier and 12 others from one of the wide tier: 32 in total
  // for the wide tier only.
  for (size_t i = 0; i < 20; i++) net.tier1_source.send(net.in(), slot.packets[i]);
  net.counts(20);
  for (size_t i = 40; i < 52; i++) net.tier2_source.send(net.in(), slot.packets[i]);
  CHECK(same_packets(net.wants_recovered.receive(64), slot.packets));
  CHECK_EQ(net.wants_recovered_narrow.receive(20).size(), 20u);
  CHECK_EQ(net.recovered_sent(2), 0u);
}

TEST(relay_sends_no_recovered_shreds_unless_requested) {
  std::mt19937 random(7);
  const BatchedSlot slot = test::make_batched_slot(test::kSlot, {20}, random);
  test::LoopbackRelay net;
  net.publish(&Relay::publish_leaders,
              test::leader_table(test::batched_slot_leader(), test::kSlot - 100, 10'000));
  for (size_t i = 16; i < 48; i++) net.tier1_source.send(net.in(), slot.packets[i]);
  net.counts(32);
  const auto counter = [&](DeshredCounter which) {
    return net.relay->deshred()->counters().counters[static_cast<size_t>(which)].get();
  };
  CHECK(eventually([&] { return counter(DeshredCounter::shreds_recovered) == 32; }));
  CHECK_EQ(counter(DeshredCounter::shreds_handed_back), 0u);
  CHECK_EQ(net.tier1.receive(32).size(), 32u);
}
