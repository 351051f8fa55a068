#include "relay/recent_shreds.h"

#include <sys/mman.h>

namespace shredway {
namespace {

constexpr size_t kRecordCount = SlotWindow::kSlots * kFecSetsPerSlotMax;
constexpr size_t kBytes = kRecordCount * sizeof(FecSetRecord);
constexpr size_t kPrefaultSetsPerSlot = 64;  // 4,096 shreds: twice what mainnet makes in 400 ms

void start_record(FecSetRecord& record, const Shred& shred, const uint8_t* signature,
                  const Root& root) {
  record.used = true;
  record.slot = shred.slot;
  record.fec_set_index = shred.fec_set_index;
  record.next = 0;
  std::memcpy(record.signature, signature, kSignatureBytes);
  record.root = root;
  record.other_signatures = 0;
  std::memset(record.shred_records, 0, sizeof record.shred_records);
}

}  // namespace

std::unique_ptr<RecentShreds> RecentShreds::create(bool prefault) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Huge pages would make every slot touch all of its 640 kB.
  madvise(memory, kBytes, MADV_NOHUGEPAGE);
  std::unique_ptr<RecentShreds> recent(new RecentShreds);
  recent->records_ = static_cast<FecSetRecord*>(memory);
  recent->extra_ = std::make_unique<FecSetRecord[]>(kExtraRoots);
  if (prefault) {
    constexpr size_t kPageBytes = 4096;
    constexpr size_t kSlotBytes = kFecSetsPerSlotMax * sizeof(FecSetRecord);
    volatile uint8_t* bytes = static_cast<uint8_t*>(memory);
    for (size_t slot = 0; slot < SlotWindow::kSlots; slot++)
      for (size_t at = 0; at < kPrefaultSetsPerSlot * sizeof(FecSetRecord); at += kPageBytes)
        bytes[slot * kSlotBytes + at] = 0;
  }
  return recent;
}

RecentShreds::~RecentShreds() { munmap(records_, kBytes); }

FecSetRecord* RecentShreds::find(const Shred& shred, const uint8_t* signature) {
  FecSetRecord* record = &primary(shred);
  if (!belongs(*record, shred)) return nullptr;
  while (record && std::memcmp(record->signature, signature, kSignatureBytes) != 0)
    record = next_root(*record, shred);
  return record;
}

FecSetRecord* RecentShreds::find_root(const Shred& shred, const Root& root) {
  FecSetRecord* record = &primary(shred);
  if (!belongs(*record, shred)) return nullptr;
  while (record && record->root != root) record = next_root(*record, shred);
  return record;
}

uint32_t RecentShreds::root_count(const Shred& shred) {
  uint32_t count = 0;
  FecSetRecord* record = &primary(shred);
  if (!belongs(*record, shred)) return 0;
  for (; record; record = next_root(*record, shred)) count++;
  return count;
}

RecentShreds::Outcome RecentShreds::record(const Shred& shred, const uint8_t* signature,
                                           const Root& root, const Sight& sight, bool match_root) {
  FecSetRecord* record = &primary(shred);
  FecSetRecord* match = nullptr;
  FecSetRecord* last = nullptr;
  uint32_t other_roots = 0;  // under which this identity was seen
  if (!belongs(*record, shred)) {
    start_record(*record, shred, signature, root);
    match = record;
  } else {
    for (; record; last = record, record = next_root(*record, shred)) {
      const bool same = match_root
                            ? record->root == root
                            : std::memcmp(record->signature, signature, kSignatureBytes) == 0;
      if (same) match = record;
      else if (record->shred_records[shred.leaf].tiers_served) other_roots++;
    }
  }

  const bool seen = match && match->shred_records[shred.leaf].tiers_served;
  if (!seen && other_roots >= 2) return {Verdict::equivocation_excess, 0};
  if (!match) {
    match = add_root(shred, last);
    if (!match) return {Verdict::equivocation_excess, 0};
    start_record(*match, shred, signature, root);
  }

  ShredRecord& shred_record = match->shred_records[shred.leaf];
  const TierMask tiers = static_cast<TierMask>(sight.covers & ~shred_record.tiers_served);
  if (!tiers) return {Verdict::duplicate, 0};
  shred_record.tiers_served = static_cast<TierMask>(shred_record.tiers_served | tiers);
  if (seen) return {Verdict::new_tier, tiers, shred_record.tiers_recovered_sent};
  shred_record.first_seen = sight.time;
  shred_record.first_source = sight.source & 0x7fff;
  return {other_roots ? Verdict::equivocation : Verdict::first, tiers,
          shred_record.tiers_recovered_sent};
}

// A record of the pool is free when it was never used or its slot is a whole window away. The
// search is bounded; no free one means that leaders equivocate by the thousand, and further roots
// drop.
FecSetRecord* RecentShreds::add_root(const Shred& shred, FecSetRecord* last) {
  constexpr uint32_t kTries = 16;
  for (uint32_t i = 0; i < kTries; i++) {
    const uint32_t place = extra_hand_++ % kExtraRoots;
    FecSetRecord& record = extra_[place];
    const uint64_t distance =
        shred.slot > record.slot ? shred.slot - record.slot : record.slot - shred.slot;
    if (record.used && distance < SlotWindow::kSlots) continue;
    last->next = place + 1;
    return &record;
  }
  return nullptr;
}

}  // namespace shredway
