// Support for tests of transactions and entry streams: transactions with chosen parts and their
// offsets, batches, and a recorder for the reports of a stream.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "deshred/entry_stream.h"
#include "support.h"
#include "transaction/wire.h"

namespace shredway::test {

inline constexpr TransactionVersion kVersions[] = {TransactionVersion::legacy,
                                                   TransactionVersion::v0, TransactionVersion::v1};

// A key of 32 equal bytes.
inline PublicKey key_of(uint8_t byte) {
  PublicKey key;
  key.fill(byte);
  return key;
}

struct TestInstruction {
  uint8_t program;
  Bytes accounts, data;
};
struct TestLookup {
  uint8_t table;  // fills each byte of its key
  Bytes writable, readonly;
};
struct TestTransaction {
  TransactionVersion version = TransactionVersion::legacy;
  uint8_t signatures = 1;  // for legacy and v0; v1 has required_signatures instead
  uint8_t required_signatures = 1, readonly_signed = 0, readonly_unsigned = 1;
  uint16_t keys = 2;
  uint32_t config_mask = 0;
  std::vector<TestInstruction> instructions;
  std::vector<TestLookup> lookups;
};
// `layout` is recorded while the bytes are written, not parsed from them.
struct WrittenTransaction {
  Bytes bytes;
  Transaction layout;
};
WrittenTransaction write_transaction(const TestTransaction& parts);
// A transaction with 1 signature, 1 key and one instruction, and exactly this length.
WrittenTransaction transaction_of_bytes(TransactionVersion version, size_t bytes);
// Random parts that are valid for the version.
TestTransaction random_parts(std::mt19937_64& random, TransactionVersion version);
// Empty if equal, otherwise the name of the first field that differs.
std::string difference(const Transaction& left, const Transaction& right);

void append_compact_u16(Bytes& bytes, size_t value);
void append_entry(Bytes& bytes, uint64_t hash_count, uint8_t hash_byte, uint64_t transaction_count);
void append_marker(Bytes& bytes, uint8_t kind, size_t payload_bytes);
// A batch of up to eight entries with up to three transactions of any version each.
Bytes random_batch(std::mt19937_64& random);

// Parses a copy that ends at `length`, so that the sanitizer detects a read beyond it.
ParseResult parse_exact(const Bytes& bytes, size_t length, Transaction& out, size_t& needed);

struct Event {
  char kind;        // 'e' entry, 't' transaction, 'm' marker
  uint64_t first;   // hashes; ordinal; kind
  uint64_t second;  // transaction count; 0; payload bytes
  Bytes bytes;      // hash; the whole transaction; the reported payload
  size_t at;        // number of bytes of the batch that had been fed
  bool operator==(const Event& other) const {
    return kind == other.kind && first == other.first && second == other.second &&
           bytes == other.bytes;
  }
};

class RecordingSink final : public EntrySink {
 public:
  std::vector<Event> events;
  std::vector<Transaction> transactions;
  size_t fed = 0;
  void on_entry(const Entry& entry) override;
  void on_transaction(const EntryTransaction& transaction) override;
  void on_marker(const BlockMarker& marker) override;
};

struct Report {
  std::vector<Event> events;
  bool fed, ended;
  uint64_t entries;
  uint32_t transactions;
  bool operator==(const Report&) const = default;
  std::string kinds() const;
};
// Feeds `batch` cut before each of `cuts` (ascending), then ends it.
Report read_batch(const Bytes& batch, const std::vector<size_t>& cuts);
// Feeds the batch in random pieces; some are empty.
Report read_batch(const Bytes& batch, std::mt19937_64& random, size_t piece_max);

}  // namespace shredway::test
