// SHA-256 of one or several messages at once, without allocation.
//
// Used by merkle for every new shred. Uses the SHA instructions of the processor (selected once, at
// the first call) or portable code. FIPS 180-4.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shredway {

using Sha256Digest = std::array<uint8_t, 32>;

// Digest of prefix || body. Either part may be empty.
void sha256(const uint8_t* prefix, size_t prefix_bytes, const uint8_t* body, size_t body_bytes,
            Sha256Digest& out);

inline constexpr size_t kSha256Lanes = 4;

struct Sha256Input {
  const uint8_t* prefix;
  size_t prefix_bytes;
  const uint8_t* body;
  size_t body_bytes;
};
// Digests of up to kSha256Lanes messages, interleaved so that the SHA units stay busy. Messages may
// differ in length. 1 <= count <= kSha256Lanes.
void sha256_lanes(const Sha256Input* inputs, size_t count, Sha256Digest* out);
// Digests of messages that the caller already padded (FIPS 180-4, 5.1.1) to block_count blocks of
// 64 bytes each: for many short messages of one fixed length, such as the nodes of a Merkle tree.
void sha256_padded_lanes(const uint8_t* const* messages, size_t block_count, size_t count,
                         Sha256Digest* out);

// True if the SHA instructions are in use (for reports and tests).
bool sha256_is_accelerated();
// For tests only: true selects the portable code, false the automatic selection.
void sha256_force_portable(bool force);

}  // namespace shredway
