// Entry stream: the bytes of one batch, piece by piece, into entries, transactions and block
// markers.
//
// Used by the deshredder, one stream per open batch, always in order. It reports each part as soon
// as its last byte is there, not when the batch is complete. Reads hostile bytes; keeps only what a
// part needs that has not ended yet (at most kCarryBytesMax), never allocates. Facts: solana-entry,
// Agave entry/src/block_component.rs (b64857b5), SIMD-0307, SIMD-0337:
//   batch   u64 entry count, entries {u64 hashes, 32-byte hash, u64 transaction count,
//   transactions} marker  instead of a batch: u64 0, u16 version 1, u8 kind, u16 length, payload
// A count of 0 without a marker behind it is an empty batch. Bytes behind the last entry are
// ignored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transaction/wire.h"

namespace shredway {

inline constexpr size_t kHashBytes = 32;

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
  uint16_t payload_seen;   // as many as came, at most 64
};

class EntrySink {
 public:
  virtual void on_entry(const Entry& entry) = 0;
  virtual void on_transaction(const EntryTransaction& transaction) = 0;
  virtual void on_marker(const BlockMarker& marker) = 0;

 protected:
  ~EntrySink() = default;
};

class EntryStream {
 public:
  static constexpr size_t kCarryBytesMax = kTransactionV1BytesMax;

  // Forgets everything; the next piece begins a batch.
  void reset();
  // Takes the next piece of the batch and reports what is complete. False, from now on until reset,
  // when the bytes are no batch.
  bool feed(const uint8_t* bytes, size_t length, EntrySink& sink);
  // The batch has no more bytes. False when they ended inside an entry or were malformed; an empty
  // batch (no byte at all, or a count of 0) is fine.
  bool end(EntrySink& sink);
  uint64_t entries() const { return entries_; }
  uint32_t transactions() const { return transactions_; }

 private:
  // Private state is free to change.
  uint64_t entries_ = 0;
  uint32_t transactions_ = 0;
};

}  // namespace shredway
