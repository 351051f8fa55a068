// The deshred thread sends subscribers what their tier's sources delivered, once and in full, and
// withdraws what an update-parent marker abandons.
#include <set>

#include "deshred_thread_support.h"
#include "stream_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

void push_for(ShredRing& ring, const Bytes& packet, uint8_t tiers, uint64_t received_ns = 5) {
  QueuedShred* to = ring.place();
  CHECK(to != nullptr);
  if (!to) return;
  *to = {};
  to->received_ns = received_ns;
  to->tiers = tiers;
  std::copy(packet.begin(), packet.end(), to->packet);
  ring.publish();
}

struct Subscriber {
  std::unique_ptr<DeshredThread> thread;
  std::vector<StreamMessage> messages;
  Bytes drained = Bytes(4u << 20);  // once: sanitizers make new memory expensive
  const uint32_t worker_count;
  uint32_t generation = 0;

  explicit Subscriber(uint32_t workers = 1) : worker_count(workers) {
    std::string error;
    thread = DeshredThread::start(workers, error);
    CHECK_EQ(error, std::string());
  }
  // Publishes and waits until the thread uses the filters: a slot of its own shows it.
  void publish(const std::vector<StreamFilter>& filters, uint8_t entry_tiers = 0) {
    const Bytes table = filter_table(filters, entry_tiers);
    CHECK_EQ(thread->streams().publish(table.data(), table.size(), ++generation), std::string());
  }
  void drain() {
    const size_t bytes = thread->drain_streams(drained.data(), drained.size(), SIZE_MAX);
    for (StreamMessage& message :
         messages_of({drained.begin(), drained.begin() + static_cast<long>(bytes)}))
      if (message.head.kind != StreamMessageKind::filters_applied)
        messages.push_back(std::move(message));
  }
  // Waits until the thread has read all shreds, and `batches` batches in its own decoder, and
  // drains. A tier may complete a batch with a later shred than this decoder.
  void drain_after(uint64_t batches) {
    CHECK(eventually(
        [&] { return counter(DeshredCounter::batches) >= batches && has_read_everything(); }));
    drain();
  }
  // An empty ring has space for all its elements.
  bool has_read_everything() const {
    for (uint32_t worker = 0; worker < worker_count; worker++)
      if (!thread->ring_of(worker).place(kQueuedShredsMax - 1)) return false;
    return true;
  }
  uint64_t counter(DeshredCounter counter) const {
    return thread->counters().counters[static_cast<size_t>(counter)].get();
  }
  std::vector<const StreamMessage*> of(StreamMessageKind kind, uint8_t tier = 0) const {
    std::vector<const StreamMessage*> out;
    for (const StreamMessage& message : messages)
      if (message.head.kind == kind && message.head.tier == tier) out.push_back(&message);
    return out;
  }
};

std::vector<std::string> signatures_of(const std::vector<const StreamMessage*>& messages) {
  std::vector<std::string> out;
  for (const StreamMessage* message : messages) out.push_back(hex(&message->content[1], 64));
  return out;
}

std::vector<std::string> all_signatures(const BatchedSlot& slot) {
  std::vector<std::string> out;
  for (const auto& batch : slot.batches)
    out.insert(out.end(), batch.signatures.begin(), batch.signatures.end());
  return out;
}

}  // namespace

TEST(streams_deliver_each_transaction_with_its_place_and_the_slots_events) {
  std::mt19937 random(1);
  const BatchedSlot slot = make_batched_slot(77, {30, 40}, random);
  Subscriber subscriber;
  subscriber.publish({{.id = 9}});
  for (size_t i = 0; i < slot.packets.size(); i++)
    push_for(subscriber.thread->ring_of(0), slot.packets[i], 1, 1000 + i);
  subscriber.drain_after(2);
  const auto transactions = subscriber.of(StreamMessageKind::transaction);
  CHECK(signatures_of(transactions) == all_signatures(slot));
  const StreamMessage& last = *transactions.back();
  CHECK_EQ(last.head.slot, 77u);
  CHECK_EQ(last.head.generation, 1u);
  CHECK_EQ(last.head.batch_index, slot.batches[1].first_index);
  CHECK_EQ(last.head.ordinal, 39u);
  CHECK_EQ(last.head.arrival_ns, 1000u + 64 + last.head.shred_index - last.head.batch_index);
  CHECK(last.filters == std::vector<uint16_t>{9});
  CHECK_EQ(last.head.is_vote, 0u);
  CHECK_EQ(subscriber.messages.front().head.kind, StreamMessageKind::slot_begin);
  CHECK_EQ(subscriber.messages.front().head.parent, 76u);
  CHECK_EQ(subscriber.of(StreamMessageKind::slot_begin).size(), 1u);
  CHECK_EQ(subscriber.of(StreamMessageKind::slot_complete).size(), 1u);
  CHECK_EQ(subscriber.counter(DeshredCounter::stream_lost), 0u);
  CHECK(eventually([&] {
    return subscriber.counter(DeshredCounter::stream_messages) == subscriber.messages.size();
  }));
}

TEST(streams_deliver_batches_byte_for_byte) {
  std::mt19937 random(2);
  const std::vector<Bytes> batches{
      entry_batch({{small_transaction(random)}, {}}), block_marker(BlockMarkerKind::footer, 300),
      entry_batch({std::vector<Bytes>(400, small_transaction(random))})};
  const BatchedSlot slot = make_batched_slot(78, batches);
  Subscriber subscriber;
  subscriber.publish({}, 1);
  std::vector<Bytes> packets = slot.packets;
  std::shuffle(packets.begin(), packets.end(), random);
  for (const Bytes& packet : packets) push_for(subscriber.thread->ring_of(0), packet, 1);
  subscriber.drain_after(3);
  const auto entries = subscriber.of(StreamMessageKind::entries);
  CHECK_EQ(entries.size(), 3u);
  std::map<uint32_t, Bytes> seen;
  for (const StreamMessage* message : entries) seen[message->head.batch_index] = message->content;
  for (size_t i = 0; i < batches.size(); i++)
    CHECK(seen[slot.batches[i].first_index] == batches[i]);
  CHECK(subscriber.of(StreamMessageKind::transaction).empty());
}

TEST(streams_give_a_tier_only_what_its_own_sources_delivered) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; round++) {
    const BatchedSlot slot = make_batched_slot(100, {12, 12}, random);
    Subscriber subscriber;
    subscriber.publish({{.id = 1, .tier = 0}, {.id = 2, .tier = 1}}, 3);
    // Some shreds come from sources for own use (no tier), some from tier 1 only; a few of them are
    // delivered to tier 0 later.
    std::vector<Bytes> packets = slot.packets;
    std::shuffle(packets.begin(), packets.end(), random);
    std::array<std::vector<std::set<uint32_t>>, 2> delivered;
    for (auto& sets : delivered) sets.resize(2);
    for (const Bytes& packet : packets) {
      Shred shred;
      CHECK(check_packet(packet.data(), packet.size(), shred) == Verdict::first);
      const uint8_t tiers = std::array<uint8_t, 4>{0, 2, 3, 3}[random() % 4];
      push_for(subscriber.thread->ring_of(0), packet, tiers);
      uint8_t total = tiers;
      if (tiers == 2 && random() % 2) {
        push_for(subscriber.thread->ring_of(0), packet, 1);
        total = 3;
      }
      for (uint32_t tier = 0; tier < 2; tier++)
        if (total >> tier & 1)
          delivered[tier][fec_set_number(shred.fec_set_index)].insert(shred.leaf);
    }
    subscriber.drain_after(2);
    for (uint8_t tier = 0; tier < 2; tier++) {
      // A batch arrives in full exactly if 32 shreds of its set, and the end of the set before it,
      // were delivered to the tier.
      const bool first = delivered[tier][0].size() >= 32;
      const bool second = first && delivered[tier][1].size() >= 32;
      const auto entries = subscriber.of(StreamMessageKind::entries, tier);
      CHECK(entries.size() >= size_t{first} + size_t{second});
      if (!first)
        for (const StreamMessage* message : entries) CHECK(message->head.batch_index != 0);
      for (const StreamMessage* message : subscriber.of(StreamMessageKind::transaction, tier))
        CHECK(message->filters == std::vector<uint16_t>{static_cast<uint16_t>(1 + tier)});
    }
  }
}

TEST(streams_send_nothing_of_sources_for_own_use) {
  std::mt19937 random(4);
  const BatchedSlot slot = make_batched_slot(101, {20}, random);
  Subscriber subscriber;
  subscriber.publish({{.id = 1}}, 1);
  // 31 forwarded shreds do not suffice to recover the set, whatever the others deliver.
  for (size_t i = 0; i < slot.packets.size(); i++)
    push_for(subscriber.thread->ring_of(0), slot.packets[i], i >= 33 ? 1 : 0);
  subscriber.drain_after(1);
  CHECK(subscriber.of(StreamMessageKind::transaction).empty());
  CHECK(subscriber.of(StreamMessageKind::entries).empty());
}

TEST(streams_decode_nothing_without_subscribers) {
  std::mt19937 random(5);
  const BatchedSlot slot = make_batched_slot(102, {20}, random);
  Subscriber subscriber;
  for (const Bytes& packet : slot.packets) push_for(subscriber.thread->ring_of(0), packet, 1);
  subscriber.drain_after(1);
  CHECK(subscriber.messages.empty());
  CHECK_EQ(subscriber.thread->streams().wanted_tiers().load(), 0);
  subscriber.publish({{.id = 1, .tier = 3}}, 4);
  CHECK_EQ(subscriber.thread->streams().wanted_tiers().load(), 4 | 8);
  subscriber.publish({});
  CHECK_EQ(subscriber.thread->streams().wanted_tiers().load(), 0);
}

TEST(streams_restart_a_slot_in_any_order) {
  std::mt19937 random(6);
  const Bytes header = block_marker(BlockMarkerKind::header, 41);
  for (int round = 0; round < 40; round++) {
    const std::vector<Bytes> before{small_transaction(random), small_transaction(random)};
    // One transaction comes again after the marker, another one is new.
    const std::vector<Bytes> after{before[0], small_transaction(random)};
    const BatchedSlot slot = make_batched_slot(
        200, {header, entry_batch({before}), block_marker(BlockMarkerKind::update_parent, 41),
              entry_batch({after})});
    Subscriber subscriber;
    subscriber.publish({{.id = 1}});
    std::vector<Bytes> packets = slot.packets;
    std::shuffle(packets.begin(), packets.end(), random);
    for (const Bytes& packet : packets) push_for(subscriber.thread->ring_of(0), packet, 1);
    subscriber.drain_after(4);
    std::multimap<std::string, uint32_t> present;  // batch by signature
    for (const StreamMessage& message : subscriber.messages) {
      const uint32_t batch = message.head.batch_index;
      if (message.head.kind == StreamMessageKind::transaction) {
        present.emplace(hex(&message.content[1], 64), batch);
      } else if (message.head.kind == StreamMessageKind::restart) {
        CHECK_EQ(batch, slot.batches[2].first_index);
        CHECK_EQ(message.head.parent, 0x0101010101010101u);
        CHECK_EQ(message.content.size(), 32u);
        std::erase_if(present, [&](const auto& one) { return one.second < batch; });
      }
    }
    std::multimap<std::string, uint32_t> expected;
    for (const Bytes& transaction : after)
      expected.emplace(hex(&transaction[1], 64), slot.batches[3].first_index);
    CHECK_EQ(subscriber.of(StreamMessageKind::restart).size(), 1u);
    CHECK(present == expected);
  }
}

TEST(streams_send_a_transaction_that_a_block_repeats_once) {
  std::mt19937 random(8);
  const Bytes repeated = small_transaction(random);
  const BatchedSlot slot =
      make_batched_slot(300, {entry_batch({{repeated, repeated}}), entry_batch({{repeated}})});
  const BatchedSlot fork = make_batched_slot(301, {entry_batch({{repeated}})});
  Subscriber subscriber;
  subscriber.publish({{.id = 1}});
  for (const auto* each : {&slot, &fork})
    for (const Bytes& packet : each->packets) push_for(subscriber.thread->ring_of(0), packet, 1);
  subscriber.drain_after(3);
  const auto sent = subscriber.of(StreamMessageKind::transaction);
  CHECK_EQ(sent.size(), 2u);
  CHECK_EQ(sent[0]->head.slot + sent[1]->head.slot, 601u);
  CHECK(eventually([&] { return subscriber.counter(DeshredCounter::stream_repeated) == 2; }));
}

TEST(streams_count_what_a_full_ring_loses_for_each_filter) {
  std::mt19937 random(9);
  Subscriber subscriber;
  subscriber.publish({{.id = 4}, {.id = 5, .include = {account_of(1)}}}, 1);
  // Each batch of about 0.6 MB costs the ring that much as entries; nobody drains.
  const std::vector<Bytes> large(4000, small_transaction(random));
  uint64_t batches = 0;
  StreamLosses losses;
  for (uint64_t slot = 400; slot < 440; slot++) {
    const BatchedSlot made = make_batched_slot(slot, {entry_batch({large})});
    for (const Bytes& packet : made.packets) {
      ShredRing& ring = subscriber.thread->ring_of(0);
      CHECK(eventually([&] { return ring.place() != nullptr; }));
      push_for(ring, packet, 1);
    }
    batches++;
  }
  CHECK(eventually([&] { return subscriber.counter(DeshredCounter::batches) == batches; }));
  CHECK(eventually([&] { return subscriber.counter(DeshredCounter::stream_lost) > 0; }));
  subscriber.thread->streams().read_losses(losses);
  subscriber.drain();
  while (subscriber.thread->streams().message_ring().next_bytes() > 0) subscriber.drain();
  const uint64_t entries = subscriber.of(StreamMessageKind::entries).size();
  CHECK_EQ(entries + losses.entries[0], batches);
  CHECK(losses.entries[0] > 0);
  CHECK_EQ(losses.by_filter[5], 0u);
  const auto sent = subscriber.of(StreamMessageKind::transaction).size();
  CHECK_EQ(sent + losses.by_filter[4], batches);  // one transaction, repeated in its block
  const uint64_t events = subscriber.of(StreamMessageKind::slot_begin).size() +
                          subscriber.of(StreamMessageKind::slot_complete).size();
  CHECK_EQ(events + losses.events[0], 2 * batches);
  CHECK_EQ(subscriber.thread->streams().lost(),
           losses.entries[0] + losses.by_filter[4] + losses.events[0]);
}

TEST(streams_notify_once_until_they_are_drained) {
  struct Counting : WakeUpNotifier {
    std::atomic<int> count{0};
    void notify() override { count++; }
  };
  std::mt19937 random(10);
  Counting notifier;
  Subscriber subscriber;
  subscriber.thread->set_stream_notifier(&notifier);
  subscriber.publish({{.id = 1}});
  for (uint64_t slot = 500; slot < 503; slot++) {
    for (const Bytes& packet : make_batched_slot(slot, {5}, random).packets)
      push_for(subscriber.thread->ring_of(0), packet, 1);
    CHECK(eventually([&] { return subscriber.counter(DeshredCounter::batches) == slot - 499; }));
    CHECK(eventually([&] { return notifier.count == static_cast<int>(slot - 499); }));
    subscriber.drain();
  }
  CHECK_EQ(subscriber.of(StreamMessageKind::transaction).size(), 15u);
  subscriber.thread->set_stream_notifier(nullptr);
}

TEST(streams_swap_filters_under_load) {
  std::mt19937 random(11);
  Subscriber subscriber;
  std::atomic<bool> stopped{false};
  std::thread changer([&] {
    for (uint16_t id = 0; !stopped; id = static_cast<uint16_t>((id + 1) % 4000))
      subscriber.publish({{.id = id, .include = {account_of(id)}}, {.id = 4001}}, id % 2);
  });
  for (uint64_t slot = 600; slot < 640; slot++) {
    for (const Bytes& packet : make_batched_slot(slot, {20}, random).packets)
      push_for(subscriber.thread->ring_of(0), packet, 1);
    CHECK(eventually([&] { return subscriber.counter(DeshredCounter::batches) == slot - 599; }));
    subscriber.drain();
  }
  stopped = true;
  changer.join();
  for (const StreamMessage* message : subscriber.of(StreamMessageKind::transaction))
    CHECK(message->filters == std::vector<uint16_t>{4001});
}

TEST(streams_carry_loaded_addresses_and_match_them) {
  std::mt19937 random(12);
  const StreamAccount table = account_of(1000), other = account_of(1001);
  Subscriber subscriber;
  LookupResolver& lookups = subscriber.thread->streams().lookups();
  const Bytes changes = lookup_changes({{table, {account_of(5), account_of(6)}}});
  CHECK_EQ(lookups.change(changes.data(), changes.size()), std::string());
  subscriber.publish(
      {{.id = 1, .require = {account_of(5)}}, {.id = 2, .exclude = {account_of(6)}}});
  const std::vector<Bytes> transactions{
      transaction_with_lookups({account_of(9)}, {{table, {1}, {0}}}, random),
      transaction_with_lookups({account_of(9)}, {{table, {0}, {}}, {other, {0}, {}}}, random),
      transaction_of({account_of(9)}, random)};
  const BatchedSlot slot = make_batched_slot(700, {entry_batch({transactions})});
  for (const Bytes& packet : slot.packets) push_for(subscriber.thread->ring_of(0), packet, 1);
  subscriber.drain_after(1);
  const auto sent = subscriber.of(StreamMessageKind::transaction);
  CHECK_EQ(sent.size(), 3u);
  if (sent.size() != 3) return;
  CHECK_EQ(sent[0]->head.lookups, LookupState::resolved);
  CHECK_EQ(sent[0]->head.loaded_writable, 1u);
  CHECK_EQ(sent[0]->head.loaded_readonly, 1u);
  CHECK(accounts_in(sent[0]->loaded) == (std::vector{account_of(6), account_of(5)}));
  CHECK(sent[0]->filters == std::vector<uint16_t>{1});
  // The known address of the second transaction matches; the message names none.
  CHECK_EQ(sent[1]->head.lookups, LookupState::unresolved);
  CHECK(sent[1]->loaded.empty());
  CHECK(sent[1]->filters == (std::vector<uint16_t>{1, 2}));
  CHECK_EQ(sent[2]->head.lookups, LookupState::none);
  CHECK(sent[2]->filters == std::vector<uint16_t>{2});
  LookupReport report;
  CHECK(eventually([&] { return lookups.next_report(report); }));
  CHECK(report.table == other);
  CHECK(eventually([&] {
    return subscriber.counter(DeshredCounter::stream_lookups) == 2 &&
           subscriber.counter(DeshredCounter::stream_unresolved) == 1;
  }));
}

TEST(streams_swap_lookup_tables_under_load) {
  std::mt19937 random(13);
  const StreamAccount table = account_of(1000);
  Subscriber subscriber;
  subscriber.publish({{.id = 1}});
  LookupResolver& lookups = subscriber.thread->streams().lookups();
  std::atomic<bool> stopped{false};
  // Each version has its own address, so that a mixture would be seen.
  std::thread changer([&] {
    for (uint32_t i = 0; !stopped; i++) {
      const std::vector<StreamAccount> addresses(256, account_of(i));
      const Bytes changes =
          lookup_changes({{table, addresses},
                          {account_of(2000 + i % 100), addresses, 0, 0, i},
                          {.table = account_of(2000 + (i + 50) % 100), .is_removal = true}});
      CHECK_EQ(lookups.change(changes.data(), changes.size()), std::string());
      LookupReport report;
      while (lookups.next_report(report)) CHECK(report.slot >= 800);
    }
  });
  for (uint64_t slot = 800; slot < 840; slot++) {
    std::vector<Bytes> transactions;
    for (uint8_t i = 0; i < 20; i++)
      transactions.push_back(transaction_with_lookups(
          {account_of(9)}, {{table, {i, 255}, {7}}, {account_of(2000u + i), {0}, {}}}, random));
    for (const Bytes& packet : make_batched_slot(slot, {entry_batch({transactions})}).packets)
      push_for(subscriber.thread->ring_of(0), packet, 1);
    CHECK(eventually([&] { return subscriber.counter(DeshredCounter::batches) == slot - 799; }));
    subscriber.drain();
  }
  stopped = true;
  changer.join();
  CHECK_EQ(subscriber.of(StreamMessageKind::transaction).size(), 40u * 20);
  for (const StreamMessage* message : subscriber.of(StreamMessageKind::transaction)) {
    const std::vector<StreamAccount> loaded = accounts_in(message->loaded);
    if (message->head.lookups != LookupState::resolved) continue;
    CHECK_EQ(loaded.size(), 4u);
    CHECK(loaded[0] == loaded[1] && loaded[0] == loaded[3]);
  }
}
