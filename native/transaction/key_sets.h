// Key sets: is this account one of the operator's tip addresses, or does its text begin with one of
// his prefixes?
//
// Made once from the configuration, then only read: any thread may ask. What is asked for comes
// from strangers, so places are keyed: nobody can choose keys that all fall on the fullest part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "crypto/ed25519.h"

namespace shredway {

// Exact set of public keys: open addressing, at most a quarter full.
class AddressSet {
 public:
  static constexpr size_t kAddressesMax = 4096;

  // At most kAddressesMax; one that comes twice is there once.
  explicit AddressSet(std::span<const PublicKey> addresses);
  bool contains(const uint8_t* key) const;

 private:
  struct Place {
    PublicKey key;
    bool used;
  };
  size_t home_of(const uint8_t* key) const;

  uint64_t secret_, multiplier_;
  int shift_;
  std::vector<Place> places_;  // a power of two of them
};

// Keys in order: read as 32-byte numbers, highest byte first, those that share the beginning of
// their base58 text are a few ranges.
struct KeyRange {
  PublicKey first, last;  // both belong to it
};

class KeyRanges {
 public:
  static constexpr size_t kRangesMax = 1024;

  explicit KeyRanges(std::span<const KeyRange> ranges);
  bool contains(const uint8_t* key) const;

 private:
  std::vector<KeyRange> ranges_;
  std::array<bool, 256> first_bytes_{};  // that some key of a range has: the answer for most
};

}  // namespace shredway
