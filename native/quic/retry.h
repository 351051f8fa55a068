// Retry: makes stateless Retry packets of QUIC version 1, and the tokens in them.
//
// A sender that returns a token has proved its address. The tokens are those of
// src/gateway/quic/retry-tokens.ts: u64 big-endian expiry (ns, CLOCK_MONOTONIC), the original
// connection id, HMAC-SHA256. No I/O, no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/address.h"

namespace shredway {

inline constexpr size_t kQuicIdBytesMax = 20;  // of version 1
inline constexpr size_t kOwnQuicIdBytes = 8;
inline constexpr size_t kRetryKeyBytes = 32;
inline constexpr size_t kRetryPacketBytesMax = 192;

using RetryKey = std::array<uint8_t, kRetryKeyBytes>;
using ByteView = std::span<const uint8_t>;

// The bytes of a Retry packet.
struct RetryPacket {
  std::array<uint8_t, kRetryPacketBytesMax> bytes;
  size_t length = 0;
};

struct RetryRequest {
  Endpoint from;
  ByteView client_id;    // source id of the client's packet
  ByteView original_id;  // destination id of the client's packet
  std::array<uint8_t, kOwnQuicIdBytes> own_id;
  uint64_t now_ns;
};

// Precondition: both ids have at most kQuicIdBytesMax bytes.
void write_retry(const RetryRequest& request, const RetryKey& key, RetryPacket& out);

// Whether the token was made for this address and this id, and is not expired.
bool is_retry_token(ByteView token, const Endpoint& from, ByteView own_id, uint64_t now_ns,
                    const RetryKey& key);

// Integrity tag of a Retry packet without it (RFC 9001, 5.8). Precondition: at most
// kRetryPacketBytesMax bytes, and an id of at most kQuicIdBytesMax.
std::array<uint8_t, 16> retry_integrity_tag(ByteView original_id, ByteView packet);

}  // namespace shredway
