// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash for tables whose keys strangers choose.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shredway {

struct HashKey {
  uint64_t first, second;
};

// A key of the system's random numbers.
HashKey random_hash_key();

// Precondition: `length` is a multiple of 8, at most 255.
uint64_t sip_hash(const uint8_t* bytes, size_t length, const HashKey& key);

}  // namespace shredway
