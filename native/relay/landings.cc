#include "relay/landings.h"

#include <cstdlib>

namespace shredway {
namespace {

// Vote111111111111111111111111111111111111111
constexpr uint8_t kVoteProgram[kPublicKeyBytes] = {
    0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76, 0x24, 0xeb, 0xd3, 0xbd, 0xb3,
    0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10, 0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0x00, 0x00, 0x00, 0x00};

uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

struct SipState {
  uint64_t v0, v1, v2, v3;
  void round() {
    v0 += v1, v2 += v3;
    v1 = rotate(v1, 13) ^ v0, v3 = rotate(v3, 16) ^ v2;
    v0 = rotate(v0, 32);
    v2 += v1, v0 += v3;
    v1 = rotate(v1, 17) ^ v2, v3 = rotate(v3, 21) ^ v0;
    v2 = rotate(v2, 32);
  }
  void absorb(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

// SipHash, Aumasson and Bernstein, 2012. A signer can choose most bits of a signature. Only a keyed
// hash of all bits prevents many chosen signatures from colliding.
uint64_t hash_of(const uint8_t* signature, const HashKey& key) {
  SipState state{key.first ^ 0x736f'6d65'7073'6575u, key.second ^ 0x646f'7261'6e64'6f6du,
                 key.first ^ 0x6c79'6765'6e65'7261u, key.second ^ 0x7465'6462'7974'6573u};
  for (size_t at = 0; at < kTransactionSignatureBytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, signature + at, sizeof word);
    state.absorb(word);
  }
  state.absorb(uint64_t{kTransactionSignatureBytes} << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; i++) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

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
