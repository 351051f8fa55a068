// Ed25519 (RFC 8032): verifies leaders' signatures and signs the project's own shreds.
//
// Used by leader_auth (once per FEC set) and by the shredder. The mathematics is a library's:
// libsodium if the machine has it (about twice as fast), otherwise OpenSSL's libcrypto, which
// inside Node.js is Node's own. Both are loaded at run time, so that the same binary runs on
// machines with either of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

namespace shredway {

using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

enum class Ed25519Library : uint8_t { none, openssl, libsodium };

// The library in use, chosen at the first call (libsodium first).
Ed25519Library ed25519_library();
const char* ed25519_library_name();
// Selects a library, for tests and benchmarks; returns false if the machine lacks it. Not
// thread-safe; only before keys are made.
bool ed25519_use(Ed25519Library library);

// Points of small order (8 and its divisors): under such a key a signature can be crafted that is
// valid for any message. Solana's verifiers (verify_strict) refuse them as key and as R.
bool has_small_order(const uint8_t* point);
// False for points of small order, and for a second encoding of a point (y >= 2^255 - 19).
bool is_safe_key(const uint8_t* key);

using Sha512Digest = std::array<uint8_t, 64>;
// SHA-512 of the parts, one after the other, by the library in use. False if it has none.
bool sha512(std::initializer_list<std::span<const uint8_t>> parts, Sha512Digest& out);

// An imported public key. Import it once per leader (2.3 us with OpenSSL), not per verification.
// Verification is thread-safe.
class VerifyingKey {
 public:
  explicit VerifyingKey(const PublicKey& bytes);
  VerifyingKey(VerifyingKey&&) noexcept;
  VerifyingKey& operator=(VerifyingKey&&) noexcept;
  ~VerifyingKey();
  const PublicKey& bytes() const { return bytes_; }
  // Returns false for an invalid signature, for a key that is not a curve point, and if no library
  // was found.
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
  // False if no library was found at construction; sign() then returns false, too.
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
