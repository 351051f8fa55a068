// Recent shreds: an exact record, in bounded memory, of the shreds that have arrived.
//
// One per worker, used by the worker's thread only. A shred's identity is (slot, FEC set, leaf). A
// record describes one signed root of one FEC set; for each of its 64 leaves it holds the first
// arrival time, the first source and the tiers that have been served. The records are a ring
// indexed by slot: no hashing, no false positives and no eviction work. A record is valid while its
// slot number matches; the next slot with the same index overwrites it. A lower slot does not
// overwrite it until it has been unused for kOverwriteAfter_ns: otherwise two replayed shreds whose
// slots share an index could take each other's record, each new every time. Further roots of the
// same set (equivocation) are chained from a small pool. Only authenticated shreds may be recorded.
//
// A source for own use serves no tier: its shreds arrive, but the tiers of a later arrival are
// decided as if they had not. All sources share the records, however. A shred for own use can hold
// the place of a lower slot (outranked) or take a place of the pool, and the shred of another
// source that needs it is then not sent (slot_behind, equivocation_excess).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "relay/slot_window.h"
#include "shred/merkle.h"
#include "shred/wire.h"
#include "system/memory_lock.h"
#include "system/untouched_array.h"

namespace shredway {

// Bit t stands for tier t. The narrowest tier is bit 0.
using TierMask = uint8_t;

// Coarse arrival time: CLOCK_REALTIME nanoseconds / 1024, wrapping.
using ArrivalTime = uint32_t;
constexpr ArrivalTime arrival_time(uint64_t ns) { return static_cast<ArrivalTime>(ns >> 10); }

struct ShredRecord {
  ArrivalTime first_arrival;
  uint16_t first_source : 14;
  uint16_t has_arrived : 1;  // from any source
  uint16_t has_second_source : 1;
  TierMask tiers_served;  // 0: never arrived from a source that is forwarded
  // Tiers whose recovered-shred destinations have got a recovered copy.
  TierMask tiers_recovered_sent;
};
static_assert(sizeof(ShredRecord) == 8);

// One signed root of one FEC set: 10 cache lines. A duplicate touches three of them.
struct alignas(64) FecSetRecord {
  uint64_t slot;
  uint32_t fec_set_index;
  uint32_t next;  // 1 + index of the next root's record in the pool; 0: none
  uint8_t signature[kSignatureBytes];
  Root root;
  bool used;         // false in new pages from the kernel
  bool forwardable;  // a source that is forwarded delivered the root and this signature
  uint8_t unused[10];
  ArrivalTime last_use;
  ShredRecord shred_records[kFecSetLeaves];
};
static_assert(sizeof(FecSetRecord) == 640);

class RecentShreds {
 public:
  static constexpr uint32_t kExtraRoots = 1024;
  // As long as the silence after which the slot window accepts lower slots.
  static constexpr uint64_t kOverwriteAfter_ns = SlotWindow::kStalledBackwardAfter_ns;

  // Reserves address space for the whole window; memory is touched as FEC sets arrive. `prefault`
  // touches the first 64 FEC sets of every slot now (21 MB), so that traffic causes no page faults.
  // Returns nullptr if the address space is not available.
  static std::unique_ptr<RecentShreds> create(bool prefault);
  RecentShreds(const RecentShreds&) = delete;
  RecentShreds& operator=(const RecentShreds&) = delete;

  // Pages that no FEC set has touched yet are locked when one does.
  void lock_memory(MemoryLock& lock) const;

  // Record with this signature (64 bytes), or nullptr.
  FecSetRecord* find(const Shred& shred, const uint8_t* signature);

  // Record with this root, or nullptr.
  FecSetRecord* find_root(const Shred& shred, const Root& root);

  // Number of recorded roots of the shred's FEC set, of sources with these tiers: those for own use
  // do not count against the others.
  uint32_t root_count(const Shred& shred, TierMask tier_mask);

  // True if the place of the shred's record belongs to a higher slot that is still in use.
  bool outranked(const Shred& shred, ArrivalTime now);

  struct Outcome {
    Verdict verdict;  // first, new_tier, first_forwardable, own_use, equivocation, duplicate,
                      // equivocation_excess, slot_behind
    TierMask tiers;   // tiers to serve now, or 0
    TierMask recovered_sent = 0;      // the tiers in `tiers` that have already got a recovered copy
    bool is_new = false;              // first arrival of the identity, from any source
    bool is_new_forwardable = false;  // the same, from any source that is forwarded
    bool is_equivocation = false;     // first arrival under this root, after one under another root
  };
  struct ShredArrival {
    TierMask tier_mask;  // tiers that the source serves; 0: for own use
    uint16_t source;
    ArrivalTime time;
  };
  // Records an authenticated shred and returns the tiers for which it is new. If `match_root` is
  // false (only with authentication off), the signature identifies the root.
  Outcome record(const Shred& shred, const uint8_t* signature, const Root& root,
                 const ShredArrival& arrival, bool match_root = true);

 private:
  struct Match {
    FecSetRecord* record = nullptr;  // of the root; nullptr: not recorded
    FecSetRecord* last = nullptr;    // end of the chain
    uint32_t other_roots = 0;        // other roots under which the identity has arrived
    uint32_t other_served = 0;       // the same, from sources that are forwarded
  };
  RecentShreds() = default;
  Match match_of(const Shred& shred, const uint8_t* signature, const Root& root, bool match_root);
  FecSetRecord& primary(const Shred& shred) {
    return records_[(shred.slot % SlotWindow::kSlots) * kFecSetsPerSlotMax +
                    fec_set_number(shred.fec_set_index)];
  }
  static bool belongs(const FecSetRecord& set_record, const Shred& shred) {
    return set_record.used && set_record.slot == shred.slot &&
           set_record.fec_set_index == shred.fec_set_index;
  }
  // Pool records are reused: a record that now belongs to another set ends the chain.
  FecSetRecord* next_root(const FecSetRecord& set_record, const Shred& shred) {
    if (!set_record.next) return nullptr;
    FecSetRecord& next = extra_[set_record.next - 1];
    return belongs(next, shred) ? &next : nullptr;
  }
  FecSetRecord* add_root(const Shred& shred, FecSetRecord* last);

  const UntouchedArray<FecSetRecord> records_{SlotWindow::kSlots * kFecSetsPerSlotMax};
  std::unique_ptr<FecSetRecord[]> extra_;
  uint32_t next_extra_ = 0;
};

}  // namespace shredway
