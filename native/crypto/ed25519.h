// Ed25519 (RFC 8032): leaders' signatures checked, and made for our own shreds.
//
// Called by leader_auth (once per FEC set) and by the shredder. The mathematics is a library's:
// libsodium where the machine has it (about twice as fast), else OpenSSL's libcrypto: inside Node
// that is Node's own. Both are found at run time, so that neither headers nor a link-time
// dependency decide which machines can run the same binary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace shredway {

using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

enum class Ed25519Library : uint8_t { none, openssl, libsodium };

// The library in use, chosen at the first call (libsodium first).
Ed25519Library ed25519_library();
const char* ed25519_library_name();
// Tests and benches: use exactly this one; false when the machine lacks it. Not thread-safe, and
// only before keys are made.
bool ed25519_use(Ed25519Library library);

// A public key ready to verify with. Import once per leader (2.3 us with OpenSSL), not per check.
// Verification is thread-safe.
class VerifyingKey {
 public:
  explicit VerifyingKey(const PublicKey& bytes);
  VerifyingKey(VerifyingKey&&) noexcept;
  VerifyingKey& operator=(VerifyingKey&&) noexcept;
  ~VerifyingKey();
  const PublicKey& bytes() const { return bytes_; }
  // False for a wrong signature, a key that is no point, and when no library was found.
  bool verify(const uint8_t* signature, const uint8_t* message, size_t message_bytes) const;

 private:
  PublicKey bytes_;
  void* evp_key_ = nullptr;  // OpenSSL only
};

class SigningKey {
 public:
  explicit SigningKey(const std::array<uint8_t, 32>& seed);
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;
  ~SigningKey();
  // False when no library was found at construction; sign() then returns false, too.
  bool valid() const { return valid_; }
  const PublicKey& public_key() const { return public_key_; }
  bool sign(const uint8_t* message, size_t message_bytes, Signature& out) const;

 private:
  PublicKey public_key_{};
  std::array<uint8_t, 64> secret_{};  // libsodium only: seed || public key
  void* evp_key_ = nullptr;           // OpenSSL only
  bool valid_ = false;
};

}  // namespace shredway
