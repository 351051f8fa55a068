#include <algorithm>

#include "check.h"
#include "transaction_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

ParseResult parse(const Bytes& bytes, Transaction& out) {
  size_t needed;
  return parse_exact(bytes, bytes.size(), out, needed);
}
ParseResult parse(const Bytes& bytes) {
  Transaction ignored;
  return parse(bytes, ignored);
}

// One transaction per version with every kind of part, small enough to change each of its bytes.
TestTransaction small_parts(TransactionVersion version) {
  TestTransaction parts;
  parts.version = version;
  parts.instructions = {{1, {0, 1}, {9, 8, 7}}, {1, {}, Bytes(130, 5)}, {0, {1}, {}}};
  if (version == TransactionVersion::v0) parts.lookups = {{0x70, {1, 2}, {3}}, {0x71, {}, {}}};
  parts.config_mask = 0b10111;
  return parts;
}

// Every part that a caller may read lies inside the transaction, in the order of the format.
bool is_inside(const Transaction& t, size_t length) {
  const bool is_v1 = t.version == TransactionVersion::v1;
  const size_t signatures_end = t.signatures_begin + t.signature_count * size_t{64};
  const size_t keys_end = t.keys_begin + t.key_count * size_t{32};
  const bool signatures_ok = is_v1 ? t.signatures_begin == t.message_end &&
                                         signatures_end == t.bytes && t.message_begin == 0
                                   : t.signatures_begin == 1 && signatures_end == t.message_begin &&
                                         t.message_end == t.bytes;
  return t.bytes <= length && signatures_ok && t.message_begin < t.keys_begin &&
         keys_end <= t.message_end && t.lifetime_begin + 32 <= t.message_end &&
         t.instructions_begin <= t.message_end && t.lookups_begin <= t.message_end &&
         t.bytes <= (is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax);
}

}  // namespace

// Written by hand from the format, so that writer and parser cannot share an error.
TEST(transaction_parses_handwritten_bytes) {
  Bytes legacy{1};
  legacy.insert(legacy.end(), 64, 0x53);
  legacy.insert(legacy.end(), {1, 0, 1, 2});
  legacy.insert(legacy.end(), 2 * 32 + 32, 0x4b);
  legacy.insert(legacy.end(), {1, 1, 1, 0, 2, 0xaa, 0xbb});
  Transaction t;
  CHECK_EQ(parse(legacy, t), ParseResult::complete);
  CHECK_EQ(difference(t, {TransactionVersion::legacy, 172, 1, 1, 65, 172, 1, 0, 1, 69, 2, 133, 166,
                          1, 0, 0, 0, 0}),
           "");

  Bytes v0 = legacy;
  v0.insert(v0.begin() + 65, 0x80);
  v0.push_back(1);
  v0.insert(v0.end(), 32, 0x54);
  v0.insert(v0.end(), {2, 7, 8, 1, 9});
  CHECK_EQ(parse(v0, t), ParseResult::complete);
  CHECK_EQ(difference(t, {TransactionVersion::v0, 211, 1, 1, 65, 211, 1, 0, 1, 70, 2, 134, 167, 1,
                          174, 1, 0, 0}),
           "");

  Bytes v1{0x81, 1, 0, 1, 0b111, 0, 0, 0};
  v1.insert(v1.end(), 32, 0x4b);
  v1.insert(v1.end(), {1, 2});
  v1.insert(v1.end(), 2 * 32 + 3 * 4, 0x4b);
  v1.insert(v1.end(), {1, 1, 2, 0, 0, 0xaa, 0xbb});
  v1.insert(v1.end(), 64, 0x53);
  CHECK_EQ(parse(v1, t), ParseResult::complete);
  CHECK_EQ(difference(t, {TransactionVersion::v1, 189, 125, 1, 0, 125, 1, 0, 1, 42, 2, 8, 118, 1, 0,
                          0, 106, 0b111}),
           "");
}

TEST(transaction_parses_every_field_of_random_transactions) {
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 3000; round++) {
    const WrittenTransaction written =
        write_transaction(random_parts(random, kVersions[round % 3]));
    Transaction t;
    size_t needed;
    const bool fits = written.layout.version == TransactionVersion::v1 ||
                      written.bytes.size() <= kTransactionBytesMax;
    CHECK_EQ(parse(written.bytes, t), fits ? ParseResult::complete : ParseResult::malformed);
    if (!fits) continue;
    CHECK_EQ(difference(t, written.layout), "");
    Bytes longer = written.bytes;
    longer.insert(longer.end(), random() % 5000, static_cast<uint8_t>(random()));
    CHECK_EQ(parse_exact(longer, longer.size(), t, needed), ParseResult::complete);
    CHECK_EQ(difference(t, written.layout), "");
  }
}

TEST(transaction_is_incomplete_wherever_it_is_cut) {
  std::mt19937_64 random(68);
  for (int round = 0; round < 60; round++) {
    const TransactionVersion version = kVersions[round % 3];
    const Bytes bytes =
        write_transaction(round < 3 ? small_parts(version) : random_parts(random, version)).bytes;
    Transaction out{};
    // Longer than the maximum of its version.
    if (parse(bytes, out) != ParseResult::complete) continue;
    out.config_mask = 0x5eed;
    for (size_t length = 0; length < bytes.size(); length++) {
      size_t needed;
      CHECK_EQ(parse_exact(bytes, length, out, needed), ParseResult::incomplete);
      CHECK_EQ(out.config_mask, 0x5eedu);
      CHECK(length < needed && needed <= bytes.size());
    }
  }
}

// Around the largest size, where a wrong minimum of the remaining bytes would show.
TEST(transaction_more_bytes_never_contradict_a_prefix) {
  std::mt19937_64 random(1232);
  for (int round = 0; round < 90; round++) {
    TestTransaction parts;
    parts.version = kVersions[round % 3];
    parts.config_mask = static_cast<uint32_t>(random());
    const bool is_v1 = parts.version == TransactionVersion::v1;
    const size_t most = is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax;
    const size_t instructions = is_v1 ? random() % 65 : 230 + random() % 150;
    for (size_t i = 0; i < instructions; i++)
      parts.instructions.push_back({0, Bytes(random() % 3), Bytes(random() % (is_v1 ? 140 : 3))});
    if (parts.version == TransactionVersion::v0) parts.lookups.resize(random() % 4);
    Bytes bytes = write_transaction(parts).bytes;
    if (round >= 45) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    bytes.resize(std::max(bytes.size(), most) + 9);
    ParseResult before = ParseResult::incomplete;
    size_t needed_before = 0;
    for (size_t length = 0; length <= bytes.size(); length++) {
      Transaction out;
      size_t needed;
      const ParseResult result = parse_exact(bytes, length, out, needed);
      CHECK(before == ParseResult::incomplete || result == before);
      before = result;
      if (result == ParseResult::complete) CHECK(out.bytes >= needed_before);
      if (result != ParseResult::incomplete) continue;
      CHECK(needed >= needed_before);
      needed_before = needed;
    }
    CHECK(before != ParseResult::incomplete);
  }
}

// A caller that waits for `needed` bytes each time reaches the end in a few steps: at most one for
// each part of variable length and its count, and fewer than instructions if those are many.
TEST(transaction_reports_the_needed_bytes) {
  std::vector<TestTransaction> all;
  for (const TransactionVersion version : kVersions) all.push_back(small_parts(version));
  all.emplace_back().instructions.resize(350);
  for (const TestTransaction& parts : all) {
    const Bytes bytes = write_transaction(parts).bytes;
    size_t steps = 0, needed = 0;
    for (size_t length = 0; length < bytes.size(); length = needed, steps++) {
      Transaction out;
      parse_exact(bytes, length, out, needed);
    }
    CHECK(steps <= 36);
  }
}

TEST(transaction_every_byte_changed_stays_inside) {
  for (const TransactionVersion version : kVersions) {
    const Bytes original = write_transaction(small_parts(version)).bytes;
    for (size_t at = 0; at < original.size(); at++) {
      Bytes bytes = original;
      for (int value = 0; value < 256; value++) {
        bytes[at] = static_cast<uint8_t>(value);
        Transaction t;
        if (parse(bytes, t) == ParseResult::complete) CHECK(is_inside(t, bytes.size()));
      }
    }
  }
}

TEST(transaction_first_byte_exhaustively) {
  for (int first = 0; first < 256; first++) {
    Bytes bytes(kTransactionV1BytesMax, 0);
    bytes[0] = static_cast<uint8_t>(first);
    // 1,232 bytes hold 18 signatures and the smallest message, 37 bytes.
    Transaction t;
    const ParseResult result = parse(bytes, t);
    if (first <= 18 || first == 0x81) {
      CHECK_EQ(result, ParseResult::complete);
      CHECK_EQ(size_t{t.bytes}, first == 0x81 ? 42 : kTransactionBytesMin + size_t(first) * 64);
    } else {
      CHECK_EQ(result, ParseResult::malformed);
    }
    // Alone: 19 signatures would still fit, but without a message after them.
    const bool is_open = first <= 19 || first == 0x81;
    CHECK_EQ(parse({bytes[0]}), is_open ? ParseResult::incomplete : ParseResult::malformed);
  }
}

TEST(transaction_message_version_exhaustively) {
  const WrittenTransaction legacy = write_transaction(small_parts(TransactionVersion::legacy));
  const WrittenTransaction v0 = write_transaction(small_parts(TransactionVersion::v0));
  for (int version = 0; version < 256; version++) {
    Bytes bytes = version < 0x80 ? legacy.bytes : v0.bytes;
    bytes[65] = static_cast<uint8_t>(version);
    Transaction t;
    CHECK_EQ(parse(bytes, t), version <= 0x80 ? ParseResult::complete : ParseResult::malformed);
    if (version < 0x80) CHECK_EQ(int{t.required_signatures}, version);
    if (version <= 0x80)
      CHECK_EQ(t.version, version < 0x80 ? TransactionVersion::legacy : TransactionVersion::v0);
  }
}

TEST(transaction_compact_u16_exhaustively) {
  std::vector<bool> seen(0x10000, false);
  size_t valid = 0;
  uint16_t value = 0;
  size_t used = 0;
  for (uint32_t form = 0; form < 1u << 24; form++) {
    const uint8_t bytes[3] = {static_cast<uint8_t>(form), static_cast<uint8_t>(form >> 8),
                              static_cast<uint8_t>(form >> 16)};
    const size_t length = bytes[0] < 0x80 ? 1 : bytes[1] < 0x80 ? 2 : 3;
    // Each form once: bytes after it do not matter.
    if ((length < 2 && bytes[1]) || (length < 3 && bytes[2])) continue;
    const uint32_t meant = (bytes[0] & 0x7fu) | (bytes[1] & 0x7fu) << 7 | uint32_t{bytes[2]} << 14;
    const size_t shortest = meant < 1u << 7 ? 1 : meant < 1u << 14 ? 2 : 3;
    const bool is_valid = meant <= 0xffff && length == shortest;
    const ParseResult result = parse_compact_u16(bytes, 3, value, used);
    if (result != (is_valid ? ParseResult::complete : ParseResult::malformed)) CHECK_EQ(form, 0u);
    if (!is_valid) continue;
    if (value != meant || used != length) CHECK_EQ(form, 0u);
    valid++;
    seen[value] = true;
    for (size_t cut = 0; cut < length; cut++)
      if (parse_compact_u16(bytes, cut, value, used) != ParseResult::incomplete) CHECK_EQ(form, 0u);
  }
  CHECK_EQ(valid, size_t{0x10000});
  CHECK(std::find(seen.begin(), seen.end(), false) == seen.end());
}

TEST(transaction_refuses_counts_that_are_not_canonical) {
  const WrittenTransaction written = write_transaction(small_parts(TransactionVersion::v0));
  // Before each of its one-byte counts: the same number in two and in three bytes.
  const size_t instruction = written.layout.instructions_begin;
  const size_t lookup = written.layout.lookups_begin;
  for (const size_t at : {size_t{written.layout.keys_begin} - 1, instruction - 1, instruction + 1,
                          instruction + 4, lookup - 1, lookup + 32, lookup + 35}) {
    Bytes bytes = written.bytes;
    CHECK(bytes[at] < 4);
    bytes[at] |= 0x80;
    bytes.insert(bytes.begin() + long(at) + 1, 0);
    CHECK_EQ(parse(bytes), ParseResult::malformed);
    bytes.insert(bytes.begin() + long(at) + 1, 0x80);
    CHECK_EQ(parse(bytes), ParseResult::malformed);
  }
}

TEST(transaction_largest_sizes) {
  for (const TransactionVersion version : kVersions) {
    const size_t most =
        version == TransactionVersion::v1 ? kTransactionV1BytesMax : kTransactionBytesMax;
    const WrittenTransaction largest = transaction_of_bytes(version, most);
    CHECK_EQ(largest.bytes.size(), most);
    Transaction t;
    CHECK_EQ(parse(largest.bytes, t), ParseResult::complete);
    CHECK_EQ(difference(t, largest.layout), "");
    Bytes longer = transaction_of_bytes(version, most + 1).bytes;
    CHECK_EQ(longer.size(), most + 1);
    CHECK_EQ(parse(longer), ParseResult::malformed);
    longer.resize(most);
    CHECK_EQ(parse(longer), ParseResult::malformed);
  }
}

TEST(transaction_v1_counts) {
  const auto with = [](uint8_t signatures, uint16_t keys, size_t instructions) {
    TestTransaction parts;
    parts.version = TransactionVersion::v1;
    parts.required_signatures = signatures;
    parts.keys = keys;
    parts.instructions.resize(instructions);
    return parse(write_transaction(parts).bytes);
  };
  CHECK_EQ(with(12, 64, 64), ParseResult::complete);
  CHECK_EQ(with(0, 0, 0), ParseResult::complete);
  CHECK_EQ(with(13, 64, 64), ParseResult::malformed);
  CHECK_EQ(with(12, 65, 64), ParseResult::malformed);
  CHECK_EQ(with(12, 64, 65), ParseResult::malformed);
}

// One more byte than the largest size never helps, so no caller waits forever.
TEST(transaction_is_never_incomplete_at_its_largest_size) {
  std::mt19937_64 random(385);
  for (int round = 0; round < 20000; round++) {
    const bool is_v1 = round % 2;
    Bytes bytes(is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax);
    const uint64_t mask = round % 3 ? random() & random() & random() : ~uint64_t{0};
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() & mask);
    bytes[0] = is_v1 ? 0x81 : bytes[0] & 0x7f;
    CHECK(parse(bytes) != ParseResult::incomplete);
  }
}
