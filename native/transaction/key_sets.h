// Key sets: look up whether an account is a tip address, or whether its text has a don't-front
// prefix.
//
// Built once from the configuration, then read-only: any thread may look up. Strangers choose the
// looked-up keys, so hashing is keyed: nobody can choose keys that all collide.
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

  // At most kAddressesMax addresses; duplicates are stored once.
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
  std::vector<Place> places_;  // size: a power of two
};

// A range of keys, read as 32-byte numbers, highest byte first. The keys whose base58 texts share a
// prefix form a few ranges.
struct KeyRange {
  PublicKey first, last;  // inclusive
};

class KeyRanges {
 public:
  static constexpr size_t kRangesMax = 1024;

  explicit KeyRanges(std::span<const KeyRange> ranges);
  bool contains(const uint8_t* key) const;

 private:
  std::vector<KeyRange> ranges_;
  // First bytes of all keys in the ranges: enough for most lookups.
  std::array<bool, 256> first_bytes_{};
};

}  // namespace shredway
