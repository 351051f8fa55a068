// Landings: which watched transactions stood in the feed, where and when first seen.
//
// The deshred thread owns the watch-list and the memory of recent landings; it alone uses them. The
// memory answers for a signature that is watched only after it landed. Everything is bounded:
// signatures are strangers' choice, so hashing is keyed (SipHash), and a leader who repeats a
// transaction is told of a few times only.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "relay/spsc_ring.h"
#include "transaction/wire.h"

namespace shredway {

using TransactionSignature = std::array<uint8_t, kTransactionSignatureBytes>;

// One sight of a transaction. 96 bytes, read by the control plane as they lie.
struct Landing {
  uint64_t slot;
  uint64_t seen_ns;       // receive time (CLOCK_REALTIME) of the shred that made it readable
  uint32_t batch_index;   // first data shred of its batch; with `ordinal` its order in the slot
  uint32_t ordinal;       // among the transactions of the batch
  uint32_t shred_index;   // data shred in which it ends
  uint32_t before_watch;  // 1: seen before its signature was watched
  TransactionSignature signature;
};
static_assert(sizeof(Landing) == 96);

inline constexpr size_t kLandingsWaitingMax = 8192;
using LandingRing = SpscRing<Landing, kLandingsWaitingMax>;

struct HashKey {
  uint64_t first, second;
};
// SipHash-2-4 of a signature's 64 bytes.
uint64_t hash_of(const uint8_t* signature, const HashKey& key);

// Exact set of at most kSignaturesMax signatures.
class WatchList {
 public:
  static constexpr size_t kSignaturesMax = 1u << 18;
  static constexpr uint8_t kSightsMax = 32;  // of one signature that are told

  explicit WatchList(const HashKey& key) : key_(key) {}
  // False when it is there already; or full, which the caller has prevented.
  bool add(const TransactionSignature& signature);
  // False when it is not there.
  bool remove(const TransactionSignature& signature);
  bool contains(const uint8_t* signature) const;
  // True when this sight is to be told: the signature is there, and the slot is another one than at
  // its last sight (a block that is worth anything holds a transaction once).
  bool note_sight(const uint8_t* signature, uint64_t slot);
  size_t size() const { return size_; }

 private:
  static constexpr size_t kPlaces = 2 * kSignaturesMax;
  // Most signatures that are asked for are not watched: their answer comes from the bits, 64 kB
  // that stay in the cache, without a look at the places.
  bool is_used(size_t place) const { return used_[place / 64] >> (place % 64) & 1; }
  void set_used(size_t place, bool used) {
    const uint64_t bit = uint64_t{1} << (place % 64);
    used_[place / 64] = used ? used_[place / 64] | bit : used_[place / 64] & ~bit;
  }
  struct Place {
    TransactionSignature signature;
    uint64_t last_slot;  // of the last sight that was told
    uint8_t sights;
  };
  size_t home_of(const uint8_t* signature) const { return hash_of(signature, key_) % kPlaces; }
  size_t find(const uint8_t* signature) const;

  HashKey key_;
  size_t size_ = 0;
  std::unique_ptr<uint64_t[]> used_;  // both made with the first signature
  std::unique_ptr<Place[]> places_;
};

// The last landings: each overwrites the oldest of its bucket, so that an old one may stay long and
// a crowded bucket forgets sooner; about kLandings of them in all.
class RecentLandings {
 public:
  static constexpr size_t kLandings = 1u << 17;

  explicit RecentLandings(const HashKey& key);
  // Once for each slot that a transaction is seen in.
  void record(const Landing& landing);
  // Calls visit(landing) for each one with this signature, oldest first.
  template <typename Visit>
  void find(const uint8_t* signature, Visit visit) const {
    if (!buckets_) return;
    const Bucket& bucket = buckets_[bucket_of(signature)];
    for (uint32_t i = 0; i < kBucketLandings; i++) {
      const Landing& landing = bucket.landings[(bucket.next + i) % kBucketLandings];
      if (landing.seen_ns == 0) continue;  // never written
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

// Whether a transaction is a vote and nothing else: those of all validators crowd every block and
// nobody asks for them afterwards.
bool is_simple_vote(const uint8_t* bytes, const Transaction& transaction);

}  // namespace shredway
