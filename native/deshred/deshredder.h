// Deshredder: from authentic shreds, in any order, to the entries and transactions of the blocks.
//
// Fed by the relay's deshred thread and by tests, one thread at a time. It recovers FEC sets from
// any 32 of their 64 shreds, finds where batches begin and reports every entry, transaction and
// block marker as soon as the bytes up to its end are there, long before the batch is whole. Memory
// is bounded and given at the start; hostile leaders (the input is signed, not sane) can at most
// waste their own slots. A batch begins at shred 0 and behind every DATA_COMPLETE, which the static
// rules allow only at the end of a set; batches decode independently of each other.
//
// Time here is the shreds' own receive time: nothing reads a clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "deshred/entry_stream.h"
#include "deshred/fec_set.h"

namespace shredway {

// X(name): what the deshredder counts.
#define SHREDWAY_DESHRED_COUNTS(X)                                                         \
  X(shreds)             /* taken: distinct and needed */                                   \
  X(shreds_late)        /* of sets that were complete, given up or too old already */      \
  X(shreds_conflicting) /* under another signature than the set's first shred */           \
  X(sets_whole)         /* FEC sets whose 32 data shreds all came */                       \
  X(sets_recovered)     /* FEC sets completed by Reed-Solomon */                           \
  X(shreds_recovered)   /* shreds that did not have to come */                             \
  X(sets_refused)       /* recovered to something else than the leader signed */           \
  X(sets_given_up)      /* incomplete when their memory was needed or their time was up */ \
  X(batches)            /* read to their end */                                            \
  X(batches_malformed)  /* of which the bytes were no entries */                           \
  X(batches_given_up)   /* begun, and cut off by a set that was given up */                \
  X(entries)            /* ticks included */                                               \
  X(transactions)                                                                          \
  X(markers) /* block markers */

struct DeshredCounts {
#define X(name) uint64_t name = 0;
  SHREDWAY_DESHRED_COUNTS(X)
#undef X
};

// Where in the chain something lies. A slot's transactions are ordered by (batch_index, ordinal).
struct BatchPlace {
  uint64_t slot;
  uint32_t batch_index;  // of the batch's first data shred; multiple of 32
  uint32_t shred_index;  // of the data shred that completed what is reported
  uint64_t seen_ns;      // receive time of the shred that made it readable
};

// Called from within add(). Pointers are valid during the call.
class DeshredSink {
 public:
  virtual void on_entry(const BatchPlace& place, const Entry& entry) = 0;
  virtual void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) = 0;
  virtual void on_marker(const BatchPlace& place, const BlockMarker& marker) = 0;
  // `missing`: bits of the leaves that were recovered. The set may be read during the call.
  virtual void on_recovered(const FecSet& set, uint64_t missing) = 0;

 protected:
  ~DeshredSink() = default;
};

struct DeshredOptions {
  uint16_t sets_max = 1024;  // FEC sets in progress, 79 kB each, touched as they are needed; >= 1
  uint16_t open_batches_max = 512;             // batches read in part, 4 kB each; >= 1
  uint64_t slot_lifetime_ns = 10'000'000'000;  // without a new shred, what is incomplete is dropped
};

class Deshredder final : private EntrySink {
 public:
  // `sink` must outlive it.
  Deshredder(const DeshredOptions& options, DeshredSink& sink);
  ~Deshredder();
  Deshredder(const Deshredder&) = delete;
  Deshredder& operator=(const Deshredder&) = delete;

  // `packet` passed check_packet with `shred` as the result, and its root is signed by the slot's
  // leader. Repeated shreds are harmless.
  void add(const uint8_t* packet, const Shred& shred, uint64_t received_ns);
  const DeshredCounts& counts() const { return counts_; }

  static constexpr size_t kSlots = 512;  // as the relay's window

 private:
  static constexpr uint16_t kNone = 0xffff;
  enum class SetStatus : uint8_t { unseen, collecting, done, lost };
  struct SetState {
    uint16_t fec_set = kNone;  // place in sets_ while collecting
    uint16_t batch = kNone;    // place in batches_ of the batch that reads on in this set
    SetStatus status = SetStatus::unseen;
    bool begins_batch = false;
  };
  struct Slot;
  struct Batch {
    uint32_t first_index;
    uint32_t next_index;  // data shred that is read next
    EntryStream stream;
  };

  Slot* slot_of(const Shred& shred, uint64_t received_ns);
  FecSet* collect(Slot& slot, const uint8_t* packet, const Shred& shred);
  uint16_t take_set();
  void release_set(Slot& slot, SetState& state, SetStatus status);
  void give_up(Slot& slot, uint32_t set_number);
  void forget(Slot& slot, uint32_t set_number);
  bool is_silent(const Slot& slot, uint64_t now_ns) const;
  void close(Slot& slot);
  void drop_old_slots(uint64_t now_ns);
  void read_on(Slot& slot, uint32_t set_number);
  bool read_set(const FecSet& set, Batch& batch);
  void open_batch(Slot& slot, uint32_t set_number);
  void end_batch(Slot& slot, SetState& state);
  void release_batch(Slot& slot, SetState& state);
  bool move_batch(Slot& slot, uint32_t set_number);

  void on_entry(const Entry& entry) override;
  void on_transaction(const EntryTransaction& transaction) override;
  void on_marker(const BlockMarker& marker) override;

  const DeshredOptions options_;
  DeshredSink& sink_;
  const ReedSolomon reed_solomon_{kFecSetShreds, kFecSetShreds};
  DeshredCounts counts_;
  std::unique_ptr<FecSet[]> sets_;
  std::vector<uint16_t> free_sets_;
  std::unique_ptr<Batch[]> batches_;
  std::vector<uint16_t> free_batches_;
  std::unique_ptr<Slot[]> slots_;
  uint64_t last_look_for_old_ns_ = 0;
  BatchPlace place_{};  // of what a stream reports now
};

}  // namespace shredway
