#include "relay/landings.h"

#include <cstdlib>

namespace shredway {
namespace {

// Vote111111111111111111111111111111111111111
constexpr uint8_t kVoteProgram[kPublicKeyBytes] = {
    0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76, 0x24, 0xeb, 0xd3, 0xbd, 0xb3,
    0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10, 0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0x00, 0x00, 0x00, 0x00};

// Signatures are points and scalars that a sender may choose among many: mix all of the first words
// with a number that he does not know.
uint64_t hash_of(const uint8_t* signature, uint64_t seed) {
  uint64_t hash = seed;
  for (size_t i = 0; i < 4; i++) {
    uint64_t word;
    std::memcpy(&word, signature + 8 * i, sizeof word);
    hash = (hash ^ word) * 0x9e37'79b9'7f4a'7c15u;
    hash ^= hash >> 29;
  }
  return hash ^ hash >> 32;
}

}  // namespace

// ---- watch-list: open addressing, at most half full -----------------------------------------

size_t WatchList::home_of(const uint8_t* signature) const {
  return hash_of(signature, seed_) % kPlaces;
}

// Place of the signature, or the free one where it belongs.
size_t WatchList::find(const uint8_t* signature) const {
  size_t at = home_of(signature);
  while (is_used(at) && std::memcmp(places_[at].data(), signature, places_[at].size()) != 0)
    at = (at + 1) % kPlaces;
  return at;
}

bool WatchList::add(const TransactionSignature& signature) {
  if (!places_) {
    used_.reset(new uint64_t[kPlaces / 64]());
    places_.reset(new TransactionSignature[kPlaces]);  // not touched before use
  }
  const size_t at = find(signature.data());
  if (is_used(at) || size_ == kSignaturesMax) return false;
  places_[at] = signature;
  set_used(at, true);
  size_++;
  return true;
}

bool WatchList::remove(const TransactionSignature& signature) {
  if (!contains(signature.data())) return false;
  size_t hole = find(signature.data());
  // Whoever probed past the hole moves into it, so that probing may stop at free places.
  for (size_t at = (hole + 1) % kPlaces; is_used(at); at = (at + 1) % kPlaces) {
    const size_t home = home_of(places_[at].data());
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

// ---- recent landings ------------------------------------------------------------------------

void RecentLandings::Free::operator()(Bucket* buckets) const { std::free(buckets); }

// calloc takes so much from the kernel at once, as zero pages. Refused, nothing is remembered.
RecentLandings::RecentLandings(uint64_t seed)
    : seed_(seed), buckets_(static_cast<Bucket*>(std::calloc(kBuckets, sizeof(Bucket)))) {}

size_t RecentLandings::bucket_of(const uint8_t* signature) const {
  return hash_of(signature, seed_) % kBuckets;
}

void RecentLandings::remember(const Landing& landing) {
  if (!buckets_) return;
  Bucket& bucket = buckets_[bucket_of(landing.signature.data())];
  bucket.landings[bucket.next] = landing;
  bucket.next = (bucket.next + 1) % kBucketLandings;
}

// ---------------------------------------------------------------------------------------------

bool is_simple_vote(const uint8_t* bytes, const Transaction& transaction) {
  if (transaction.version == TransactionVersion::v1 || transaction.instruction_count != 1)
    return false;
  const uint8_t program = bytes[transaction.instructions_begin];
  return program < transaction.key_count &&
         std::memcmp(bytes + transaction.keys_begin + program * kPublicKeyBytes, kVoteProgram,
                     kPublicKeyBytes) == 0;
}

}  // namespace shredway
