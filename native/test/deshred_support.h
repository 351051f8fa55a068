// Support for deshredder tests: batches of entries, slots of such batches, and a recording sink.
#pragma once

#include <algorithm>
#include <map>
#include <random>

#include "deshred/deshredder.h"
#include "support.h"

namespace shredway::test {

// A legacy transaction with one signer and no instructions, 134 bytes; `random` fills its first
// signature.
Bytes small_transaction(std::mt19937& random);
// Wire format of a batch: entries with the given transactions, each entry followed by one tick.
Bytes entry_batch(const std::vector<std::vector<Bytes>>& entries);

// A slot as its leader shredded it: packets per FEC set (32 data, 32 code) and their content.
struct BatchedSlot {
  uint64_t slot;
  struct Batch {
    uint32_t first_index;
    uint32_t sets;
    std::vector<std::string> signatures;  // hexadecimal, in order
  };
  std::vector<Batch> batches;
  std::vector<Bytes> packets;  // packets[64 x set + leaf]
};
// `batch_transactions`: number of transactions in each batch.
BatchedSlot make_batched_slot(uint64_t slot, const std::vector<size_t>& batch_transactions,
                              std::mt19937& random);
// A slot of batches in wire format. `signatures` are empty.
BatchedSlot make_batched_slot(uint64_t slot, const std::vector<Bytes>& batches);
// Wire format of a block marker.
Bytes block_marker(BlockMarkerKind kind, size_t payload_bytes);

// Leader of these slots.
PublicKey batched_slot_leader();

// Updates proofs and signature of one set (64 packets, in leaf order) after a change to its
// packets.
void sign_again(std::vector<Bytes>& packets, size_t first);

class DeshredRecorder : public DeshredSink {
 public:
  struct Seen {
    uint64_t slot;
    uint32_t batch_index, ordinal, shred_index;
    uint64_t arrival_ns;
    std::string signature;
  };
  std::vector<Seen> transactions;
  std::map<uint64_t, std::string> hashes;  // entry hashes of a batch, by slot << 16 | batch index
  uint64_t ticks = 0, markers = 0, recovered_shreds = 0;
  std::vector<Bytes> recovered;

  // Signatures of one batch in the order of their reports.
  std::vector<std::string> signatures_of(uint64_t slot, uint32_t batch_index) const;

  void on_entry(const BatchPlace& place, const Entry& entry) override;
  void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) override;
  void on_marker(const BatchPlace&, const BlockMarker&) override { markers++; }
  void on_recovered(const FecSet& set, uint64_t missing) override;
};

// Adds a packet that must follow the static rules.
void add_packet(Deshredder& deshredder, const Bytes& packet, uint64_t received_ns);

}  // namespace shredway::test
