// Taken request: a transaction that the fast path has sent, until JavaScript claims it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shredway {

inline constexpr size_t kFastPathRoutesMax = 16;

struct FastSend {
  uint32_t route;
  uint32_t loan;
  uint32_t id;          // of the call
  uint32_t wire_bytes;  // of the transaction
  uint64_t sent_ns;     // CLOCK_MONOTONIC, when the kernel had the last byte
};

// A request, or an offer, that was taken.
struct TakenRequest {
  uint64_t taken_ns = 0;  // CLOCK_MONOTONIC, before the look at its bytes
  std::array<char, 88> signature;
  uint32_t signature_length = 0;
  uint32_t send_count = 0;
  std::array<FastSend, kFastPathRoutesMax> sends;
  std::vector<uint8_t> wire;  // the transaction
};

}  // namespace shredway
