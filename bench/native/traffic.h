// Traffic: any number of authentic shreds, made and signed on demand, and bursts of them.
//
// Every driver of a round gets the same list. Packets stay in place until the list is cleared.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "entry_traffic.h"
#include "net/address.h"
#include "shred/shredder.h"

namespace shredway::bench {

enum class ShredContents : uint8_t {
  noise,    // the same arbitrary bytes in every FEC set, which is its own batch
  entries,  // entries and transactions (entry_traffic.h), two FEC sets per batch
};

// Consecutive slots of `fec_sets_per_slot` full FEC sets each, from one leader.
class ShredStream {
 public:
  static constexpr uint64_t kFirstSlot = 400'000'000;
  static constexpr uint16_t kShredVersion = 50093;

  // `fec_sets_per_slot` must be even.
  explicit ShredStream(uint8_t leader_seed = 1, uint32_t fec_sets_per_slot = 32,
                       ShredContents contents = ShredContents::noise);
  // Replaces `out` by at least `shreds` new shreds (whole batches).
  void make(size_t shreds, PacketList& out);
  // Content of the last make(): all transactions, and the signatures of non-vote transactions.
  uint64_t transactions() const { return transactions_; }
  const std::vector<TransactionSignature>& signatures() const { return signatures_; }
  const PublicKey& leader() const { return key_.public_key(); }
  // Shreds per slot, and the index of a shred among all shreds of this stream.
  uint32_t shreds_per_slot() const { return fec_sets_per_slot_ * kFecSetLeaves; }
  uint64_t number_of(const uint8_t* packet) const;

 private:
  SigningKey key_;
  Shredder shredder_;
  SlotPosition position_;
  uint32_t fec_sets_per_slot_;
  ShredContents contents_;
  EntryMaker entry_maker_;
  std::vector<uint8_t> entries_;
  uint64_t transactions_ = 0;
  std::vector<TransactionSignature> signatures_;
};

// Bytes of entries in one full FEC set, the same number in each of its 32 data shreds.
size_t set_entries_bytes();

// Leader table with this leader for `slots` slots from kFirstSlot on.
std::vector<uint8_t> leader_table(const PublicKey& leader, uint32_t slots);
// Source table: 127.0.0.`first + i` is source i, all in tier 0.
std::vector<uint8_t> source_table(uint32_t sources);
// Fan-out table: all in tier 0, ids in order.
std::vector<uint8_t> fanout_table(const std::vector<Endpoint>& destinations);

template <typename Integer>
void append(std::vector<uint8_t>& bytes, Integer value) {
  const size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Sends packets [begin, end) to a loopback port in as few calls as possible.
class Generator {
 public:
  Generator();
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;
  // Sends from this address, in host order.
  void bind_to(uint32_t address);
  void connect_to(uint16_t port);
  // Returns false if the kernel did not accept all of them.
  bool send_burst(const PacketList& packets, size_t begin, size_t end);

 private:
  int fd_;
};

}  // namespace shredway::bench
