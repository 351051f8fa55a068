// Recent texts: remembers the most recent signatures, to recognise a transaction that was submitted
// before.
//
// Keeps fingerprints of 64 bits of at least the last kGenerationMax texts, in bounded memory. A
// false match only means that the fast path leaves a transaction to JavaScript.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "crypto/sip_hash.h"

namespace shredway {

class RecentTexts {
 public:
  static constexpr size_t kGenerationMax = 131'072;

  RecentTexts();
  // Adds it; false: it was there.
  bool add(std::string_view text);
  bool contains(std::string_view text) const;

 private:
  static constexpr size_t kPlaces = 2 * kGenerationMax;  // a power of two
  struct Generation {
    std::vector<uint64_t> places;  // 0: free
    size_t count = 0;
  };

  uint64_t fingerprint_of(std::string_view text) const;
  static bool contains(const Generation& generation, uint64_t fingerprint);
  static void insert(Generation& generation, uint64_t fingerprint);

  HashKey key_;
  Generation newer_, older_;
};

}  // namespace shredway
