// Landings: the watched transactions that arrived in shreds, with place and first arrival time.
//
// Only the deshred thread uses the watch-list and the recent landings. The recent landings answer
// for a signature that is watched only after it landed. Everything is bounded. Strangers choose the
// signatures, so hashing is keyed (SipHash); a leader who repeats a transaction causes only a few
// reports.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "crypto/sip_hash.h"
#include "system/spsc_ring.h"
#include "transaction/wire.h"

namespace shredway {

using TransactionSignature = std::array<uint8_t, kTransactionSignatureBytes>;

// Bits of Landing::flags.
inline constexpr uint32_t kBeforeWatch = 1;  // arrived before its signature was watched
inline constexpr uint32_t kMayRestart = 2;  // the chain has block markers, or this is not known yet
// No observation: the block of the slot begins again at batch_index, which withdraws all earlier
// observations of the slot. Only slot, arrival_ns and batch_index are set.
inline constexpr uint32_t kRestart = 4;

// Observation of one transaction. 96 bytes in the layout that the control plane reads.
struct Landing {
  uint64_t slot;
  uint64_t arrival_ns;  // receive time (CLOCK_REALTIME) of the shred that completed it
  // First data shred of its entry batch; with `ordinal`, its order in the slot.
  uint32_t batch_index;
  uint32_t ordinal;      // index among the transactions of the batch
  uint32_t shred_index;  // data shred in which it ends
  uint32_t flags;
  TransactionSignature signature;
};
static_assert(sizeof(Landing) == 96);

inline constexpr size_t kLandingsWaitingMax = 8192;
using LandingRing = SpscRing<Landing, kLandingsWaitingMax>;

// SipHash-2-4 of a signature's 64 bytes.
inline uint64_t hash_of(const uint8_t* signature, const HashKey& key) {
  return sip_hash(signature, kTransactionSignatureBytes, key);
}

// Exact set of at most kSignaturesMax signatures.
class WatchList {
 public:
  static constexpr size_t kSignaturesMax = 1u << 18;
  static constexpr uint8_t kReportsMax = 32;     // maximum of reports for one signature
  static constexpr uint8_t kSlotReportsMax = 4;  // maximum of consecutive reports from one slot

  explicit WatchList(const HashKey& key) : key_(key) {}
  // Returns false if it is already in the set, or if the set is full (the caller prevents this).
  bool add(const TransactionSignature& signature);
  // Returns false if it is not in the set.
  bool remove(const TransactionSignature& signature);
  bool contains(const uint8_t* signature) const;
  // Returns true if this landing must be reported: the signature is watched, and its last landing
  // was in another slot or in an earlier batch. A valid block contains a transaction once, but the
  // earlier batch may have been abandoned.
  bool record_landing(const uint8_t* signature, uint64_t slot, uint32_t batch_index);
  size_t size() const { return size_; }

 private:
  static constexpr size_t kPlaces = 2 * kSignaturesMax;
  // Most looked-up signatures are not watched. The bit set answers for them: its 64 kB stay in the
  // cache, and no entry is read.
  bool is_used(size_t place) const { return used_[place / 64] >> (place % 64) & 1; }
  void set_used(size_t place, bool used) {
    const uint64_t bit = uint64_t{1} << (place % 64);
    used_[place / 64] = used ? used_[place / 64] | bit : used_[place / 64] & ~bit;
  }
  struct Place {
    TransactionSignature signature;
    uint64_t last_slot;  // slot and batch of the last reported landing
    uint32_t last_batch;
    uint8_t reports;
    uint8_t slot_reports;  // of last_slot
  };
  size_t home_of(const uint8_t* signature) const { return hash_of(signature, key_) % kPlaces; }
  size_t find(const uint8_t* signature) const;

  HashKey key_;
  size_t size_ = 0;
  std::unique_ptr<uint64_t[]> used_;  // both allocated with the first signature
  std::unique_ptr<Place[]> places_;
};

// Recent landings, about kLandings of them. Each one overwrites the oldest of its bucket, so that a
// crowded bucket forgets sooner.
class RecentLandings {
 public:
  static constexpr size_t kLandings = 1u << 17;

  explicit RecentLandings(const HashKey& key);
  // Records a landing, unless the slot's last one is in the same batch or in a later one.
  void record(const Landing& landing);
  // Calls visit(landing) for each landing of this signature, oldest first.
  template <typename Visit>
  void find(const uint8_t* signature, Visit visit) const {
    if (!buckets_) return;
    const Bucket& bucket = buckets_[bucket_of(signature)];
    for (uint32_t i = 0; i < kBucketLandings; i++) {
      const Landing& landing = bucket.landings[(bucket.next + i) % kBucketLandings];
      if (landing.arrival_ns == 0) continue;  // never written
      if (std::memcmp(landing.signature.data(), signature, landing.signature.size()) == 0)
        visit(landing);
    }
  }

 private:
  static constexpr uint32_t kBucketLandings = 8;
  static constexpr size_t kBuckets = kLandings / kBucketLandings;
  struct Bucket {
    uint32_t next;  // the oldest, overwritten next
    std::array<Landing, kBucketLandings> landings;
  };
  size_t bucket_of(const uint8_t* signature) const { return hash_of(signature, key_) % kBuckets; }

  struct Free {
    void operator()(Bucket* buckets) const;
  };
  HashKey key_;
  std::unique_ptr<Bucket[], Free> buckets_;  // zeroed pages, touched as they are needed
};

}  // namespace shredway
