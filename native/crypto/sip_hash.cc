#include "crypto/sip_hash.h"

#include <cstring>
#include <random>

namespace shredway {
namespace {

uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

struct SipState {
  uint64_t v0, v1, v2, v3;
  void round() {
    v0 += v1, v2 += v3;
    v1 = rotate(v1, 13) ^ v0, v3 = rotate(v3, 16) ^ v2;
    v0 = rotate(v0, 32);
    v2 += v1, v0 += v3;
    v1 = rotate(v1, 17) ^ v2, v3 = rotate(v3, 21) ^ v0;
    v2 = rotate(v2, 32);
  }
  void absorb(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

HashKey random_hash_key() {
  std::random_device device;
  const auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

// SipHash, Aumasson and Bernstein, 2012. A signer can choose most bits of a signature. Only a keyed
// hash of all bits prevents many chosen signatures from colliding.
uint64_t sip_hash(const uint8_t* bytes, size_t length, const HashKey& key) {
  SipState state{key.first ^ 0x736f'6d65'7073'6575u, key.second ^ 0x646f'7261'6e64'6f6du,
                 key.first ^ 0x6c79'6765'6e65'7261u, key.second ^ 0x7465'6462'7974'6573u};
  for (size_t at = 0; at < length; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes + at, sizeof word);
    state.absorb(word);
  }
  state.absorb(uint64_t{length} << 56);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; i++) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace shredway
