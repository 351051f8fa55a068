// Deshredder: turns authentic shreds, in any order, into the entries and transactions of blocks.
//
// Used by the relay's deshred thread and by tests, one thread at a time. It recovers FEC sets from
// any 32 of their 64 shreds, finds the beginnings of batches, and reports every entry, transaction
// and block marker as soon as its bytes are complete, long before the whole batch. Memory is
// bounded and allocated at the start. The input is signed but may be malformed: a hostile leader
// can only waste its own slots. A batch begins at shred 0 and after every DATA_COMPLETE, which the
// static rules allow only at the end of a set; batches are decoded independently of each other.
//
// Time is the shreds' own receive time; the deshredder never reads a clock.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "deshred/entry_stream.h"
#include "deshred/fec_set.h"
#include "system/untouched_array.h"

namespace shredway {

// X(name): counters of the deshredder.
#define SHREDWAY_DESHRED_COUNTS(X)                                                                \
  X(shreds)             /* accepted: distinct and needed */                                       \
  X(shreds_late)        /* shreds of sets that were complete, given up or too old */              \
  X(shreds_conflicting) /* shreds with another signature than the first shred of the set */       \
  X(sets_whole)         /* FEC sets whose 32 data shreds all arrived */                           \
  X(sets_recovered)     /* FEC sets completed by Reed-Solomon */                                  \
  X(shreds_recovered)   /* shreds computed by recovery */                                         \
  X(sets_refused)       /* recovered sets that differ from what the leader signed */              \
  X(sets_given_up) /* FEC sets given up, because their memory was needed or their time expired */ \
  X(batches)       /* batches read to their end */                                                \
  X(batches_malformed) /* batches whose bytes are not entries */                                  \
  X(batches_given_up)  /* begun batches that lost a set that was given up */                      \
  X(batches_too_long)  /* batches whose bytes were wanted and exceeded the limit */               \
  X(entries)           /* ticks included */                                                       \
  X(transactions)                                                                                 \
  X(markers) /* block markers */

struct DeshredCounts {
#define X(name) uint64_t name = 0;
  SHREDWAY_DESHRED_COUNTS(X)
#undef X
};

// A position in the chain. A slot's transactions are ordered by (batch_index, ordinal).
struct BatchPlace {
  uint64_t slot;
  uint32_t batch_index;  // index of the batch's first data shred; multiple of 32
  uint32_t shred_index;  // index of the data shred that completed the reported part
  uint64_t arrival_ns;   // receive time of the shred that completed it
};

struct SlotBegin {
  uint64_t slot;
  uint64_t parent;
  uint64_t arrival_ns;
};

// Called during add(). Pointers are valid during the call.
class DeshredSink {
 public:
  virtual void on_entry(const BatchPlace& place, const Entry& entry) = 0;
  virtual void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) = 0;
  virtual void on_marker(const BatchPlace& place, const BlockMarker& marker) = 0;
  // `missing`: bits of the recovered leaves. The set may be read during the call.
  virtual void on_recovered(const FecSet& set, uint64_t missing) = 0;
  // All bytes of a well-formed batch, after its parts. Only while keep_batch_bytes(true).
  virtual void on_batch(const BatchPlace&, std::span<const uint8_t>) {}
  // The first shred of a slot arrived. `parent`: 0 if it is not known yet.
  virtual void on_slot_begin(const SlotBegin&) {}
  // Every batch of the slot was read to its end.
  virtual void on_slot_complete(const BatchPlace&) {}

 protected:
  ~DeshredSink() = default;
};

struct DeshredOptions {
  uint16_t sets_max = 1024;         // FEC sets in progress, 79 kB each, touched when needed; >= 1
  uint16_t open_batches_max = 512;  // partly read batches, 4 kB each; >= 1
  // Incomplete sets are dropped after this time without a new shred.
  uint64_t slot_lifetime_ns = 10'000'000'000;
  // False: recovers FEC sets only, and reports no entry, transaction or marker.
  bool reads_batches = true;
};

class Deshredder final : private EntrySink {
 public:
  // `sink` must outlive it.
  Deshredder(const DeshredOptions& options, DeshredSink& sink);
  ~Deshredder();
  Deshredder(const Deshredder&) = delete;
  Deshredder& operator=(const Deshredder&) = delete;

  // `packet` passed check_packet with the result `shred`, and the slot's leader signed its root.
  // Repeated shreds are harmless.
  void add(const uint8_t* packet, const Shred& shred, uint64_t received_ns);
  const DeshredCounts& counts() const { return counts_; }
  // Whether on_batch is called, for batches that begin after this call.
  void keep_batch_bytes(bool wanted) { keeps_batch_bytes_ = wanted; }

  // A longer batch has no on_batch. Batches of leaders have some ten thousand bytes.
  static constexpr size_t kBatchBytesMax = 1u << 20;
  static constexpr size_t kAllBatchesBytesMax = 64u << 20;  // of all open batches together
  static constexpr size_t kSlots = 512;                     // same as the relay's window

 private:
  static constexpr uint16_t kNone = 0xffff;
  enum class SetStatus : uint8_t { unseen, collecting, done, lost };
  struct SetState {
    uint16_t fec_set;  // index in sets_ while collecting
    uint16_t batch;    // index in batches_ of the batch that continues in this set
    SetStatus status;
    bool begins_batch;
  };
  static constexpr SetState kUnseenSet{kNone, kNone, SetStatus::unseen, false};
  struct Slot;
  struct Batch {
    uint32_t first_index;
    uint32_t next_index;  // next data shred to read
    EntryStream stream;
  };

  Slot* slot_of(const uint8_t* packet, const Shred& shred, uint64_t received_ns);
  FecSet* collect(Slot& slot, const uint8_t* packet, const Shred& shred);
  uint16_t take_set();
  void release_set(Slot& slot, SetState& state, SetStatus status);
  void give_up(Slot& slot, uint32_t set_number);
  void forget(Slot& slot, uint32_t set_number);
  bool is_silent(const Slot& slot, uint64_t now_ns) const;
  void close(Slot& slot);
  void drop_old_slots(uint64_t now_ns);
  void read_on(Slot& slot, uint32_t set_number);
  bool read_set(const FecSet& set, uint16_t batch_number);
  void open_batch(Slot& slot, uint32_t set_number);
  void end_batch(Slot& slot, SetState& state);
  void release_batch(Slot& slot, SetState& state);
  bool move_batch(Slot& slot, uint32_t set_number);
  void keep_piece(uint16_t batch, const uint8_t* bytes, size_t length);
  void drop_bytes(uint16_t batch);
  void finish_set(Slot& slot, uint32_t set_number, uint8_t last_flags);

  void on_entry(const Entry& entry) override;
  void on_transaction(const EntryTransaction& transaction) override;
  void on_marker(const BlockMarker& marker) override;

  const DeshredOptions options_;
  DeshredSink& sink_;
  const ReedSolomon reed_solomon_{kFecSetShreds, kFecSetShreds};
  DeshredCounts counts_;
  const UntouchedArray<FecSet> sets_;
  std::vector<uint16_t> free_sets_;
  std::unique_ptr<Batch[]> batches_;
  std::vector<uint16_t> free_batches_;
  struct BatchBytes {
    bool kept = false;
    std::vector<uint8_t> bytes;
  };
  std::vector<BatchBytes> batch_bytes_;  // of batches_, by index; empty until they are wanted
  size_t batch_bytes_total_ = 0;
  bool keeps_batch_bytes_ = false;
  std::unique_ptr<Slot[]> slots_;
  uint64_t last_expiry_check_ns_ = 0;
  BatchPlace place_{};  // position of the part that a stream reports
};

}  // namespace shredway
