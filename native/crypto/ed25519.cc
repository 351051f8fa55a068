#include "crypto/ed25519.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>
#include <cstring>
#include <utility>

namespace shredway {
namespace {

// ---- function tables of both libraries -------

// SHA-512 in steps. Both libraries have a state of at most 256 bytes.
struct Sha512State {
  alignas(16) std::array<uint8_t, 256> bytes;
};

struct Sodium {
  int (*init)();
  int (*verify)(const uint8_t* signature, const uint8_t* message, unsigned long long message_bytes,
                const uint8_t* public_key);
  int (*keypair)(uint8_t* public_key, uint8_t* secret, const uint8_t* seed);
  int (*sign)(uint8_t* signature, unsigned long long* signature_bytes, const uint8_t* message,
              unsigned long long message_bytes, const uint8_t* secret);
  int (*hash_begin)(Sha512State* state);
  int (*hash_add)(Sha512State* state, const uint8_t* bytes, unsigned long long length);
  int (*hash_end)(Sha512State* state, uint8_t* out);
};

// void* stands for EVP_PKEY*, EVP_MD_CTX*, ENGINE*, EVP_MD* and EVP_PKEY_CTX**.
struct OpenSsl {
  void* (*public_key_new)(int type, void* engine, const uint8_t* bytes, size_t length);
  void* (*private_key_new)(int type, void* engine, const uint8_t* bytes, size_t length);
  int (*public_key_bytes)(const void* key, uint8_t* bytes, size_t* length);
  void (*key_free)(void* key);
  void* (*context_new)();
  int (*context_reset)(void* context);
  void (*context_free)(void* context);
  int (*verify_init)(void* context, void* key_context, const void* digest, void* engine, void* key);
  int (*verify)(void* context, const uint8_t* signature, size_t signature_bytes,
                const uint8_t* message, size_t message_bytes);
  int (*sign_init)(void* context, void* key_context, const void* digest, void* engine, void* key);
  int (*sign)(void* context, uint8_t* signature, size_t* signature_bytes, const uint8_t* message,
              size_t message_bytes);
  void (*errors_clear)();
  int (*hash_begin)(Sha512State* state);
  int (*hash_add)(Sha512State* state, const void* bytes, size_t length);
  int (*hash_end)(uint8_t* out, Sha512State* state);
};

constexpr int kOpenSslEd25519 = 1087;  // NID_ED25519, stable since OpenSSL 1.1.1

template <typename Function>
bool find(void* handle, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(handle, name));
  return out != nullptr;
}

bool find_sodium(void* handle, Sodium& out) {
  return find(handle, "sodium_init", out.init) &&
         find(handle, "crypto_sign_ed25519_verify_detached", out.verify) &&
         find(handle, "crypto_sign_ed25519_seed_keypair", out.keypair) &&
         find(handle, "crypto_sign_ed25519_detached", out.sign) &&
         find(handle, "crypto_hash_sha512_init", out.hash_begin) &&
         find(handle, "crypto_hash_sha512_update", out.hash_add) &&
         find(handle, "crypto_hash_sha512_final", out.hash_end) && out.init() >= 0;
}

// OpenSSL can be built without its older functions, among them those of SHA-512.
bool find_openssl(void* handle, OpenSsl& out) {
  if (!find(handle, "SHA512_Init", out.hash_begin) ||
      !find(handle, "SHA512_Update", out.hash_add) || !find(handle, "SHA512_Final", out.hash_end))
    out.hash_begin = nullptr;
  return find(handle, "EVP_PKEY_new_raw_public_key", out.public_key_new) &&
         find(handle, "EVP_PKEY_new_raw_private_key", out.private_key_new) &&
         find(handle, "EVP_PKEY_get_raw_public_key", out.public_key_bytes) &&
         find(handle, "EVP_PKEY_free", out.key_free) &&
         find(handle, "EVP_MD_CTX_new", out.context_new) &&
         find(handle, "EVP_MD_CTX_reset", out.context_reset) &&
         find(handle, "EVP_MD_CTX_free", out.context_free) &&
         find(handle, "EVP_DigestVerifyInit", out.verify_init) &&
         find(handle, "EVP_DigestVerify", out.verify) &&
         find(handle, "EVP_DigestSignInit", out.sign_init) &&
         find(handle, "EVP_DigestSign", out.sign) &&
         find(handle, "ERR_clear_error", out.errors_clear);
}

// ---- OpenSSL calls ----

// One context per thread, reused: a new one per verification costs an extra allocation. The owner
// stores the library's free function, which stays loaded (there is no dlclose).
struct ThreadContext {
  void* context = nullptr;
  void (*free)(void*) = nullptr;
  ~ThreadContext() {
    if (context) free(context);
  }
};

void* context_of_thread(const OpenSsl& library) {
  static thread_local ThreadContext owner;
  if (!owner.context) {
    owner.context = library.context_new();
    owner.free = library.context_free;
  }
  if (owner.context) library.context_reset(owner.context);
  return owner.context;
}

struct Message {
  const uint8_t* bytes;
  size_t length;
};

bool openssl_verify(const OpenSsl& library, void* key, const uint8_t* signature, Message message) {
  void* context = context_of_thread(library);
  const bool valid =
      context && library.verify_init(context, nullptr, nullptr, nullptr, key) == 1 &&
      library.verify(context, signature, sizeof(Signature), message.bytes, message.length) == 1;
  // Failures must not stay in the thread's error queue, because Node.js reads it.
  if (!valid) library.errors_clear();
  return valid;
}

bool openssl_sign(const OpenSsl& library, void* key, Message message, Signature& out) {
  size_t out_bytes = out.size();
  void* context = context_of_thread(library);
  const bool made =
      context && library.sign_init(context, nullptr, nullptr, nullptr, key) == 1 &&
      library.sign(context, out.data(), &out_bytes, message.bytes, message.length) == 1 &&
      out_bytes == out.size();
  if (!made) library.errors_clear();
  return made;
}

// ---- which library ----

// RFC 8032, 7.1, test 1 (empty message). A library must accept it before it is used. A library with
// the same symbols but other key types (BoringSSL) is skipped.
constexpr uint8_t kKnownKey[32] = {0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe,
                                   0xd3, 0xc9, 0x64, 0x07, 0x3a, 0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6,
                                   0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a};
constexpr uint8_t kKnownSignature[64] = {
    0xe5, 0x56, 0x43, 0x00, 0xc3, 0x60, 0xac, 0x72, 0x90, 0x86, 0xe2, 0xcc, 0x80, 0x6e, 0x82, 0x8a,
    0x84, 0x87, 0x7f, 0x1e, 0xb8, 0xe5, 0xd9, 0x74, 0xd8, 0x73, 0xe0, 0x65, 0x22, 0x49, 0x01, 0x55,
    0x5f, 0xb8, 0x82, 0x15, 0x90, 0xa3, 0x3b, 0xac, 0xc6, 0x1e, 0x39, 0x70, 0x1c, 0xf9, 0xb4, 0x6b,
    0xd2, 0x5b, 0xf5, 0xf0, 0x59, 0x5b, 0xbe, 0x24, 0x65, 0x51, 0x41, 0x43, 0x8e, 0x7a, 0x10, 0x0b};

// The same key and message, with a point of order 8 added to R. The equation holds only if both
// sides are multiplied by 8, as some libraries do. The network does not accept this signature, so a
// library that does is skipped.
constexpr uint8_t kCofactoredSignature[64] = {
    0xe3, 0x1b, 0xf5, 0x14, 0xeb, 0x41, 0xaf, 0x93, 0x4c, 0xdb, 0x61, 0xa8, 0xae, 0x58, 0x8b, 0x29,
    0xde, 0xea, 0xf2, 0x1b, 0xe7, 0x83, 0x82, 0xd8, 0xb9, 0xac, 0x13, 0x49, 0x3f, 0x1c, 0x26, 0x2e,
    0xd2, 0x05, 0x1c, 0xc8, 0xac, 0xe3, 0xe3, 0x37, 0xae, 0x62, 0x9d, 0xe8, 0x8c, 0xcc, 0xeb, 0x45,
    0x7a, 0x21, 0x0e, 0x6a, 0x43, 0x61, 0xc1, 0x02, 0x47, 0x54, 0x56, 0xf6, 0xc0, 0x53, 0x68, 0x06};

bool sodium_works(const Sodium& library) {
  return library.verify(kKnownSignature, kKnownKey, 0, kKnownKey) == 0 &&
         library.verify(kCofactoredSignature, kKnownKey, 0, kKnownKey) != 0;
}

bool openssl_works(const OpenSsl& library) {
  void* key = library.public_key_new(kOpenSslEd25519, nullptr, kKnownKey, sizeof kKnownKey);
  if (!key) return library.errors_clear(), false;
  const bool works = openssl_verify(library, key, kKnownSignature, {kKnownKey, 0}) &&
                     !openssl_verify(library, key, kCofactoredSignature, {kKnownKey, 0});
  library.key_free(key);
  return works;
}

// Each library is looked up once, at its first use on any thread (static locals).
const Sodium* sodium() {
  static const std::pair<bool, Sodium> found = [] {
    Sodium library{};
    for (const char* name : {"libsodium.so.23", "libsodium.so.26", "libsodium.so"}) {
      void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle && find_sodium(handle, library) && sodium_works(library))
        return std::pair{true, library};
    }
    return std::pair{false, library};
  }();
  return found.first ? &found.second : nullptr;
}

// Prefers the OpenSSL that the process has already loaded: inside Node.js, its own.
const OpenSsl* openssl() {
  static const std::pair<bool, OpenSsl> found = [] {
    OpenSsl library{};
    if (find_openssl(RTLD_DEFAULT, library) && openssl_works(library))
      return std::pair{true, library};
    for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"}) {
      void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle && find_openssl(handle, library) && openssl_works(library))
        return std::pair{true, library};
    }
    return std::pair{false, library};
  }();
  return found.first ? &found.second : nullptr;
}

// Ed25519Library requested by ed25519_use, or -1 for automatic selection.
std::atomic<int> requested_library{-1};

// ---- unsafe keys -------

// Points of small order by their y, sign bit cleared. libsodium refuses them; OpenSSL does not.
// This check makes the result independent of the library. The last two are 0 and 1 written as p and
// p + 1.
constexpr uint8_t kSmallOrder[7][32] = {
    {0},
    {1},
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
     0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
     0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
     0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
     0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
};

// y >= p = 2^255 - 19 is a second encoding of the same point; libsodium also refuses it.
bool is_canonical(const uint8_t* point) {
  if ((point[31] & 0x7f) != 0x7f || point[0] < 0xed) return true;
  for (size_t i = 1; i < 31; i++)
    if (point[i] != 0xff) return true;
  return false;
}

}  // namespace

bool has_small_order(const uint8_t* point) {
  for (const uint8_t* small : kSmallOrder)
    if (std::memcmp(point, small, 31) == 0 && (point[31] & 0x7f) == small[31]) return true;
  return false;
}

bool is_safe_key(const uint8_t* key) { return !has_small_order(key) && is_canonical(key); }

bool sha512(std::initializer_list<std::span<const uint8_t>> parts, Sha512Digest& out) {
  Sha512State state;
  switch (ed25519_library()) {
    case Ed25519Library::libsodium:
      sodium()->hash_begin(&state);
      for (const auto& part : parts) sodium()->hash_add(&state, part.data(), part.size());
      sodium()->hash_end(&state, out.data());
      return true;
    case Ed25519Library::openssl:
      if (!openssl()->hash_begin) return false;
      openssl()->hash_begin(&state);
      for (const auto& part : parts) openssl()->hash_add(&state, part.data(), part.size());
      openssl()->hash_end(out.data(), &state);
      return true;
    case Ed25519Library::none:
      break;
  }
  return false;
}

Ed25519Library ed25519_library() {
  const int requested = requested_library.load(std::memory_order_relaxed);
  if (requested >= 0) return static_cast<Ed25519Library>(requested);
  if (sodium()) return Ed25519Library::libsodium;
  if (openssl()) return Ed25519Library::openssl;
  return Ed25519Library::none;
}

const char* ed25519_library_name() {
  switch (ed25519_library()) {
    case Ed25519Library::libsodium:
      return "libsodium";
    case Ed25519Library::openssl:
      return "openssl";
    case Ed25519Library::none:
      break;
  }
  return "none";
}

bool ed25519_use(Ed25519Library library) {
  if (library == Ed25519Library::libsodium && !sodium()) return false;
  if (library == Ed25519Library::openssl && !openssl()) return false;
  requested_library.store(static_cast<int>(library), std::memory_order_relaxed);
  return true;
}

VerifyingKey::VerifyingKey(const PublicKey& bytes) : bytes_(bytes) {
  if (ed25519_library() != Ed25519Library::openssl) return;
  if (!is_safe_key(bytes.data())) return;
  evp_key_ = openssl()->public_key_new(kOpenSslEd25519, nullptr, bytes.data(), bytes.size());
  if (!evp_key_) openssl()->errors_clear();
}

VerifyingKey::VerifyingKey(VerifyingKey&& other) noexcept
    : bytes_(other.bytes_), evp_key_(std::exchange(other.evp_key_, nullptr)) {}

VerifyingKey& VerifyingKey::operator=(VerifyingKey&& other) noexcept {
  bytes_ = other.bytes_;
  std::swap(evp_key_, other.evp_key_);
  return *this;
}

VerifyingKey::~VerifyingKey() {
  if (evp_key_) openssl()->key_free(evp_key_);
}

bool VerifyingKey::verify(const uint8_t* signature, const uint8_t* message,
                          size_t message_bytes) const {
  if (evp_key_) {
    return !has_small_order(signature) &&
           openssl_verify(*openssl(), evp_key_, signature, {message, message_bytes});
  }
  if (ed25519_library() != Ed25519Library::libsodium) return false;
  return sodium()->verify(signature, message, message_bytes, bytes_.data()) == 0;
}

SigningKey::SigningKey(const std::array<uint8_t, 32>& seed) {
  switch (ed25519_library()) {
    case Ed25519Library::libsodium:
      valid_ = sodium()->keypair(public_key_.data(), secret_.data(), seed.data()) == 0;
      break;
    case Ed25519Library::openssl: {
      const OpenSsl& library = *openssl();
      size_t length = public_key_.size();
      evp_key_ = library.private_key_new(kOpenSslEd25519, nullptr, seed.data(), seed.size());
      valid_ = evp_key_ && library.public_key_bytes(evp_key_, public_key_.data(), &length) == 1;
      if (!valid_) library.errors_clear();
      break;
    }
    case Ed25519Library::none:
      break;
  }
}

SigningKey::~SigningKey() {
  explicit_bzero(secret_.data(), secret_.size());
  if (evp_key_) openssl()->key_free(evp_key_);
}

bool SigningKey::sign(const uint8_t* message, size_t message_bytes, Signature& out) const {
  if (!valid_) return false;
  if (evp_key_) return openssl_sign(*openssl(), evp_key_, {message, message_bytes}, out);
  return sodium()->sign(out.data(), nullptr, message, message_bytes, secret_.data()) == 0;
}

}  // namespace shredway
