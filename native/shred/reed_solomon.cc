#include "shred/reed_solomon.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace shredway {
namespace {

// ---- the field: polynomials over GF(2) modulo x^8 + x^4 + x^3 + x^2 + 1 (0x11D) ----

constexpr uint8_t twice(uint8_t x) { return static_cast<uint8_t>(x << 1 ^ (x & 0x80 ? 0x1d : 0)); }

constexpr uint8_t multiply(uint8_t a, uint8_t b) {
  uint8_t product = 0;
  for (; b; b = static_cast<uint8_t>(b >> 1), a = twice(a))
    if (b & 1) product ^= a;
  return product;
}

// Powers of the generator 2 and their logarithms; every element except 0 is one of 255 powers.
constexpr unsigned kOrder = 255;
struct Powers {
  uint8_t power[kOrder];
  uint8_t logarithm[256];
};
constexpr Powers make_powers() {
  Powers out{};
  uint8_t x = 1;
  for (unsigned i = 0; i < kOrder; i++, x = twice(x)) {
    out.power[i] = x;
    out.logarithm[x] = static_cast<uint8_t>(i);
  }
  return out;
}
constexpr Powers kPowers = make_powers();

// Logarithm of the distance between two points; subtraction is XOR.
unsigned log_distance(uint8_t a, uint8_t b) { return kPowers.logarithm[a ^ b]; }

// ---- the code as interpolation ----
//
// Byte by byte, shard r is the value at the point r of the unique polynomial of degree below k that
// has the data shards' bytes as its values at 0 … k - 1 (V[r][c] = r^c times coefficients). Any k
// shards therefore give every other shard by Lagrange's formula, for parity and recovery alike. No
// matrix is inverted.

// Computes one row of factors for the `known` shards per shard in `wanted`. The two sets are
// disjoint. `weights` has known.size() x wanted.size() elements.
void interpolation_weights(std::span<const uint8_t> known, std::span<const uint8_t> wanted,
                           uint8_t* weights) {
  std::array<unsigned, kOrder> log_denominators;
  for (size_t j = 0; j < known.size(); j++) {
    log_denominators[j] = 0;
    for (size_t i = 0; i < known.size(); i++)
      if (i != j) log_denominators[j] += log_distance(known[j], known[i]);
    log_denominators[j] %= kOrder;
  }
  for (const uint8_t point : wanted) {
    unsigned log_product = 0;
    for (const uint8_t other : known) log_product += log_distance(point, other);
    log_product %= kOrder;
    for (size_t j = 0; j < known.size(); j++)
      *weights++ = kPowers.power[(log_product + 2 * kOrder - log_distance(point, known[j]) -
                                  log_denominators[j]) %
                                 kOrder];
  }
}

// ---- products of a matrix and shards ----

struct Job {
  const uint8_t* weights;  // output_count rows x input_count columns
  size_t input_count, output_count;
  const uint8_t* const* inputs;
  uint8_t* const* outputs;
};

// Start of a vector of bytes of several neighbouring outputs.
struct Piece {
  size_t row, begin;
};

// Each byte of a product is the sum of the doublings x, 2x, 4x, … 128x of the data byte that the
// coefficient's bits select. No tables: plain loops that every compiler vectorises.
constexpr size_t kPortableBytes = 64;

// `bytes` is at most kPortableBytes.
void multiply_piece_portable(const Job& job, size_t begin, size_t bytes) {
  std::array<std::array<uint8_t, kPortableBytes>, 255> sums;
  std::array<std::array<uint8_t, kPortableBytes>, 8> doublings{};
  for (size_t row = 0; row < job.output_count; row++) sums[row].fill(0);
  for (size_t column = 0; column < job.input_count; column++) {
    std::memcpy(doublings[0].data(), job.inputs[column] + begin, bytes);
    for (size_t bit = 1; bit < 8; bit++)
      for (size_t i = 0; i < kPortableBytes; i++) doublings[bit][i] = twice(doublings[bit - 1][i]);
    for (size_t row = 0; row < job.output_count; row++) {
      const uint8_t coefficient = job.weights[row * job.input_count + column];
      for (size_t bit = 0; bit < 8; bit++) {
        if (!(coefficient >> bit & 1)) continue;
        for (size_t i = 0; i < kPortableBytes; i++) sums[row][i] ^= doublings[bit][i];
      }
    }
  }
  for (size_t row = 0; row < job.output_count; row++)
    std::memcpy(job.outputs[row] + begin, sums[row].data(), bytes);
}

void multiply_portable(const Job& job, size_t shard_bytes) {
  for (size_t begin = 0; begin < shard_bytes; begin += kPortableBytes)
    multiply_piece_portable(job, begin, std::min(kPortableBytes, shard_bytes - begin));
}

#if defined(__x86_64__)

// Products of every coefficient with the 16 low and the 16 high nibbles, for byte shuffles.
struct NibbleTables {
  alignas(32) uint8_t products[256][32];
};
constexpr NibbleTables make_nibble_tables() {
  NibbleTables out{};
  for (unsigned c = 0; c < 256; c++)
    for (unsigned nibble = 0; nibble < 16; nibble++) {
      const auto coefficient = static_cast<uint8_t>(c);
      out.products[c][nibble] = multiply(coefficient, static_cast<uint8_t>(nibble));
      out.products[c][16 + nibble] = multiply(coefficient, static_cast<uint8_t>(nibble << 4));
    }
  return out;
}
constexpr NibbleTables kNibbleTables = make_nibble_tables();

// Multiplication by a constant is linear over GF(2): 8 x 8 bits per coefficient, in the order of
// gf2p8affineqb (bit i of the result is the parity of x & byte 7 - i).
constexpr std::array<uint64_t, 256> make_affine_matrices() {
  std::array<uint64_t, 256> out{};
  for (unsigned c = 0; c < 256; c++)
    for (unsigned from = 0; from < 8; from++) {
      const uint8_t column = multiply(static_cast<uint8_t>(c), static_cast<uint8_t>(1u << from));
      for (unsigned to = 0; to < 8; to++)
        if (column >> to & 1) out[c] |= uint64_t{1} << (8 * (7 - to) + from);
    }
  return out;
}
constexpr std::array<uint64_t, 256> kAffineMatrices = make_affine_matrices();

constexpr size_t kAvx2Bytes = 32;
constexpr size_t kGfniBytes = 64;

template <size_t kRows>
__attribute__((target("avx2"))) void multiply_piece_avx2(const Job& job, Piece piece) {
  const __m256i low_bits = _mm256_set1_epi8(0x0f);
  __m256i sums[kRows];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (size_t column = 0; column < job.input_count; column++) {
    const __m256i data =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(job.inputs[column] + piece.begin));
    const __m256i low = _mm256_and_si256(data, low_bits);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(data, 4), low_bits);
    for (size_t i = 0; i < kRows; i++) {
      const uint8_t coefficient = job.weights[(piece.row + i) * job.input_count + column];
      const auto* tables = reinterpret_cast<const __m128i*>(kNibbleTables.products[coefficient]);
      const __m256i low_table = _mm256_broadcastsi128_si256(_mm_load_si128(tables));
      const __m256i high_table = _mm256_broadcastsi128_si256(_mm_load_si128(tables + 1));
      const __m256i product = _mm256_xor_si256(_mm256_shuffle_epi8(low_table, low),
                                               _mm256_shuffle_epi8(high_table, high));
      sums[i] = _mm256_xor_si256(sums[i], product);
    }
  }
  for (size_t i = 0; i < kRows; i++)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.outputs[piece.row + i] + piece.begin),
                        sums[i]);
}

template <size_t kRows>
__attribute__((target("avx512f,avx512bw,gfni"))) void multiply_piece_gfni(const Job& job,
                                                                          Piece piece) {
  __m512i sums[kRows];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (size_t column = 0; column < job.input_count; column++) {
    const __m512i data = _mm512_loadu_si512(job.inputs[column] + piece.begin);
    for (size_t i = 0; i < kRows; i++) {
      const uint8_t coefficient = job.weights[(piece.row + i) * job.input_count + column];
      const __m512i matrix = _mm512_set1_epi64(static_cast<int64_t>(kAffineMatrices[coefficient]));
      sums[i] = _mm512_xor_si512(sums[i], _mm512_gf2p8affine_epi64_epi8(data, matrix, 0));
    }
  }
  for (size_t i = 0; i < kRows; i++)
    _mm512_storeu_si512(job.outputs[piece.row + i] + piece.begin, sums[i]);
}

constexpr size_t kRowsAtOnce = 8;

// The last vector of a shard overlaps the previous one; shards shorter than a vector use the
// portable implementation. `wide` computes kRowsAtOnce rows, `narrow` one.
template <size_t kBytes, void (*wide)(const Job&, Piece), void (*narrow)(const Job&, Piece)>
void multiply_vectors(const Job& job, size_t shard_bytes) {
  if (shard_bytes < kBytes) return multiply_portable(job, shard_bytes);
  for (size_t at = 0; at < shard_bytes; at += kBytes) {
    const size_t begin = std::min(at, shard_bytes - kBytes);
    size_t row = 0;
    for (; row + kRowsAtOnce <= job.output_count; row += kRowsAtOnce) wide(job, {row, begin});
    for (; row < job.output_count; row++) narrow(job, {row, begin});
  }
}

bool processor_has(ReedSolomonPath path) {
  switch (path) {
    case ReedSolomonPath::gfni:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("gfni");
    case ReedSolomonPath::avx2:
      return __builtin_cpu_supports("avx2");
    case ReedSolomonPath::portable:
      break;
  }
  return true;
}
#else
bool processor_has(ReedSolomonPath path) { return path == ReedSolomonPath::portable; }
#endif

// ReedSolomonPath, or -1 before the first call. Concurrent first calls select the same value.
std::atomic<int> chosen_path{-1};

}  // namespace

ReedSolomonPath reed_solomon_path() {
  int path = chosen_path.load(std::memory_order_relaxed);
  if (path < 0) {
    path = static_cast<int>(processor_has(ReedSolomonPath::gfni)   ? ReedSolomonPath::gfni
                            : processor_has(ReedSolomonPath::avx2) ? ReedSolomonPath::avx2
                                                                   : ReedSolomonPath::portable);
    chosen_path.store(path, std::memory_order_relaxed);
  }
  return static_cast<ReedSolomonPath>(path);
}

bool reed_solomon_use(ReedSolomonPath path) {
  if (!processor_has(path)) return false;
  chosen_path.store(static_cast<int>(path), std::memory_order_relaxed);
  return true;
}

namespace {

void multiply(const Job& job, size_t shard_bytes) {
  switch (reed_solomon_path()) {
#if defined(__x86_64__)
    case ReedSolomonPath::gfni:
      return multiply_vectors<kGfniBytes, multiply_piece_gfni<kRowsAtOnce>, multiply_piece_gfni<1>>(
          job, shard_bytes);
    case ReedSolomonPath::avx2:
      return multiply_vectors<kAvx2Bytes, multiply_piece_avx2<kRowsAtOnce>, multiply_piece_avx2<1>>(
          job, shard_bytes);
#endif
    default:
      return multiply_portable(job, shard_bytes);
  }
}

}  // namespace

ReedSolomon::ReedSolomon(size_t data, size_t code)
    : data_(data), code_(code), parity_(data * code) {
  std::array<uint8_t, kOrder> points;
  std::iota(points.begin(), points.end(), uint8_t{0});
  interpolation_weights({points.data(), data}, {points.data() + data, code}, parity_.data());
}

void ReedSolomon::encode(const uint8_t* const* data_shards, uint8_t* const* code_shards,
                         size_t shard_bytes) const {
  multiply({parity_.data(), data_, code_, data_shards, code_shards}, shard_bytes);
}

bool ReedSolomon::recover(uint8_t* const* shards, const bool* present, size_t shard_bytes) const {
  std::array<uint8_t, kOrder> known, wanted;
  std::array<const uint8_t*, kOrder> inputs;
  std::array<uint8_t*, kOrder> outputs;
  size_t known_count = 0;
  size_t wanted_count = 0;
  for (size_t i = 0; i < data_ + code_; i++) {
    if (!present[i]) {
      outputs[wanted_count] = shards[i];
      wanted[wanted_count++] = static_cast<uint8_t>(i);
    } else if (known_count < data_) {
      inputs[known_count] = shards[i];
      known[known_count++] = static_cast<uint8_t>(i);
    }
  }
  if (known_count < data_) return false;
  // At most (255 - data) rows of `data` columns.
  std::array<uint8_t, (kOrder + 1) / 2 * (kOrder + 1) / 2> weights;
  interpolation_weights({known.data(), known_count}, {wanted.data(), wanted_count}, weights.data());
  multiply({weights.data(), known_count, wanted_count, inputs.data(), outputs.data()}, shard_bytes);
  return true;
}

}  // namespace shredway
