// Identities, roots and signatures by number, for tests of recent_shreds.
#pragma once

#include <cstring>

#include "relay/recent_shreds.h"

namespace shredway::test {

inline Shred shred_of(uint64_t slot, uint32_t fec_set, uint8_t leaf) {
  Shred shred{};
  shred.slot = slot;
  shred.fec_set_index = fec_set * kFecSetShreds;
  shred.leaf = leaf;
  return shred;
}

inline Root root_of(uint32_t number) {
  Root root{};
  std::memcpy(root.data(), &number, sizeof number);
  root[31] = 1;
  return root;
}

// Signatures with one number and different variants are different signatures.
inline Signature signature_of(uint32_t number, uint32_t variant = 0) {
  Signature signature{};
  std::memcpy(signature.data() + 8, &number, sizeof number);
  std::memcpy(signature.data() + 16, &variant, sizeof variant);
  signature[0] = 1;
  return signature;
}

}  // namespace shredway::test
