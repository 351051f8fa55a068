// Recent shreds: who has seen which shred, exactly, in bounded memory.
//
// The worker's memory, one per worker, used by its thread alone. An identity is (slot, FEC set,
// leaf); a record holds one signed root of one FEC set and, for each of its 64 leaves, when and
// from which source it came first and which tiers have received it. A direct-indexed ring over
// slots: no hashing, no false positive, no work to evict (a record is valid while it names its
// slot; the next slot at that place overwrites it). Further roots of the same set (equivocation)
// are chained from a small pool. Only authenticated shreds may be recorded.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "relay/slot_window.h"
#include "shred/merkle.h"
#include "shred/wire.h"

namespace shredway {

// Bit t: tier number t. Narrowest tier is bit 0.
using TierMask = uint8_t;

// Times of shred_records, coarse: CLOCK_REALTIME nanoseconds / 1024, wrapping.
using SightingTime = uint32_t;
inline SightingTime sighting_time(uint64_t ns) { return static_cast<SightingTime>(ns >> 10); }

struct ShredRecord {
  SightingTime first_seen;
  uint16_t first_source : 15;
  uint16_t second_source_seen : 1;
  TierMask tiers_served;          // 0: never seen
  TierMask tiers_recovered_sent;  // whose destinations got a recovered copy, if they asked for them
};
static_assert(sizeof(ShredRecord) == 8);

// One signed root of one FEC set: 10 cache lines, of which a duplicate touches three.
struct alignas(64) FecSetRecord {
  uint64_t slot;
  uint32_t fec_set_index;
  uint32_t next;  // 1 + number of the next root's record in the pool, 0: none
  uint8_t signature[kSignatureBytes];
  Root root;
  bool used;                 // false in the kernel's fresh pages
  uint8_t other_signatures;  // further valid ones over the same root
  uint8_t unused[14];
  ShredRecord shred_records[kFecSetLeaves];
};
static_assert(sizeof(FecSetRecord) == 640);

class RecentShreds {
 public:
  static constexpr uint32_t kExtraRoots = 1024;

  // Reserves address space for the whole window; memory is touched as FEC sets arrive. `prefault`
  // touches the first 64 FEC sets of every slot now (21 MB), so that traffic takes no page faults.
  // Returns nullptr when the address space cannot be had.
  static std::unique_ptr<RecentShreds> create(bool prefault);
  ~RecentShreds();
  RecentShreds(const RecentShreds&) = delete;
  RecentShreds& operator=(const RecentShreds&) = delete;

  // Record with this very signature, or nullptr. `signature` is 64 bytes.
  FecSetRecord* find(const Shred& shred, const uint8_t* signature);

  // Record with this very root, or nullptr.
  FecSetRecord* find_root(const Shred& shred, const Root& root);

  // Roots that are recorded of the shred's FEC set.
  uint32_t root_count(const Shred& shred);

  struct Outcome {
    Verdict verdict;              // first, new_tier, equivocation, duplicate or equivocation_excess
    TierMask tiers;               // to be served now; 0 unless passed on
    TierMask recovered_sent = 0;  // of them, those where whoever asked has a recovered copy already
  };
  struct Sight {
    TierMask covers;  // tiers that the source serves, never 0
    uint16_t source;
    SightingTime time;
  };
  // Remembers an authenticated shred and says which tiers it is new for. `match_root` false (only
  // with authentication off) lets the signature stand for the root.
  Outcome record(const Shred& shred, const uint8_t* signature, const Root& root, const Sight& sight,
                 bool match_root = true);

 private:
  RecentShreds() = default;
  FecSetRecord& primary(const Shred& shred) {
    return records_[(shred.slot % SlotWindow::kSlots) * kFecSetsPerSlotMax +
                    fec_set_number(shred.fec_set_index)];
  }
  static bool belongs(const FecSetRecord& record, const Shred& shred) {
    return record.used && record.slot == shred.slot && record.fec_set_index == shred.fec_set_index;
  }
  // The pool's records are used again: one that now belongs to another set ends the chain.
  FecSetRecord* next_root(const FecSetRecord& record, const Shred& shred) {
    if (!record.next) return nullptr;
    FecSetRecord& next = extra_[record.next - 1];
    return belongs(next, shred) ? &next : nullptr;
  }
  FecSetRecord* add_root(const Shred& shred, FecSetRecord* last);

  FecSetRecord* records_ = nullptr;
  std::unique_ptr<FecSetRecord[]> extra_;
  uint32_t extra_hand_ = 0;
};

}  // namespace shredway
