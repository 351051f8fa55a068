#include "transaction/key_sets.h"

#include <bit>
#include <cstring>
#include <random>

namespace shredway {
namespace {

constexpr size_t kPlacesPerAddress = 4;

uint64_t random_word() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

AddressSet::AddressSet(std::span<const PublicKey> addresses)
    : secret_(random_word()),
      multiplier_(random_word() | 1),
      places_(std::bit_ceil(kPlacesPerAddress * addresses.size() + 2)) {
  shift_ = 64 - std::countr_zero(places_.size());
  for (const PublicKey& address : addresses) {
    size_t at = home_of(address.data());
    while (places_[at].used && places_[at].key != address) at = (at + 1) % places_.size();
    places_[at] = {address, true};
  }
}

// The highest bits of a secret multiple: every bit of the first eight bytes affects them, in a way
// that cannot be predicted.
size_t AddressSet::home_of(const uint8_t* key) const {
  uint64_t head;
  std::memcpy(&head, key, sizeof head);
  head ^= secret_;
  return static_cast<size_t>((head ^ head >> 29) * multiplier_ >> shift_);
}

bool AddressSet::contains(const uint8_t* key) const {
  for (size_t at = home_of(key); places_[at].used; at = (at + 1) % places_.size())
    if (std::memcmp(places_[at].key.data(), key, sizeof(PublicKey)) == 0) return true;
  return false;
}

KeyRanges::KeyRanges(std::span<const KeyRange> ranges) : ranges_(ranges.begin(), ranges.end()) {
  for (const KeyRange& range : ranges_)
    for (size_t byte = range.first[0]; byte <= range.last[0]; byte++) first_bytes_[byte] = true;
}

bool KeyRanges::contains(const uint8_t* key) const {
  if (!first_bytes_[key[0]]) return false;
  for (const KeyRange& range : ranges_)
    if (std::memcmp(key, range.first.data(), sizeof(PublicKey)) >= 0 &&
        std::memcmp(key, range.last.data(), sizeof(PublicKey)) <= 0)
      return true;
  return false;
}

}  // namespace shredway
