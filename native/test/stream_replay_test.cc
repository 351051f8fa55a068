// A subscriber that begins with the history gets every transaction from its slot on, once and in
// order, wherever the seam between the history and what is live lies.
#include <map>

#include "deshred_thread_support.h"
#include "stream_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

constexpr size_t kHistoryBytes = 64u << 20;
constexpr uint64_t kUnlimited = UINT64_MAX;

// The control plane and the deshred thread in one thread, one step at a time.
struct Harness {
  Streams streams;
  std::vector<StreamFilter> filters{{.id = 0}};  // the observer, which is always live
  std::vector<ReplayRequest> replays;
  std::vector<StreamMessage> messages;
  Bytes drained = Bytes(4u << 20);  // once: sanitizers make new memory expensive
  uint32_t generation = 0;

  explicit Harness(size_t history_bytes = kHistoryBytes) {
    streams.set_history_bytes(history_bytes);
    publish();
  }
  void publish() {
    const Bytes table = filter_table(filters, 0, 1, replays);
    CHECK_EQ(streams.publish(table.data(), table.size(), ++generation), std::string());
    streams.update();
  }
  void add(const Bytes& packet, uint64_t received_ns = 5) {
    Shred shred;
    CHECK(check_packet(packet.data(), packet.size(), shred) == Verdict::first);
    streams.see(shred);
    streams.add(packet.data(), shred, 1, received_ns);
  }
  void resume(uint16_t id, uint64_t from_slot, StreamFilter filter, uint64_t credit = kUnlimited) {
    filter.id = id;
    streams.grant_replay(id, credit);
    filters.push_back(filter);
    replays.push_back({id, 0, from_slot, {id}});
    publish();
  }
  void drain() {
    while (const size_t bytes = streams.message_ring().drain(drained.data(), drained.size()))
      for (StreamMessage& message :
           messages_of({drained.begin(), drained.begin() + static_cast<long>(bytes)}))
        messages.push_back(std::move(message));
  }
  void finish() {
    while (streams.replay_some()) drain();
    drain();
  }
  // Transactions of the subscriber with this filter, whose replay has the same number. The control
  // plane leaves out live ones of lower slots.
  std::vector<std::string> of(uint16_t id, uint64_t from_slot) const {
    std::vector<std::string> out;
    for (const StreamMessage& message : messages) {
      const StreamMessageHead& head = message.head;
      if (head.kind != StreamMessageKind::transaction) continue;
      if (std::find(message.filters.begin(), message.filters.end(), id) == message.filters.end())
        continue;
      CHECK(head.replay == 0 || (head.replay == id && head.slot >= from_slot));
      if (head.slot >= from_slot) out.push_back(hex(&message.content[1], 64));
    }
    return out;
  }
  size_t count(StreamMessageKind kind, uint16_t replay) const {
    size_t found = 0;
    for (const StreamMessage& message : messages)
      found += message.head.kind == kind && message.head.replay == replay;
    return found;
  }
  const StreamMessage* last(uint16_t replay) const {
    const StreamMessage* found = nullptr;
    for (const StreamMessage& message : messages)
      if (message.head.replay == replay) found = &message;
    return found;
  }
};

// The model: everything that the observer saw from this slot on, in its order.
std::vector<std::string> expected_of(const Harness& harness, uint64_t from_slot) {
  return harness.of(0, from_slot);
}

// Shreds of these slots, shuffled within a window, so that slots overlap.
std::vector<Bytes> shuffled_slots(uint64_t first, size_t count, std::mt19937& random) {
  std::vector<Bytes> packets;
  for (uint64_t slot = first; slot < first + count; slot++)
    for (const Bytes& packet : make_batched_slot(slot, {5, 9, 3}, random).packets)
      packets.push_back(packet);
  for (size_t i = 0; i + 1 < packets.size(); i++)
    std::swap(packets[i], packets[i + random() % std::min<size_t>(120, packets.size() - i)]);
  return packets;
}

}  // namespace

TEST(stream_replays_neither_repeat_nor_lose_at_any_seam) {
  for (uint32_t seed = 1; seed <= 40; seed++) {
    std::mt19937 random(seed);
    Harness harness;
    const std::vector<Bytes> packets = shuffled_slots(100, 8, random);
    std::map<uint16_t, uint64_t> resumed;
    uint16_t next_id = 1;
    for (size_t i = 0; i < packets.size();) {
      switch (random() % 8) {
        case 0:
          // Slot 100 has begun when the history begins. The id is that of the filter, too.
          if (next_id < 20 && i > 200) {
            resumed[next_id] = 102 + random() % 3;
            const uint64_t credit = random() % 2 ? kUnlimited : random() % 5000;
            harness.resume(next_id, resumed[next_id], {}, credit);
            next_id++;
          }
          break;
        case 1:
          harness.streams.replay_some();
          break;
        case 2:
          for (const auto& [id, slot] : resumed)
            if (random() % 2) harness.streams.grant_replay(id, random() % 100'000);
          break;
        case 3:
          harness.drain();
          break;
        case 4:
          harness.publish();  // another subscriber changed its filters
          break;
        default:
          for (size_t left = random() % 20; left > 0 && i < packets.size(); left--)
            harness.add(packets[i++]);
      }
    }
    for (const auto& [id, slot] : resumed) harness.streams.grant_replay(id, kUnlimited);
    harness.finish();
    CHECK(next_id > 2);
    for (const auto& [id, slot] : resumed) {
      if (harness.count(StreamMessageKind::replay_refused, id) > 0) {
        CHECK(harness.of(id, slot).empty());
        continue;
      }
      CHECK(harness.of(id, slot) == expected_of(harness, slot));
      CHECK_EQ(harness.count(StreamMessageKind::replay_end, id), 1u);
    }
    CHECK_EQ(harness.streams.lost(), 0u);
  }
}

TEST(streams_apply_other_filters_between_two_messages) {
  std::mt19937 random(11);
  for (size_t seam = 0; seam < 40; seam++) {
    Harness harness;
    const std::vector<Bytes> packets = shuffled_slots(100, 2, random);
    const size_t change = random() % packets.size();
    harness.filters.push_back({.id = 1});
    harness.publish();
    for (size_t i = 0; i < packets.size(); i++) {
      if (i == change) {
        harness.filters.back().id = 2;
        harness.publish();
      }
      harness.add(packets[i]);
    }
    harness.drain();
    // Both filters together match what the observer sees, and the report stands between them.
    std::vector<std::string> sent = harness.of(1, 0);
    for (std::string& signature : harness.of(2, 0)) sent.push_back(std::move(signature));
    CHECK(sent == expected_of(harness, 0));
    uint32_t applied = 0;
    for (const StreamMessage& message : harness.messages) {
      const StreamMessageHead& head = message.head;
      if (head.kind == StreamMessageKind::filters_applied) CHECK_EQ(++applied, head.generation);
      else CHECK_EQ(head.generation, applied);
    }
    CHECK_EQ(applied, harness.generation);
  }
}

TEST(streams_report_applied_filters_once_a_full_ring_has_room) {
  Harness harness;
  StreamRing& ring = harness.streams.message_ring();
  while (ring.push({}, {}, Bytes(1u << 20))) continue;
  while (ring.push({}, {}, {})) continue;
  harness.publish();
  harness.streams.update();
  harness.drain();
  CHECK_EQ(harness.count(StreamMessageKind::filters_applied, 0), 1u);  // the first ones
  harness.streams.update();
  CHECK(harness.streams.take_written());
  harness.streams.update();
  harness.drain();
  CHECK_EQ(harness.count(StreamMessageKind::filters_applied, 0), 2u);
  CHECK_EQ(harness.last(0)->head.generation, harness.generation);
}

TEST(streams_are_live_while_somebody_reads_them) {
  Harness harness;
  CHECK(harness.streams.is_live() && harness.streams.is_active());
  harness.filters.clear();
  harness.publish();
  CHECK(!harness.streams.is_live() && harness.streams.is_active());
}

TEST(stream_replays_refuse_what_the_history_does_not_have) {
  std::mt19937 random(7);
  Harness harness;
  harness.resume(1, 100, {});
  harness.finish();
  CHECK_EQ(harness.last(1)->head.kind, StreamMessageKind::replay_refused);
  CHECK_EQ(harness.last(1)->head.slot, 0u);
  CHECK_EQ(harness.last(1)->head.parent, 0u);
  for (const Bytes& packet : make_batched_slot(100, {3}, random).packets) harness.add(packet);
  for (const Bytes& packet : make_batched_slot(101, {3}, random).packets) harness.add(packet);
  for (uint16_t id = 2; id <= 4; id++) harness.resume(id, id == 2 ? 100 : id == 3 ? 101 : 200, {});
  harness.finish();
  for (const uint16_t id : {uint16_t{2}, uint16_t{4}}) {
    CHECK_EQ(harness.last(id)->head.kind, StreamMessageKind::replay_refused);
    CHECK_EQ(harness.last(id)->head.slot, 101u);
    CHECK_EQ(harness.last(id)->head.parent, 101u);
  }
  CHECK_EQ(harness.of(3, 101).size(), 3u);
}

TEST(stream_replays_end_when_the_history_overtakes_them) {
  std::mt19937 random(8);
  Harness harness(StreamHistory::kBytesMin);
  for (uint64_t slot = 100; slot < 103; slot++)
    for (const Bytes& packet : make_batched_slot(slot, {5}, random).packets) harness.add(packet);
  harness.resume(1, 101, {}, 1);  // one message
  harness.streams.replay_some();
  for (uint64_t slot = 103; slot < 130; slot++) {
    for (const Bytes& packet : make_batched_slot(slot, {300}, random).packets) harness.add(packet);
    harness.drain();
  }
  harness.streams.grant_replay(1, kUnlimited);
  harness.finish();
  CHECK_EQ(harness.last(1)->head.kind, StreamMessageKind::replay_overtaken);
  CHECK(harness.last(1)->head.slot > 101u);
  StreamHistoryCounts counts;
  harness.streams.read_history(counts);
  CHECK(counts.bytes <= StreamHistory::kBytesMin);
  CHECK(counts.oldest[0] > 103u);
  // Every available slot is whole.
  harness.resume(2, counts.oldest[0], {});
  harness.finish();
  CHECK(harness.of(2, counts.oldest[0]) == expected_of(harness, counts.oldest[0]));
}

TEST(stream_history_drops_what_is_older_than_two_minutes) {
  const auto history = StreamHistory::create(StreamHistory::kBytesMin);
  StreamMessageHead head{};
  for (uint64_t slot = 1; slot <= 10; slot++) {
    head.slot = slot;
    head.arrival_ns = slot * 20'000'000'000;
    history->append(head, Bytes(100, static_cast<uint8_t>(slot)));
  }
  // Slot 4 is 120 s older than slot 10.
  CHECK_EQ(history->oldest(0), 4u);
  uint64_t position = history->begin();
  for (uint64_t slot = 4; slot <= 10; slot++) CHECK_EQ(history->read(position).head.slot, slot);
  CHECK_EQ(position, history->end());
}

TEST(stream_history_keeps_records_whole_around_its_end) {
  std::mt19937 random(9);
  const auto history = StreamHistory::create(StreamHistory::kBytesMin);
  std::vector<std::pair<uint64_t, Bytes>> model;
  StreamMessageHead head{};
  for (uint64_t slot = 1; slot <= 5000; slot++) {
    head.slot = slot;
    Bytes content(random() % 4000, static_cast<uint8_t>(slot));
    history->append(head, content);
    model.emplace_back(slot, std::move(content));
    if (slot % 500 != 0) continue;
    size_t at = static_cast<size_t>(history->oldest(0)) - 1;
    for (uint64_t position = history->begin(); position != history->end(); at++) {
      const StreamHistory::Record record = history->read(position);
      CHECK_EQ(record.head.slot, model[at].first);
      CHECK(Bytes(record.content.begin(), record.content.end()) == model[at].second);
    }
    CHECK_EQ(at, model.size());
    CHECK(history->bytes() <= StreamHistory::kBytesMin);
  }
}

TEST(stream_tables_refuse_malformed_replays) {
  std::string error;
  const auto refused = [&](const std::vector<ReplayRequest>& replays, uint8_t history = 1) {
    const Bytes table = filter_table({{.id = 0}}, 0, history, replays);
    return !FilterIndex::parse(table.data(), table.size(), error);
  };
  CHECK(!refused({{1, 0, 5, {0}}, {2, 0, 5, {}}}));
  CHECK(refused({{0, 0, 5, {}}}));
  CHECK(refused({{1, 8, 5, {}}}));
  CHECK(refused({{1, 0, 5, {}}}, 2));
  CHECK(refused({{1, 0, 5, {}}, {65, 0, 5, {}}}));
  CHECK(refused({{1, 0, 5, {kStreamFilterIds}}}));
  CHECK(refused(std::vector<ReplayRequest>(65, {1, 0, 5, {}})));
  const Bytes table = filter_table({{.id = 0}}, 0, 1, {{1, 0, 5, {0}}});
  for (size_t length = 0; length < table.size(); length++)
    CHECK(!FilterIndex::parse(table.data(), length, error));
}
