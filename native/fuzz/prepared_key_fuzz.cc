// Fuzz target: a prepared key gives the same result as the library, for every key, signature and
// message. Half of the inputs are valid signatures with some bytes changed.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "crypto/prepared_key.h"

using namespace shredway;

namespace {

constexpr size_t kHeadBytes = 1 + 32 + 64;

bool prepared_verifies(const PublicKey& key, const Signature& signature, const uint8_t* message,
                       size_t message_bytes) {
  const auto prepared = PreparedKey::create(key);
  return prepared && prepared->verify(signature.data(), message, message_bytes);
}

}  // namespace

// A mode, a key or a seed of 32 bytes, a signature or the changes of one, the message.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  if (length < kHeadBytes) return 0;
  PublicKey key;
  std::memcpy(key.data(), bytes + 1, key.size());
  Signature signature;
  std::memcpy(signature.data(), bytes + 1 + key.size(), signature.size());
  const uint8_t* message = bytes + kHeadBytes;
  const size_t message_bytes = length - kHeadBytes;
  if (bytes[0] & 1) {
    const SigningKey secret(key);
    Signature valid;
    if (!secret.sign(message, message_bytes, valid)) return 0;
    for (size_t i = 0; i < valid.size(); i++) signature[i] ^= valid[i];
    key = secret.public_key();
    if (bytes[0] & 2) key[bytes[0] >> 3] ^= static_cast<uint8_t>(bytes[0] | 1);
  }
  const bool valid = VerifyingKey(key).verify(signature.data(), message, message_bytes);
  if (prepared_verifies(key, signature, message, message_bytes) != valid) std::abort();
  return 0;
}
