// Entry stream: parses the bytes of one batch, piece by piece, into entries, transactions and block
// markers.
//
// The deshredder uses one stream per open batch, always in order. The stream reports each part as
// soon as its last byte arrives, not when the batch is complete. The parts and their order do not
// depend on where the pieces were cut. The bytes may be hostile. It stores only the beginning of an
// unfinished part (at most kCarryBytesMax) and never allocates. Sources: solana-entry, Agave
// entry/src/block_component.rs (b64857b5), SIMD-0307, SIMD-0337:
//   batch   u64 entry count, entries {u64 hashes, 32-byte hash, u64 transaction count,
//           transactions}
//   marker  instead of a batch: u64 0, u16 version 1, u8 kind, u16 length, payload
// A count of 0 that is not followed by a marker (fewer than the 5 bytes of a marker's header, or
// another version or kind) is an empty batch. Bytes after the last entry, after an empty batch and
// after a marker are ignored. Counts that exceed a slot's capacity are malformed at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transaction/wire.h"

namespace shredway {

inline constexpr size_t kHashBytes = 32;
inline constexpr size_t kEntryHeaderBytes = 48;  // hashes, hash, transaction count
inline constexpr size_t kMarkerHeaderBytes = 5;  // version, kind and length, after the u64 0
// Large enough for the slot and block id of each kind.
inline constexpr size_t kMarkerPayloadSeenBytesMax = 64;

struct Entry {
  uint64_t hash_count;
  const uint8_t* hash;         // 32 bytes, valid during the call
  uint64_t transaction_count;  // 0: a tick
};

struct EntryTransaction {
  const uint8_t* bytes;  // transaction.bytes bytes, valid during the call
  Transaction transaction;
  uint32_t ordinal;  // index among the transactions of the batch
};

enum class BlockMarkerKind : uint8_t {
  footer = 0,
  header = 1,
  update_parent = 2,
  genesis_certificate = 3,
};

struct BlockMarker {
  BlockMarkerKind kind;
  uint16_t payload_bytes;  // length according to the marker
  const uint8_t* payload;  // its first payload_seen bytes, valid during the call
  uint16_t payload_seen;   // min(payload_bytes, 64); less only if the batch ended early
};

// Called in the order of the bytes. It may call only the counts of the stream.
class EntrySink {
 public:
  // The header of an entry is complete; its transactions follow, before the next entry.
  virtual void on_entry(const Entry& entry) = 0;
  virtual void on_transaction(const EntryTransaction& transaction) = 0;
  // At most one per batch, without entries. Called when min(payload_bytes, 64) bytes of its payload
  // have arrived, or at the end with the bytes received.
  virtual void on_marker(const BlockMarker& marker) = 0;

 protected:
  ~EntrySink() = default;
};

class EntryStream {
 public:
  static constexpr size_t kCarryBytesMax = kTransactionV1BytesMax;

  // Discards all state; the next piece begins a batch.
  void reset();
  // Reads the next piece of the batch, of any length, and reports the parts that it completes.
  // Returns false, until reset, if the bytes are not a batch. Stores no pointer into the piece.
  bool feed(const uint8_t* bytes, size_t length, EntrySink& sink);
  // Ends the batch; only reset may follow. Returns false if the bytes ended inside the count, an
  // entry or a marker, or were malformed. An empty batch (no bytes, or a count of 0) is valid.
  bool end(EntrySink& sink);
  // Number of reported entries; during a sink call without the current part.
  uint64_t entries() const { return entries_; }
  uint32_t transactions() const { return transactions_; }

 private:
  // The part that the next byte belongs to.
  enum class Part : uint8_t {
    count,
    entry_header,
    transaction,
    marker,       // header and reported payload of a marker
    marker_rest,  // payload that is not reported
    ignored,      // the batch is complete
    malformed,
  };
  static constexpr size_t kUnfinished = 0;

  bool reads_on() const { return part_ != Part::ignored && part_ != Part::malformed; }
  // Each reads one part from its first byte on and returns its length, or kUnfinished. Then needed_
  // is the minimum length of the part, or part_ says that no more bytes are read.
  size_t take_part(const uint8_t* bytes, size_t length, EntrySink& sink);
  size_t take_count(const uint8_t* bytes, size_t length);
  size_t take_entry_header(const uint8_t* bytes, size_t length, EntrySink& sink);
  size_t take_transaction(const uint8_t* bytes, size_t length, EntrySink& sink);
  size_t take_marker(const uint8_t* bytes, size_t length, EntrySink& sink);
  size_t take_marker_rest(size_t length);
  size_t unfinished(size_t needed);
  size_t malformed();
  void end_entry();

  uint64_t entries_ = 0;
  uint64_t entries_left_ = 0;
  uint64_t transactions_left_ = 0;  // transactions of the current entry
  uint32_t transactions_ = 0;
  uint16_t marker_rest_bytes_ = 0;
  Part part_ = Part::count;
  size_t needed_ = 0;
  size_t carried_ = 0;
  std::array<uint8_t, kCarryBytesMax> carry_;  // [0, carried_) is the beginning of the current part
};

}  // namespace shredway
