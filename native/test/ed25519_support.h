// Support for tests of Ed25519: bytes from hexadecimal text, and verification in every way.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "crypto/prepared_key.h"

namespace shredway::test {

using Bytes = std::vector<uint8_t>;

inline Bytes unhex(const std::string& text) {
  Bytes out;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return out;
}
template <size_t kBytes>
std::array<uint8_t, kBytes> array_of(const std::string& text) {
  std::array<uint8_t, kBytes> out;
  const Bytes bytes = unhex(text);
  std::memcpy(out.data(), bytes.data(), kBytes);
  return out;
}

// Runs `body` with each library that this machine has; then restores the selection.
template <typename Body>
size_t on_each_library(Body body) {
  const Ed25519Library before = ed25519_library();
  size_t libraries = 0;
  for (const auto library : {Ed25519Library::openssl, Ed25519Library::libsodium}) {
    if (!ed25519_use(library)) continue;
    libraries++;
    CHECK(ed25519_library() == library);
    body();
  }
  ed25519_use(before);
  return libraries;
}

// A key in both forms, whose results must be the same.
class BothKeys {
 public:
  explicit BothKeys(const PublicKey& key) : key_(key), prepared_(PreparedKey::create(key)) {}
  bool verify(const Signature& signature, const Bytes& message) const {
    const bool valid = key_.verify(signature.data(), message.data(), message.size());
    const bool prepared_valid =
        prepared_ && prepared_->verify(signature.data(), message.data(), message.size());
    CHECK_EQ(prepared_valid, valid);
    return valid;
  }

 private:
  VerifyingKey key_;
  std::unique_ptr<const PreparedKey> prepared_;
};

inline bool verifies(const PublicKey& key, const Signature& signature, const Bytes& message) {
  return BothKeys(key).verify(signature, message);
}

}  // namespace shredway::test
