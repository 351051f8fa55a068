#include "transaction_support.h"

#include <algorithm>
#include <bit>
#include <memory>

namespace shredway::test {
namespace {

void append_fill(Bytes& bytes, size_t count, uint8_t value) {
  bytes.insert(bytes.end(), count, value);
}
void append_bytes(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
void append_list(Bytes& bytes, const Bytes& elements) {
  append_compact_u16(bytes, elements.size());
  append_bytes(bytes, elements);
}
// Appends distinct signatures or keys.
void append_numbered(Bytes& bytes, size_t count, size_t element_bytes, uint8_t first) {
  for (size_t i = 0; i < count; i++)
    append_fill(bytes, element_bytes, static_cast<uint8_t>(first + i));
}

uint16_t here(const Bytes& bytes) { return static_cast<uint16_t>(bytes.size()); }

void append_header(Bytes& bytes, const TestTransaction& parts) {
  bytes.push_back(parts.required_signatures);
  bytes.push_back(parts.readonly_signed);
  bytes.push_back(parts.readonly_unsigned);
}

WrittenTransaction write_legacy_or_v0(const TestTransaction& parts) {
  Bytes bytes;
  Transaction layout{};
  layout.version = parts.version;
  append_compact_u16(bytes, parts.signatures);
  layout.signatures_begin = here(bytes);
  layout.signature_count = parts.signatures;
  append_numbered(bytes, parts.signatures, kTransactionSignatureBytes, 0x51);
  layout.message_begin = here(bytes);
  if (parts.version == TransactionVersion::v0) bytes.push_back(0x80);
  append_header(bytes, parts);
  append_compact_u16(bytes, parts.keys);
  layout.keys_begin = here(bytes);
  append_numbered(bytes, parts.keys, kPublicKeyBytes, 0x61);
  layout.lifetime_begin = here(bytes);
  append_fill(bytes, 32, 0x4c);
  append_compact_u16(bytes, parts.instructions.size());
  layout.instructions_begin = here(bytes);
  for (const TestInstruction& instruction : parts.instructions) {
    bytes.push_back(instruction.program);
    append_list(bytes, instruction.accounts);
    append_list(bytes, instruction.data);
  }
  if (parts.version == TransactionVersion::v0) {
    append_compact_u16(bytes, parts.lookups.size());
    layout.lookups_begin = here(bytes);
    for (const TestLookup& lookup : parts.lookups) {
      append_fill(bytes, kPublicKeyBytes, lookup.table);
      append_list(bytes, lookup.writable);
      append_list(bytes, lookup.readonly);
    }
    layout.lookup_count = static_cast<uint16_t>(parts.lookups.size());
  }
  layout.message_end = here(bytes);
  return {bytes, layout};
}

WrittenTransaction write_v1(const TestTransaction& parts) {
  Bytes bytes{0x81};
  Transaction layout{};
  layout.version = TransactionVersion::v1;
  append_header(bytes, parts);
  append(bytes, parts.config_mask);
  layout.config_mask = parts.config_mask;
  layout.lifetime_begin = here(bytes);
  append_fill(bytes, 32, 0x4c);
  bytes.push_back(static_cast<uint8_t>(parts.instructions.size()));
  bytes.push_back(static_cast<uint8_t>(parts.keys));
  layout.keys_begin = here(bytes);
  append_numbered(bytes, parts.keys, kPublicKeyBytes, 0x61);
  layout.config_begin = here(bytes);
  for (uint32_t bit = 0; bit < 32; bit++)
    if (parts.config_mask >> bit & 1) append(bytes, uint32_t{0x0c0f0000u + bit});
  layout.instructions_begin = here(bytes);
  for (const TestInstruction& instruction : parts.instructions) {
    bytes.push_back(instruction.program);
    bytes.push_back(static_cast<uint8_t>(instruction.accounts.size()));
    append(bytes, static_cast<uint16_t>(instruction.data.size()));
  }
  for (const TestInstruction& instruction : parts.instructions) {
    append_bytes(bytes, instruction.accounts);
    append_bytes(bytes, instruction.data);
  }
  layout.message_end = here(bytes);
  layout.signatures_begin = here(bytes);
  layout.signature_count = parts.required_signatures;
  append_numbered(bytes, parts.required_signatures, kTransactionSignatureBytes, 0x51);
  return {bytes, layout};
}

}  // namespace

void append_compact_u16(Bytes& bytes, size_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<uint8_t>(value | 0x80));
  bytes.push_back(static_cast<uint8_t>(value));
}

WrittenTransaction write_transaction(const TestTransaction& parts) {
  WrittenTransaction written =
      parts.version == TransactionVersion::v1 ? write_v1(parts) : write_legacy_or_v0(parts);
  written.layout.bytes = here(written.bytes);
  written.layout.required_signatures = parts.required_signatures;
  written.layout.readonly_signed = parts.readonly_signed;
  written.layout.readonly_unsigned = parts.readonly_unsigned;
  written.layout.key_count = parts.keys;
  written.layout.instruction_count = static_cast<uint16_t>(parts.instructions.size());
  return written;
}

WrittenTransaction transaction_of_bytes(TransactionVersion version, size_t bytes) {
  TestTransaction parts;
  parts.version = version;
  parts.keys = 1;
  parts.instructions = {{0, {}, {}}};
  // From 128 on, the data length takes a second byte; the rest of the length is then exact.
  parts.instructions[0].data.resize(200);
  const size_t rest = write_transaction(parts).bytes.size() - 200;
  parts.instructions[0].data.resize(bytes - rest, 0xda);
  return write_transaction(parts);
}

TestTransaction random_parts(std::mt19937_64& random, TransactionVersion version) {
  const auto up_to = [&](size_t most) { return static_cast<uint8_t>(random() % (most + 1)); };
  const auto any_bytes = [&](size_t most) {
    Bytes bytes(up_to(most));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  };
  TestTransaction parts;
  parts.version = version;
  parts.signatures = up_to(3);
  parts.required_signatures = up_to(version == TransactionVersion::v1 ? 12 : 127);
  parts.readonly_signed = up_to(255);
  parts.readonly_unsigned = up_to(255);
  parts.keys = up_to(8);
  parts.config_mask = static_cast<uint32_t>(random() & random());
  for (size_t i = up_to(4); i > 0; i--)
    parts.instructions.push_back({up_to(255), any_bytes(9), any_bytes(150)});
  if (version == TransactionVersion::v0)
    for (size_t i = up_to(2); i > 0; i--)
      parts.lookups.push_back({up_to(255), any_bytes(5), any_bytes(5)});
  return parts;
}

std::string difference(const Transaction& left, const Transaction& right) {
#define SHREDWAY_COMPARE(field) \
  if (left.field != right.field) return #field
  SHREDWAY_COMPARE(version);
  SHREDWAY_COMPARE(bytes);
  SHREDWAY_COMPARE(signatures_begin);
  SHREDWAY_COMPARE(signature_count);
  SHREDWAY_COMPARE(message_begin);
  SHREDWAY_COMPARE(message_end);
  SHREDWAY_COMPARE(required_signatures);
  SHREDWAY_COMPARE(readonly_signed);
  SHREDWAY_COMPARE(readonly_unsigned);
  SHREDWAY_COMPARE(keys_begin);
  SHREDWAY_COMPARE(key_count);
  SHREDWAY_COMPARE(lifetime_begin);
  SHREDWAY_COMPARE(instructions_begin);
  SHREDWAY_COMPARE(instruction_count);
  SHREDWAY_COMPARE(lookups_begin);
  SHREDWAY_COMPARE(lookup_count);
  SHREDWAY_COMPARE(config_begin);
  SHREDWAY_COMPARE(config_mask);
#undef SHREDWAY_COMPARE
  return "";
}

void append_entry(Bytes& bytes, uint64_t hash_count, uint8_t hash_byte,
                  uint64_t transaction_count) {
  append(bytes, hash_count);
  append_fill(bytes, kHashBytes, hash_byte);
  append(bytes, transaction_count);
}

void append_marker(Bytes& bytes, uint8_t kind, size_t payload_bytes) {
  append(bytes, uint64_t{0});
  append(bytes, uint16_t{1});
  bytes.push_back(kind);
  append(bytes, static_cast<uint16_t>(payload_bytes));
  for (size_t i = 0; i < payload_bytes; i++) bytes.push_back(static_cast<uint8_t>(i));
}

Bytes random_batch(std::mt19937_64& random) {
  Bytes batch;
  const uint64_t entries = random() % 9;
  append(batch, entries);
  for (uint64_t i = 0; i < entries; i++) {
    const uint64_t transactions = random() % 4;
    append_entry(batch, random(), static_cast<uint8_t>(random()), transactions);
    for (uint64_t j = 0; j < transactions; j++)
      append_bytes(batch,
                   write_transaction(random_parts(random, TransactionVersion(random() % 3))).bytes);
  }
  append_fill(batch, random() % 20, 0x77);
  return batch;
}

ParseResult parse_exact(const Bytes& bytes, size_t length, Transaction& out, size_t& needed) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[length]);
  std::copy_n(bytes.begin(), length, copy.get());
  return parse_transaction(copy.get(), length, out, needed);
}

void RecordingSink::on_entry(const Entry& entry) {
  events.push_back({'e', entry.hash_count, entry.transaction_count,
                    Bytes(entry.hash, entry.hash + kHashBytes), fed});
}
void RecordingSink::on_transaction(const EntryTransaction& transaction) {
  events.push_back({'t', transaction.ordinal, 0,
                    Bytes(transaction.bytes, transaction.bytes + transaction.transaction.bytes),
                    fed});
  transactions.push_back(transaction.transaction);
}
void RecordingSink::on_marker(const BlockMarker& marker) {
  events.push_back({'m', static_cast<uint64_t>(marker.kind), marker.payload_bytes,
                    Bytes(marker.payload, marker.payload + marker.payload_seen), fed});
}

std::string Report::kinds() const {
  std::string kinds;
  for (const Event& event : events) kinds += event.kind;
  return kinds;
}

Report read_batch(const Bytes& batch, const std::vector<size_t>& cuts) {
  EntryStream stream;
  RecordingSink sink;
  bool fed = true;
  size_t at = 0;
  for (size_t i = 0; i <= cuts.size(); i++) {
    const size_t next = i < cuts.size() ? cuts[i] : batch.size();
    // A copy that is freed after the call: the sanitizer detects a pointer that was stored.
    const std::unique_ptr<uint8_t[]> piece(new uint8_t[next - at]);
    std::copy(batch.begin() + long(at), batch.begin() + long(next), piece.get());
    sink.fed = next;
    fed = stream.feed(piece.get(), next - at, sink);
    at = next;
  }
  const bool ended = stream.end(sink);
  return {sink.events, fed, ended, stream.entries(), stream.transactions()};
}

Report read_batch(const Bytes& batch, std::mt19937_64& random, size_t piece_max) {
  std::vector<size_t> cuts;
  for (size_t at = 0; (at += random() % (piece_max + 1)) < batch.size();) cuts.push_back(at);
  return read_batch(batch, cuts);
}

}  // namespace shredway::test
