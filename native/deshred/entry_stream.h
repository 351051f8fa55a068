// Entry stream: the bytes of one batch, piece by piece, into entries, transactions and block
// markers.
//
// Used by the deshredder, one stream per open batch, always in order. It reports each part as soon
// as its last byte is there, not when the batch is complete, and the same parts in the same order
// wherever the pieces were cut. Reads hostile bytes; keeps only what a part needs that has not
// ended yet (at most kCarryBytesMax), never allocates. Facts: solana-entry, Agave
// entry/src/block_component.rs (b64857b5), SIMD-0307, SIMD-0337:
//   batch   u64 entry count, entries {u64 hashes, 32-byte hash, u64 transaction count,
//           transactions}
//   marker  instead of a batch: u64 0, u16 version 1, u8 kind, u16 length, payload
// A count of 0 with anything else behind it (fewer than the 5 bytes of a marker's head, another
// version or kind) is an empty batch. Bytes behind the last entry, behind an empty batch and behind
// a marker are ignored. Counts that no slot has room for are malformed at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transaction/wire.h"

namespace shredway {

inline constexpr size_t kHashBytes = 32;
inline constexpr size_t kEntryHeaderBytes = 48;           // hashes, hash, transaction count
inline constexpr size_t kMarkerHeadBytes = 5;             // behind the u64 0: version, kind, length
inline constexpr size_t kMarkerPayloadSeenBytesMax = 64;  // slot and block id of each kind fit

struct Entry {
  uint64_t hash_count;
  const uint8_t* hash;         // 32 bytes, valid during the call
  uint64_t transaction_count;  // 0: a tick
};

struct EntryTransaction {
  const uint8_t* bytes;  // transaction.bytes long, valid during the call
  Transaction transaction;
  uint32_t ordinal;  // among the transactions of the batch, from 0
};

enum class BlockMarkerKind : uint8_t {
  footer = 0,
  header = 1,
  update_parent = 2,
  genesis_certificate = 3,
};

struct BlockMarker {
  BlockMarkerKind kind;
  uint16_t payload_bytes;  // as it says itself
  const uint8_t* payload;  // its first payload_seen bytes, valid during the call
  uint16_t payload_seen;   // the smaller of payload_bytes and 64; less only when the batch ended
};

// Told in the order of the bytes. Must not call the stream otherwise than for its counts.
class EntrySink {
 public:
  // The header of an entry is complete; its transactions follow, before the next entry.
  virtual void on_entry(const Entry& entry) = 0;
  virtual void on_transaction(const EntryTransaction& transaction) = 0;
  // At most one per batch, and then no entry. Told when min(payload_bytes, 64) bytes of its payload
  // are there, or at the end with as many as came.
  virtual void on_marker(const BlockMarker& marker) = 0;

 protected:
  ~EntrySink() = default;
};

class EntryStream {
 public:
  static constexpr size_t kCarryBytesMax = kTransactionV1BytesMax;

  // Forgets everything; the next piece begins a batch.
  void reset();
  // Takes the next piece of the batch, of any length, and reports what is complete. False, from now
  // on until reset, when the bytes are no batch. Keeps no pointer into the piece.
  bool feed(const uint8_t* bytes, size_t length, EntrySink& sink);
  // The batch has no more bytes; only reset may follow. False when they ended inside the count, an
  // entry or a marker, or were malformed; an empty batch (no byte at all, or a count of 0) is fine.
  bool end(EntrySink& sink);
  // Reported so far; during a call of the sink without the part that it is about.
  uint64_t entries() const { return entries_; }
  uint32_t transactions() const { return transactions_; }

 private:
  // What the next byte belongs to.
  enum class Part : uint8_t {
    count,
    entry_header,
    transaction,
    marker,       // its head and what is told of its payload
    marker_rest,  // payload that nobody is told
    ignored,      // the batch is complete
    malformed,
  };
  static constexpr size_t kUnfinished = 0;

  bool reads_on() const { return part_ != Part::ignored && part_ != Part::malformed; }
  // Each takes one part from its first byte on and returns its length, or kUnfinished: then needed_
  // says how many bytes it takes at least, or part_ that nothing is to be read any more.
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
  uint64_t transactions_left_ = 0;  // of the current entry
  uint32_t transactions_ = 0;
  uint16_t marker_rest_bytes_ = 0;
  Part part_ = Part::count;
  size_t needed_ = 0;
  size_t carried_ = 0;
  std::array<uint8_t, kCarryBytesMax> carry_;  // [0, carried_) is the beginning of the current part
};

}  // namespace shredway
