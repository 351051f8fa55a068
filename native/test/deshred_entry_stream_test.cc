#include "deshred/entry_stream.h"

#include <algorithm>

#include "check.h"
#include "transaction_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

const Report kNothing{{}, true, true, 0, 0};

Bytes with_bytes(Bytes bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

Bytes u64_bytes(uint64_t value) {
  Bytes bytes;
  append(bytes, value);
  return bytes;
}

Bytes small_transaction(TransactionVersion version) {
  return transaction_of_bytes(version, 400).bytes;
}

// Two ticks around an entry with one transaction of each version, and the offset at which each
// event is due.
struct SmallBatch {
  Bytes bytes;
  std::vector<Event> events;
};
SmallBatch small_batch() {
  SmallBatch batch;
  append(batch.bytes, uint64_t{3});
  const auto add_entry = [&](uint64_t hashes, uint8_t hash, uint64_t transactions) {
    append_entry(batch.bytes, hashes, hash, transactions);
    batch.events.push_back({'e', hashes, transactions, Bytes(32, hash), batch.bytes.size()});
  };
  add_entry(12500, 0xa1, 0);
  add_entry(~uint64_t{0}, 0xa2, 3);
  uint64_t ordinal = 0;
  for (const auto version :
       {TransactionVersion::legacy, TransactionVersion::v0, TransactionVersion::v1}) {
    const Bytes transaction = small_transaction(version);
    batch.bytes = with_bytes(batch.bytes, transaction);
    batch.events.push_back({'t', ordinal++, 0, transaction, batch.bytes.size()});
  }
  add_entry(1, 0xa3, 0);
  return batch;
}

void check_events(const std::vector<Event>& events, const std::vector<Event>& expected) {
  CHECK_EQ(events.size(), expected.size());
  for (size_t i = 0; i < std::min(events.size(), expected.size()); i++) {
    CHECK(events[i] == expected[i]);
    CHECK_EQ(events[i].at, expected[i].at);
  }
}

std::vector<size_t> every_position(size_t length) {
  std::vector<size_t> cuts;
  for (size_t at = 1; at < length; at++) cuts.push_back(at);
  return cuts;
}

}  // namespace

TEST(entry_stream_reports_each_part_at_its_last_byte) {
  const SmallBatch batch = small_batch();
  const Report report = read_batch(batch.bytes, every_position(batch.bytes.size()));
  CHECK(report.fed && report.ended);
  CHECK_EQ(report.entries, uint64_t{3});
  CHECK_EQ(report.transactions, 3u);
  check_events(report.events, batch.events);
}

TEST(entry_stream_reports_the_layout_of_its_transactions) {
  std::mt19937_64 random(9);
  for (const auto version :
       {TransactionVersion::legacy, TransactionVersion::v0, TransactionVersion::v1}) {
    const WrittenTransaction written = write_transaction(random_parts(random, version));
    Bytes batch = u64_bytes(1);
    append_entry(batch, 1, 1, 2);
    batch = with_bytes(with_bytes(batch, written.bytes), written.bytes);
    EntryStream stream;
    RecordingSink sink;
    // The first is read directly from the piece, the second spans two pieces.
    const size_t cut = batch.size() - 20;
    CHECK(stream.feed(batch.data(), cut, sink));
    CHECK(stream.feed(batch.data() + cut, 20, sink));
    CHECK_EQ(sink.transactions.size(), size_t{2});
    for (const Transaction& t : sink.transactions) CHECK_EQ(difference(t, written.layout), "");
  }
}

TEST(entry_stream_same_events_for_any_cut_in_two) {
  const SmallBatch batch = small_batch();
  const Report whole = read_batch(batch.bytes, std::vector<size_t>{});
  CHECK(whole.ended && whole.kinds() == "eettte");
  for (size_t cut = 0; cut <= batch.bytes.size(); cut++)
    CHECK(read_batch(batch.bytes, std::vector<size_t>{cut}) == whole);
}

TEST(entry_stream_same_events_for_any_cut_in_three) {
  Bytes batch = u64_bytes(2);
  append_entry(batch, 1, 1, 1);
  TestTransaction parts;
  parts.keys = 1;
  batch = with_bytes(batch, write_transaction(parts).bytes);
  append_entry(batch, 2, 2, 0);
  const Report whole = read_batch(batch, std::vector<size_t>{});
  CHECK(whole.ended && whole.kinds() == "ete");
  for (size_t first = 0; first <= batch.size(); first++)
    for (size_t second = first; second <= batch.size(); second++)
      if (!(read_batch(batch, std::vector<size_t>{first, second}) == whole))
        CHECK_EQ(first, second);
}

TEST(entry_stream_same_events_and_verdict_for_any_bytes_and_any_pieces) {
  std::mt19937_64 random(20261121);
  size_t good = 0;
  for (int round = 0; round < 1500; round++) {
    Bytes batch = random_batch(random);
    if (round % 3 == 1) batch.resize(random() % (batch.size() + 1));
    if (round % 3 == 2)
      for (size_t i = random() % 4; i > 0; i--)
        batch[random() % batch.size()] = static_cast<uint8_t>(random());
    if (round % 10 == 9) batch[0] = 0, append_marker(batch, 0, 0), batch.erase(batch.begin() + 8);
    const Report whole = read_batch(batch, std::vector<size_t>{});
    good += whole.ended;
    for (const size_t piece_max : {size_t{1}, size_t{7}, size_t{60}, size_t{963}})
      CHECK(read_batch(batch, random, piece_max) == whole);
  }
  CHECK(good > 400 && good < 1400);
}

TEST(entry_stream_is_complete_only_at_the_end) {
  const Bytes batch = small_batch().bytes;
  for (size_t length = 0; length < batch.size(); length++) {
    const Bytes cut(batch.begin(), batch.begin() + long(length));
    const Report report = read_batch(cut, std::vector<size_t>{});
    CHECK(report.fed);
    CHECK_EQ(report.ended, length == 0);
  }
}

TEST(entry_stream_ignores_bytes_after_the_last_entry) {
  const SmallBatch batch = small_batch();
  const Report report = read_batch(batch.bytes, std::vector<size_t>{});
  for (const size_t trailing : {1, 47, 48, 5000})
    for (const uint8_t value : Bytes{0x00, 0x01, 0xff}) {
      const Bytes longer = with_bytes(batch.bytes, Bytes(trailing, value));
      CHECK(read_batch(longer, std::vector<size_t>{}) == report);
      CHECK(read_batch(longer, {batch.bytes.size()}) == report);
    }
  CHECK(report.ended && report.events == batch.events);
}

TEST(entry_stream_empty_batches) {
  CHECK(read_batch({}, std::vector<size_t>{}) == kNothing);
  CHECK(read_batch({}, {0, 0, 0}) == kNothing);
  for (size_t length = 1; length < 8; length++)
    CHECK((read_batch(Bytes(length, 0), std::vector<size_t>{}) == Report{{}, true, false, 0, 0}));
  // A count of 0 that is not followed by a marker: too short, other versions, other kinds.
  for (size_t length = 8; length < 100; length++) {
    CHECK(read_batch(Bytes(length, 0), std::vector<size_t>{}) == kNothing);
    CHECK(read_batch(Bytes(length, 0), every_position(length)) == kNothing);
  }
  Bytes marker;
  append_marker(marker, 1, 41);
  for (size_t length = 8; length < 13; length++)
    CHECK(read_batch(Bytes(marker.begin(), marker.begin() + long(length)), {8}) == kNothing);
  for (int value = 0; value < 256; value++) {
    Bytes changed = marker;
    changed[9] = static_cast<uint8_t>(value);
    CHECK_EQ(read_batch(changed, {8}) == kNothing, value != 0);
    changed = marker;
    changed[8] = static_cast<uint8_t>(value);
    CHECK_EQ(read_batch(changed, {8}) == kNothing, value != 1);
    changed = marker;
    changed[10] = static_cast<uint8_t>(value);
    CHECK_EQ(read_batch(changed, {8}) == kNothing, value > 3);
  }
}

TEST(entry_stream_markers_of_all_kinds) {
  for (uint8_t kind = 0; kind < 4; kind++) {
    for (const size_t payload_bytes : {0, 1, 41, 63, 64, 65, 300, 65535}) {
      Bytes batch;
      append_marker(batch, kind, payload_bytes);
      const size_t seen = std::min<size_t>(payload_bytes, 64);
      const Bytes payload(batch.begin() + 13, batch.begin() + 13 + long(seen));
      const Event event{'m', kind, payload_bytes, payload, 13 + seen};
      for (const Bytes& trailing : {Bytes{}, Bytes(70, 0xee)}) {
        const Report whole = read_batch(with_bytes(batch, trailing), std::vector<size_t>{});
        CHECK((whole == Report{{event}, true, true, 0, 0}));
      }
      const Report bytewise = read_batch(batch, every_position(batch.size()));
      CHECK(bytewise.fed && bytewise.ended);
      check_events(bytewise.events, {event});
    }
  }
}

TEST(entry_stream_reports_a_truncated_marker_at_the_end) {
  Bytes marker;
  append_marker(marker, 1, 100);
  for (size_t length = 13; length < marker.size(); length++) {
    const Bytes cut(marker.begin(), marker.begin() + long(length));
    const size_t seen = std::min<size_t>(length - 13, 64);
    const Event event{'m', 1, 100, Bytes(marker.begin() + 13, marker.begin() + 13 + long(seen)), 0};
    CHECK((read_batch(cut, std::vector<size_t>{}) == Report{{event}, true, false, 0, 0}));
    CHECK((read_batch(cut, {9, length - 1}) == Report{{event}, true, false, 0, 0}));
  }
}

TEST(entry_stream_ends_once) {
  Bytes marker;
  append_marker(marker, 2, 41);
  EntryStream stream;
  RecordingSink sink;
  CHECK(stream.feed(marker.data(), marker.size() - 1, sink));
  CHECK(!stream.end(sink));
  CHECK(!stream.end(sink));
  CHECK(!stream.feed(marker.data(), marker.size(), sink));
  CHECK_EQ(sink.events.size(), size_t{1});
}

TEST(entry_stream_refuses_counts_beyond_a_slots_capacity) {
  // 32,768 data shreds of 1,203 bytes; an entry has 48 bytes, a transaction at least 38.
  constexpr uint64_t kEntriesMax = 32768ull * 1203 / 48, kTransactionsMax = 32768ull * 1203 / 38;
  Bytes entry;
  append_entry(entry, 1, 1, 0);
  for (const uint64_t count : {kEntriesMax + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
    const Report report = read_batch(with_bytes(u64_bytes(count), entry), std::vector<size_t>{});
    CHECK((report == Report{{}, false, false, 0, 0}));
  }
  const Report most = read_batch(with_bytes(u64_bytes(kEntriesMax), entry), std::vector<size_t>{});
  CHECK(most.fed && !most.ended && most.kinds() == "e");

  for (const uint64_t count : {kTransactionsMax + 1, uint64_t{1} << 63, ~uint64_t{0}}) {
    Bytes batch = u64_bytes(1);
    append_entry(batch, 1, 1, count);
    CHECK((read_batch(batch, std::vector<size_t>{}) == Report{{}, false, false, 0, 0}));
  }
  Bytes batch = u64_bytes(1);
  append_entry(batch, 1, 1, kTransactionsMax);
  const Report many = read_batch(batch, std::vector<size_t>{});
  CHECK(many.fed && !many.ended && many.kinds() == "e");
}

TEST(entry_stream_stays_malformed_until_reset) {
  Bytes bad = u64_bytes(2);
  append_entry(bad, 1, 1, 2);
  bad = with_bytes(bad, small_transaction(TransactionVersion::legacy));
  bad.push_back(0x82);
  const Bytes good = small_batch().bytes;
  EntryStream stream;
  RecordingSink sink;
  CHECK(stream.feed(bad.data(), bad.size() - 1, sink));
  CHECK(!stream.feed(bad.data() + bad.size() - 1, 1, sink));
  CHECK_EQ(sink.events.size(), size_t{2});
  CHECK(!stream.feed(good.data(), good.size(), sink));
  CHECK(!stream.feed(good.data(), 0, sink));
  CHECK(!stream.end(sink));
  CHECK_EQ(sink.events.size(), size_t{2});
  CHECK_EQ(stream.entries(), uint64_t{1});
  CHECK_EQ(stream.transactions(), 1u);

  stream.reset();
  CHECK_EQ(stream.entries(), uint64_t{0});
  CHECK_EQ(stream.transactions(), 0u);
  CHECK(stream.feed(good.data(), good.size(), sink));
  CHECK(stream.end(sink));
  CHECK_EQ(sink.events.size(), size_t{8});
  CHECK_EQ(stream.transactions(), 3u);
}

TEST(entry_stream_reset_discards_an_unfinished_part) {
  const SmallBatch batch = small_batch();
  for (size_t length = 0; length < batch.bytes.size(); length += 7) {
    EntryStream stream;
    RecordingSink before, after;
    CHECK(stream.feed(batch.bytes.data(), length, before));
    stream.reset();
    CHECK(stream.feed(batch.bytes.data(), batch.bytes.size(), after));
    CHECK(stream.end(after));
    CHECK_EQ(after.events.size(), batch.events.size());
  }
}

TEST(entry_stream_largest_transactions_in_any_pieces) {
  for (const auto version :
       {TransactionVersion::legacy, TransactionVersion::v0, TransactionVersion::v1}) {
    const size_t most =
        version == TransactionVersion::v1 ? kTransactionV1BytesMax : kTransactionBytesMax;
    for (const size_t too_long : {0, 1}) {
      Bytes batch = u64_bytes(1);
      append_entry(batch, 1, 1, 2);
      batch = with_bytes(batch, transaction_of_bytes(version, most).bytes);
      batch = with_bytes(batch, transaction_of_bytes(version, most + too_long).bytes);
      const Report whole = read_batch(batch, std::vector<size_t>{});
      CHECK_EQ(whole.kinds(), too_long ? "et" : "ett");
      CHECK_EQ(whole.fed, !too_long);
      CHECK_EQ(whole.ended, !too_long);
      CHECK(read_batch(batch, every_position(batch.size())) == whole);
      std::mt19937_64 random(most + too_long);
      for (int round = 0; round < 20; round++) CHECK(read_batch(batch, random, 963) == whole);
    }
  }
}

// During a sink call, the stream's counts exclude the current part.
TEST(entry_stream_counts_during_calls) {
  struct CountingSink final : EntrySink {
    EntryStream stream;
    std::string seen;
    void note(char kind) {
      seen += kind + std::to_string(stream.entries()) + std::to_string(stream.transactions());
    }
    void on_entry(const Entry&) override { note('e'); }
    void on_transaction(const EntryTransaction& transaction) override {
      CHECK_EQ(transaction.ordinal, stream.transactions());
      note('t');
    }
    void on_marker(const BlockMarker&) override { note('m'); }
  } sink;
  const Bytes batch = small_batch().bytes;
  CHECK(sink.stream.feed(batch.data(), batch.size(), sink));
  CHECK_EQ(sink.seen, "e00e10t20t21t22e23");
}
