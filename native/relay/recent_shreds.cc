#include "relay/recent_shreds.h"

#include <sys/mman.h>

namespace shredway {
namespace {

constexpr size_t kPrefaultSetsPerSlot = 64;  // 4,096 shreds: twice what mainnet produces in 400 ms
constexpr size_t kPageBytes = 4096;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

// Gives this memory its pages. One call for all of them takes a tenth of the time that a fault for
// each takes in a virtual machine. Kernels before 5.14 refuse it.
void touch(uint8_t* begin, size_t bytes) {
  if (madvise(begin, bytes, kPopulateWrite) == 0) return;
  for (size_t at = 0; at < bytes; at += kPageBytes) static_cast<volatile uint8_t*>(begin)[at] = 0;
}

void start_record(FecSetRecord& set_record, const Shred& shred, const uint8_t* signature,
                  const Root& root) {
  set_record.used = true;
  set_record.forwardable = false;
  set_record.slot = shred.slot;
  set_record.fec_set_index = shred.fec_set_index;
  set_record.next = 0;
  std::memcpy(set_record.signature, signature, kSignatureBytes);
  set_record.root = root;
  std::memset(set_record.shred_records, 0, sizeof set_record.shred_records);
}

}  // namespace

std::unique_ptr<RecentShreds> RecentShreds::create(bool prefault) {
  std::unique_ptr<RecentShreds> recent(new RecentShreds);
  FecSetRecord* records = recent->records_.data();
  if (!records) return nullptr;
  // With huge pages, every slot would touch all of its 640 kB.
  madvise(records, recent->records_.bytes(), MADV_NOHUGEPAGE);
  recent->extra_ = std::make_unique<FecSetRecord[]>(kExtraRoots);
  if (prefault) {
    constexpr size_t kSlotBytes = kFecSetsPerSlotMax * sizeof(FecSetRecord);
    static_assert(kSlotBytes % kPageBytes == 0);
    uint8_t* bytes = reinterpret_cast<uint8_t*>(records);
    for (size_t slot = 0; slot < SlotWindow::kSlots; slot++)
      touch(bytes + slot * kSlotBytes, kPrefaultSetsPerSlot * sizeof(FecSetRecord));
  }
  return recent;
}

void RecentShreds::lock_memory(MemoryLock& lock) const {
  lock.add_on_touch(records_.data(), records_.bytes());
  lock.add(extra_.get(), kExtraRoots * sizeof(FecSetRecord));
}

FecSetRecord* RecentShreds::find(const Shred& shred, const uint8_t* signature) {
  FecSetRecord* set_record = &primary(shred);
  if (!belongs(*set_record, shred)) return nullptr;
  while (set_record && std::memcmp(set_record->signature, signature, kSignatureBytes) != 0)
    set_record = next_root(*set_record, shred);
  return set_record;
}

FecSetRecord* RecentShreds::find_root(const Shred& shred, const Root& root) {
  FecSetRecord* set_record = &primary(shred);
  if (!belongs(*set_record, shred)) return nullptr;
  while (set_record && set_record->root != root) set_record = next_root(*set_record, shred);
  return set_record;
}

uint32_t RecentShreds::root_count(const Shred& shred, TierMask tier_mask) {
  uint32_t count = 0;
  FecSetRecord* set_record = &primary(shred);
  if (!belongs(*set_record, shred)) return 0;
  for (; set_record; set_record = next_root(*set_record, shred))
    count += set_record->forwardable || !tier_mask;
  return count;
}

bool RecentShreds::outranked(const Shred& shred, ArrivalTime now) {
  const FecSetRecord& set_record = primary(shred);
  if (!set_record.used || set_record.slot <= shred.slot) return false;
  constexpr uint32_t kOverwriteAfter = arrival_time(kOverwriteAfter_ns);
  return now - set_record.last_use < kOverwriteAfter || set_record.last_use - now < kOverwriteAfter;
}

RecentShreds::Match RecentShreds::match_of(const Shred& shred, const uint8_t* signature,
                                           const Root& root, bool match_root) {
  Match match;
  for (FecSetRecord* one = &primary(shred); one; match.last = one, one = next_root(*one, shred)) {
    const bool same = match_root ? one->root == root
                                 : std::memcmp(one->signature, signature, kSignatureBytes) == 0;
    const ShredRecord& shred_record = one->shred_records[shred.leaf];
    if (same) {
      match.record = one;
    } else {
      match.other_roots += shred_record.has_arrived;
      match.other_served += shred_record.tiers_served != 0;
    }
  }
  return match;
}

RecentShreds::Outcome RecentShreds::record(const Shred& shred, const uint8_t* signature,
                                           const Root& root, const ShredArrival& arrival,
                                           bool match_root) {
  Match match;
  FecSetRecord& first_root = primary(shred);
  if (belongs(first_root, shred)) {
    match = match_of(shred, signature, root, match_root);
  } else {
    if (outranked(shred, arrival.time)) return {Verdict::slot_behind, 0};
    start_record(first_root, shred, signature, root);
    match.record = &first_root;
  }

  const bool own_use = arrival.tier_mask == 0;
  const bool known =
      match.record && (own_use ? match.record->shred_records[shred.leaf].has_arrived
                               : match.record->shred_records[shred.leaf].tiers_served);
  if (!known && (own_use ? match.other_roots : match.other_served) >= 2)
    return {Verdict::equivocation_excess, 0};
  if (!match.record) {
    match.record = add_root(shred, match.last);
    if (!match.record) return {Verdict::equivocation_excess, 0};
    start_record(*match.record, shred, signature, root);
  }
  first_root.last_use = arrival.time;
  ShredRecord& shred_record = match.record->shred_records[shred.leaf];
  Outcome outcome{Verdict::duplicate,
                  static_cast<TierMask>(arrival.tier_mask & ~shred_record.tiers_served)};
  if (known && !outcome.tiers) return outcome;
  outcome.verdict = own_use                    ? Verdict::own_use
                    : known                    ? Verdict::new_tier
                    : shred_record.has_arrived ? Verdict::first_forwardable
                    : match.other_roots        ? Verdict::equivocation
                                               : Verdict::first;
  if (!own_use && !match.record->forwardable) {
    match.record->forwardable = true;
    std::memcpy(match.record->signature, signature, kSignatureBytes);
  }
  outcome.recovered_sent = shred_record.tiers_recovered_sent;
  outcome.is_new_forwardable = !own_use && !known && match.other_served == 0;
  shred_record.tiers_served = static_cast<TierMask>(shred_record.tiers_served | outcome.tiers);
  if (shred_record.has_arrived) return outcome;
  outcome.is_new = match.other_roots == 0;
  outcome.is_equivocation = match.other_roots != 0;
  shred_record.has_arrived = true;
  shred_record.first_arrival = arrival.time;
  shred_record.first_source = arrival.source & 0x3fff;
  return outcome;
}

// A record of the pool is free if it was never used or its slot is a whole window away. The search
// is bounded. If it fails, leaders equivocate in thousands of FEC sets, and further roots are
// dropped.
FecSetRecord* RecentShreds::add_root(const Shred& shred, FecSetRecord* last) {
  constexpr uint32_t kTries = 16;
  for (uint32_t i = 0; i < kTries; i++) {
    const uint32_t place = next_extra_++ % kExtraRoots;
    FecSetRecord& set_record = extra_[place];
    const uint64_t distance =
        shred.slot > set_record.slot ? shred.slot - set_record.slot : set_record.slot - shred.slot;
    if (set_record.used && distance < SlotWindow::kSlots) continue;
    last->next = place + 1;
    return &set_record;
  }
  return nullptr;
}

}  // namespace shredway
