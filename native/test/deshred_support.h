// What the deshredder's tests share: batches of entries, slots made of them, and who listens.
#pragma once

#include <algorithm>
#include <map>
#include <random>

#include "deshred/deshredder.h"
#include "support.h"

namespace shredway::test {

// A legacy transaction of one signer without instructions, 134 bytes; its first signature byte by
// byte from `random`.
Bytes small_transaction(std::mt19937& random);
// Wire form of a batch: entries of the given transactions, each entry followed by one tick.
Bytes entry_batch(const std::vector<std::vector<Bytes>>& entries);

// A slot as its leader cut it: packets per FEC set (32 data, 32 code), and what they say.
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
// `batch_transactions`: how many transactions each batch holds.
BatchedSlot make_batched_slot(uint64_t slot, const std::vector<size_t>& batch_transactions,
                              std::mt19937& random);

// Who signed those slots.
PublicKey batched_slot_leader();

// Makes the packets of one set (64, in leaf order) authentic again after somebody changed them.
void sign_again(std::vector<Bytes>& packets, size_t first);

class DeshredRecorder : public DeshredSink {
 public:
  struct Seen {
    uint64_t slot;
    uint32_t batch_index, ordinal, shred_index;
    uint64_t seen_ns;
    std::string signature;
  };
  std::vector<Seen> transactions;
  std::map<uint64_t, std::string> hashes;  // entry hashes of a batch, by slot << 16 | batch index
  uint64_t ticks = 0, markers = 0, recovered_shreds = 0;
  std::vector<Bytes> recovered;

  // Signatures of one batch in the order in which they were reported.
  std::vector<std::string> signatures_of(uint64_t slot, uint32_t batch_index) const;

  void on_entry(const BatchPlace& place, const Entry& entry) override;
  void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) override;
  void on_marker(const BatchPlace&, const BlockMarker&) override { markers++; }
  void on_recovered(const FecSet& set, uint64_t missing) override;
};

// Adds a packet that must obey the static rules.
void add_packet(Deshredder& deshredder, const Bytes& packet, uint64_t received_ns);

}  // namespace shredway::test
