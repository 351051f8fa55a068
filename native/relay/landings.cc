#include "relay/landings.h"

#include <cstdlib>

namespace shredway {

// ---- watch-list: open addressing, at most half full -----------------------------------------

// Index of the signature, or of the empty entry where it belongs.
size_t WatchList::find(const uint8_t* signature) const {
  size_t at = home_of(signature);
  while (is_used(at) &&
         std::memcmp(places_[at].signature.data(), signature, kTransactionSignatureBytes) != 0)
    at = (at + 1) % kPlaces;
  return at;
}

bool WatchList::add(const TransactionSignature& signature) {
  if (!places_) {
    used_.reset(new uint64_t[kPlaces / 64]());
    places_.reset(new Place[kPlaces]);  // uninitialised: not touched before use
  }
  const size_t at = find(signature.data());
  if (is_used(at) || size_ == kSignaturesMax) return false;
  places_[at] = {signature, 0, 0, 0, 0};
  set_used(at, true);
  size_++;
  return true;
}

bool WatchList::remove(const TransactionSignature& signature) {
  if (!contains(signature.data())) return false;
  size_t hole = find(signature.data());
  // Move entries that probed past the hole into it, so that probing can stop at empty entries.
  for (size_t at = (hole + 1) % kPlaces; is_used(at); at = (at + 1) % kPlaces) {
    const size_t home = home_of(places_[at].signature.data());
    const size_t from_home = (at + kPlaces - home) % kPlaces;
    const size_t from_hole = (at + kPlaces - hole) % kPlaces;
    if (from_home < from_hole) continue;
    places_[hole] = places_[at];
    hole = at;
  }
  set_used(hole, false);
  size_--;
  return true;
}

bool WatchList::contains(const uint8_t* signature) const {
  return size_ > 0 && is_used(find(signature));
}

bool WatchList::record_landing(const uint8_t* signature, uint64_t slot, uint32_t batch_index) {
  if (size_ == 0) return false;
  const size_t at = find(signature);
  if (!is_used(at)) return false;
  Place& place = places_[at];
  if (place.reports == kReportsMax) return false;
  const bool is_same_slot = place.reports > 0 && place.last_slot == slot;
  if (is_same_slot && (batch_index <= place.last_batch || place.slot_reports == kSlotReportsMax))
    return false;
  place.slot_reports = static_cast<uint8_t>(is_same_slot ? place.slot_reports + 1 : 1);
  place.last_slot = slot;
  place.last_batch = batch_index;
  place.reports++;
  return true;
}

// ---- recent landings ------------------------------------------------------------------------

void RecentLandings::Free::operator()(Bucket* buckets) const { std::free(buckets); }

// calloc gets a block of this size from the kernel as zero pages. If it fails, nothing is recorded.
RecentLandings::RecentLandings(const HashKey& key)
    : key_(key), buckets_(static_cast<Bucket*>(std::calloc(kBuckets, sizeof(Bucket)))) {}

void RecentLandings::record(const Landing& landing) {
  if (!buckets_) return;
  Bucket& bucket = buckets_[bucket_of(landing.signature.data())];
  const Landing& newest = bucket.landings[(bucket.next + kBucketLandings - 1) % kBucketLandings];
  if (newest.slot == landing.slot && newest.batch_index >= landing.batch_index &&
      newest.signature == landing.signature)
    return;
  bucket.landings[bucket.next] = landing;
  bucket.next = (bucket.next + 1) % kBucketLandings;
}

}  // namespace shredway
