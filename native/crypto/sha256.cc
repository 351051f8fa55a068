#include "crypto/sha256.h"

#include <atomic>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace shredway {
namespace {

constexpr size_t kBlockBytes = 64;
constexpr size_t kLengthBytes = 8;  // bit length at the end of the last block

using State = uint32_t[8];

constexpr State kInitialState = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(64) constexpr uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Processes `block_count` blocks of each of `lanes` messages with that lane's state.
using Compress = void (*)(uint32_t* const* states, const uint8_t* const* blocks, size_t lanes,
                          size_t block_count);

// ---- portable ----

uint32_t rotate_right(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

uint32_t load_big_endian(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return __builtin_bswap32(value);
}

void compress_block(uint32_t* state, const uint8_t* block) {
  uint32_t w[64];
  for (size_t i = 0; i < 16; i++) w[i] = load_big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; i++) {
    const uint32_t x = w[i - 15], y = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) +
           (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (size_t i = 0; i < 64; i++) {
    const uint32_t sum_e = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
    const uint32_t t = h + sum_e + (g ^ (e & (f ^ g))) + kRoundConstants[i] + w[i];
    const uint32_t sum_a = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
    const uint32_t majority = (a & b) | (c & (a | b));
    h = g, g = f, f = e, e = d + t;
    d = c, c = b, b = a, a = t + sum_a + majority;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void compress_portable(uint32_t* const* states, const uint8_t* const* blocks, size_t lanes,
                       size_t block_count) {
  for (size_t lane = 0; lane < lanes; lane++)
    for (size_t i = 0; i < block_count; i++)
      compress_block(states[lane], blocks[lane] + i * kBlockBytes);
}

// ---- SHA instructions of x86-64 ----
//
// A single message waits for the latency of sha256rnds2 (4 cycles, issued every 2), so that two or
// more interleaved messages cost about half as much each. The templates unroll rounds and lanes;
// only then do the lanes' states stay in registers.
#if defined(__x86_64__)
#define SHREDWAY_SHA __attribute__((target("sha,sse4.1,ssse3")))
#define SHREDWAY_SHA_INLINE SHREDWAY_SHA __attribute__((always_inline)) inline

struct Lane {
  __m128i abef, cdgh;
  __m128i w[4];  // the next 16 words of the message schedule
};

template <size_t kFour>  // four rounds, number 0..15
SHREDWAY_SHA_INLINE void four_rounds(Lane& lane) {
  const auto* constants = reinterpret_cast<const __m128i*>(kRoundConstants);
  const __m128i words = _mm_add_epi32(lane.w[kFour % 4], _mm_load_si128(constants + kFour));
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, words);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(words, 0x0e));
  if constexpr (kFour < 12) {
    __m128i& next = lane.w[kFour % 4];
    const __m128i last = lane.w[(kFour + 3) % 4];
    const __m128i seventh = _mm_alignr_epi8(last, lane.w[(kFour + 2) % 4], 4);
    next = _mm_sha256msg1_epu32(next, lane.w[(kFour + 1) % 4]);
    next = _mm_sha256msg2_epu32(_mm_add_epi32(next, seventh), last);
  }
}

template <size_t kFour, size_t... kLane>
SHREDWAY_SHA_INLINE void four_rounds_of_all(Lane* lanes, std::index_sequence<kLane...>) {
  (four_rounds<kFour>(lanes[kLane]), ...);
}

template <size_t kLanes, size_t... kFour>
SHREDWAY_SHA_INLINE void all_rounds(Lane* lanes, std::index_sequence<kFour...>) {
  (four_rounds_of_all<kFour>(lanes, std::make_index_sequence<kLanes>{}), ...);
}

SHREDWAY_SHA_INLINE void load_words(Lane& lane, const uint8_t* block) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto* words = reinterpret_cast<const __m128i*>(block);
  lane.w[0] = _mm_shuffle_epi8(_mm_loadu_si128(words), big_endian);
  lane.w[1] = _mm_shuffle_epi8(_mm_loadu_si128(words + 1), big_endian);
  lane.w[2] = _mm_shuffle_epi8(_mm_loadu_si128(words + 2), big_endian);
  lane.w[3] = _mm_shuffle_epi8(_mm_loadu_si128(words + 3), big_endian);
}

SHREDWAY_SHA_INLINE void load_state(Lane& lane, const uint32_t* state) {
  const auto* halves = reinterpret_cast<const __m128i*>(state);
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(halves), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(halves + 1), 0x1b);
  lane.abef = _mm_alignr_epi8(badc, hgfe, 8);
  lane.cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
}

SHREDWAY_SHA_INLINE void store_state(const Lane& lane, uint32_t* state) {
  auto* halves = reinterpret_cast<__m128i*>(state);
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1b);
  const __m128i ghcd = _mm_shuffle_epi32(lane.cdgh, 0xb1);
  _mm_storeu_si128(halves, _mm_blend_epi16(feba, ghcd, 0xf0));
  _mm_storeu_si128(halves + 1, _mm_alignr_epi8(ghcd, feba, 8));
}

template <size_t kLanes>
SHREDWAY_SHA void compress_interleaved(uint32_t* const* states, const uint8_t* const* blocks,
                                       size_t block_count) {
  Lane lanes[kLanes];
  for (size_t i = 0; i < kLanes; i++) load_state(lanes[i], states[i]);
  for (size_t block = 0; block < block_count; block++) {
    __m128i before[kLanes][2];
    for (size_t i = 0; i < kLanes; i++) {
      before[i][0] = lanes[i].abef;
      before[i][1] = lanes[i].cdgh;
      load_words(lanes[i], blocks[i] + block * kBlockBytes);
    }
    all_rounds<kLanes>(lanes, std::make_index_sequence<16>{});
    for (size_t i = 0; i < kLanes; i++) {
      lanes[i].abef = _mm_add_epi32(lanes[i].abef, before[i][0]);
      lanes[i].cdgh = _mm_add_epi32(lanes[i].cdgh, before[i][1]);
    }
  }
  for (size_t i = 0; i < kLanes; i++) store_state(lanes[i], states[i]);
}

void compress_accelerated(uint32_t* const* states, const uint8_t* const* blocks, size_t lanes,
                          size_t block_count) {
  switch (lanes) {
    case 1:
      return compress_interleaved<1>(states, blocks, block_count);
    case 2:
      return compress_interleaved<2>(states, blocks, block_count);
    case 3:
      return compress_interleaved<3>(states, blocks, block_count);
    default:
      return compress_interleaved<4>(states, blocks, block_count);
  }
}

// Uses CPUID directly: __builtin_cpu_supports has no "sha" before GCC 14.
Compress compress_of_processor() {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return compress_portable;
  if (!(c & bit_SSSE3) || !(c & bit_SSE4_1)) return compress_portable;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return compress_portable;
  return b & bit_SHA ? compress_accelerated : compress_portable;
}
#else
Compress compress_of_processor() { return compress_portable; }
#endif

std::atomic<Compress> chosen_compress{nullptr};

// Concurrent first calls select the same function.
Compress compress() {
  Compress chosen = chosen_compress.load(std::memory_order_relaxed);
  if (!chosen) [[unlikely]] {
    chosen = compress_of_processor();
    chosen_compress.store(chosen, std::memory_order_relaxed);
  }
  return chosen;
}

// ---- messages ----

void append(uint8_t*& to, const uint8_t* from, size_t bytes) {
  if (bytes == 0) return;  // `from` may be nullptr here
  std::memcpy(to, from, bytes);
  to += bytes;
}

// A message as up to four runs of whole blocks, hashed in place: whole blocks of the prefix, the
// block that the prefix shares with the body, whole blocks of the body, and the padded end. Only
// the second and the last run are copies.
class BlockRuns {
 public:
  // It holds pointers into itself, so it is neither copied nor moved.
  BlockRuns() = default;
  BlockRuns(const BlockRuns&) = delete;
  BlockRuns& operator=(const BlockRuns&) = delete;

  void set(const Sha256Input& input) {
    const uint8_t* body = input.body;
    size_t body_bytes = input.body_bytes;
    const size_t prefix_whole_bytes = input.prefix_bytes - input.prefix_bytes % kBlockBytes;
    const uint8_t* prefix_rest = input.prefix + prefix_whole_bytes;
    size_t prefix_rest_bytes = input.prefix_bytes % kBlockBytes;
    add(input.prefix, prefix_whole_bytes);

    if (prefix_rest_bytes && prefix_rest_bytes + body_bytes >= kBlockBytes) {
      uint8_t* at = shared_;
      const size_t body_part_bytes = kBlockBytes - prefix_rest_bytes;
      append(at, prefix_rest, prefix_rest_bytes);
      append(at, body, body_part_bytes);
      add(shared_, kBlockBytes);
      prefix_rest_bytes = 0;
      body += body_part_bytes;
      body_bytes -= body_part_bytes;
    }
    const size_t body_whole_bytes = prefix_rest_bytes ? 0 : body_bytes - body_bytes % kBlockBytes;
    add(body, body_whole_bytes);

    uint8_t* at = end_;
    append(at, prefix_rest, prefix_rest_bytes);
    append(at, body + body_whole_bytes, body_bytes - body_whole_bytes);
    add(end_, pad(static_cast<size_t>(at - end_), input.prefix_bytes + input.body_bytes));
  }

  bool done() const { return run_ == run_count_; }
  const uint8_t* blocks() const { return runs_[run_].begin; }
  size_t block_count() const { return runs_[run_].block_count; }
  void advance(size_t blocks) {
    Run& run = runs_[run_];
    run.begin += blocks * kBlockBytes;
    run.block_count -= blocks;
    if (run.block_count == 0) run_++;
  }

 private:
  struct Run {
    const uint8_t* begin;
    size_t block_count;
  };
  void add(const uint8_t* begin, size_t bytes) {
    if (bytes) runs_[run_count_++] = {begin, bytes / kBlockBytes};
  }
  // Pads the `used` bytes (below 64) of end_; returns the padded size, 64 or 128.
  size_t pad(size_t used, uint64_t message_bytes) {
    const size_t bytes = used + 1 + kLengthBytes <= kBlockBytes ? kBlockBytes : 2 * kBlockBytes;
    const uint64_t length_bits = __builtin_bswap64(message_bytes * 8);
    end_[used] = 0x80;
    std::memset(end_ + used + 1, 0, bytes - kLengthBytes - used - 1);
    std::memcpy(end_ + bytes - kLengthBytes, &length_bits, kLengthBytes);
    return bytes;
  }

  Run runs_[4];
  size_t run_count_ = 0;
  size_t run_ = 0;
  uint8_t shared_[kBlockBytes];
  uint8_t end_[2 * kBlockBytes];
};

void write_digest(const uint32_t* state, Sha256Digest& out) {
  for (size_t i = 0; i < 8; i++) {
    const uint32_t word = __builtin_bswap32(state[i]);
    std::memcpy(out.data() + 4 * i, &word, sizeof word);
  }
}

}  // namespace

void sha256(const uint8_t* prefix, size_t prefix_bytes, const uint8_t* body, size_t body_bytes,
            Sha256Digest& out) {
  const Sha256Input input = {prefix, prefix_bytes, body, body_bytes};
  sha256_lanes(&input, 1, &out);
}

void sha256_lanes(const Sha256Input* inputs, size_t count, Sha256Digest* out) {
  const Compress run = compress();
  State states[kSha256Lanes];
  BlockRuns messages[kSha256Lanes];
  uint32_t* state_of[kSha256Lanes] = {};
  BlockRuns* message_of[kSha256Lanes];
  for (size_t i = 0; i < count; i++) {
    std::memcpy(states[i], kInitialState, sizeof(State));
    messages[i].set(inputs[i]);
    state_of[i] = states[i];
    message_of[i] = &messages[i];
  }
  // Lanes are processed together as long as each has contiguous blocks; finished lanes drop out.
  for (size_t lanes = count; lanes != 0;) {
    const uint8_t* blocks[kSha256Lanes];
    size_t step = message_of[0]->block_count();
    for (size_t i = 0; i < lanes; i++) {
      blocks[i] = message_of[i]->blocks();
      if (message_of[i]->block_count() < step) step = message_of[i]->block_count();
    }
    run(state_of, blocks, lanes, step);
    for (size_t i = lanes; i-- > 0;) {
      message_of[i]->advance(step);
      if (!message_of[i]->done()) continue;
      lanes--;
      std::swap(message_of[i], message_of[lanes]);
      std::swap(state_of[i], state_of[lanes]);
    }
  }
  for (size_t i = 0; i < count; i++) write_digest(states[i], out[i]);
}

void sha256_padded_lanes(const uint8_t* const* messages, size_t block_count, size_t count,
                         Sha256Digest* out) {
  State states[kSha256Lanes];
  uint32_t* state_of[kSha256Lanes] = {};
  for (size_t i = 0; i < count; i++) {
    std::memcpy(states[i], kInitialState, sizeof(State));
    state_of[i] = states[i];
  }
  compress()(state_of, messages, count, block_count);
  for (size_t i = 0; i < count; i++) write_digest(states[i], out[i]);
}

bool sha256_is_accelerated() { return compress() != compress_portable; }

void sha256_force_portable(bool force) {
  chosen_compress.store(force ? compress_portable : compress_of_processor(),
                        std::memory_order_relaxed);
}

}  // namespace shredway
