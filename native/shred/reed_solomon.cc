#include "shred/reed_solomon.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

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

uint8_t inverse(uint8_t x) {
  uint8_t power = 1;  // x^254, as x^255 = 1
  for (int i = 0; i < 254; i++) power = multiply(power, x);
  return power;
}

// ---- the matrix ----

using Matrix = std::vector<std::vector<uint8_t>>;

Matrix vandermonde(size_t rows, size_t columns) {
  Matrix out(rows, std::vector<uint8_t>(columns));
  for (size_t row = 0; row < rows; row++) {
    uint8_t power = 1;  // 0^0 = 1
    for (size_t column = 0; column < columns; column++) {
      out[row][column] = power;
      power = multiply(power, static_cast<uint8_t>(row));
    }
  }
  return out;
}

void scale_row(std::vector<uint8_t>& row, uint8_t by) {
  for (uint8_t& value : row) value = multiply(value, by);
}

void add_scaled_row(std::vector<uint8_t>& row, const std::vector<uint8_t>& other, uint8_t by) {
  for (size_t i = 0; i < row.size(); i++) row[i] ^= multiply(other[i], by);
}

// Gauss-Jordan. A square Vandermonde matrix over distinct numbers has an inverse, so that a pivot
// is always found.
Matrix inverted(Matrix matrix) {
  const size_t size = matrix.size();
  Matrix out(size, std::vector<uint8_t>(size));
  for (size_t i = 0; i < size; i++) out[i][i] = 1;
  for (size_t column = 0; column < size; column++) {
    size_t pivot = column;
    while (matrix[pivot][column] == 0) pivot++;
    std::swap(matrix[pivot], matrix[column]);
    std::swap(out[pivot], out[column]);
    const uint8_t scale = inverse(matrix[column][column]);
    scale_row(matrix[column], scale);
    scale_row(out[column], scale);
    for (size_t row = 0; row < size; row++) {
      const uint8_t factor = matrix[row][column];
      if (row == column || factor == 0) continue;
      add_scaled_row(matrix[row], matrix[column], factor);
      add_scaled_row(out[row], out[column], factor);
    }
  }
  return out;
}

// ---- encoding ----

struct Job {
  const uint8_t* parity;  // code rows x data columns
  size_t data, code;
  const uint8_t* const* data_shards;
  uint8_t* const* code_shards;
};

// Where a vector of bytes of some neighbouring code shards begins.
struct Piece {
  size_t row, begin;
};

// Bytes of a product are sums of those doublings x, 2x, 4x, … 128x of the data that the bits of the
// coefficient select: no tables, and plain loops that every compiler turns into vector code.
constexpr size_t kPortableBytes = 64;

// `bytes` is at most kPortableBytes.
void encode_piece_portable(const Job& job, size_t begin, size_t bytes) {
  std::array<std::array<uint8_t, kPortableBytes>, 255> sums;
  std::array<std::array<uint8_t, kPortableBytes>, 8> doublings{};
  for (size_t row = 0; row < job.code; row++) sums[row].fill(0);
  for (size_t column = 0; column < job.data; column++) {
    std::memcpy(doublings[0].data(), job.data_shards[column] + begin, bytes);
    for (size_t bit = 1; bit < 8; bit++)
      for (size_t i = 0; i < kPortableBytes; i++) doublings[bit][i] = twice(doublings[bit - 1][i]);
    for (size_t row = 0; row < job.code; row++) {
      const uint8_t coefficient = job.parity[row * job.data + column];
      for (size_t bit = 0; bit < 8; bit++) {
        if (!(coefficient >> bit & 1)) continue;
        for (size_t i = 0; i < kPortableBytes; i++) sums[row][i] ^= doublings[bit][i];
      }
    }
  }
  for (size_t row = 0; row < job.code; row++)
    std::memcpy(job.code_shards[row] + begin, sums[row].data(), bytes);
}

void encode_portable(const Job& job, size_t shard_bytes) {
  for (size_t begin = 0; begin < shard_bytes; begin += kPortableBytes)
    encode_piece_portable(job, begin, std::min(kPortableBytes, shard_bytes - begin));
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
__attribute__((target("avx2"))) void encode_piece_avx2(const Job& job, Piece piece) {
  const __m256i low_bits = _mm256_set1_epi8(0x0f);
  __m256i sums[kRows];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (size_t column = 0; column < job.data; column++) {
    const __m256i data =
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(job.data_shards[column] + piece.begin));
    const __m256i low = _mm256_and_si256(data, low_bits);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(data, 4), low_bits);
    for (size_t i = 0; i < kRows; i++) {
      const uint8_t coefficient = job.parity[(piece.row + i) * job.data + column];
      const auto* tables = reinterpret_cast<const __m128i*>(kNibbleTables.products[coefficient]);
      const __m256i low_table = _mm256_broadcastsi128_si256(_mm_load_si128(tables));
      const __m256i high_table = _mm256_broadcastsi128_si256(_mm_load_si128(tables + 1));
      const __m256i product = _mm256_xor_si256(_mm256_shuffle_epi8(low_table, low),
                                               _mm256_shuffle_epi8(high_table, high));
      sums[i] = _mm256_xor_si256(sums[i], product);
    }
  }
  for (size_t i = 0; i < kRows; i++)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(job.code_shards[piece.row + i] + piece.begin),
                        sums[i]);
}

template <size_t kRows>
__attribute__((target("avx512f,avx512bw,gfni"))) void encode_piece_gfni(const Job& job,
                                                                        Piece piece) {
  __m512i sums[kRows];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (size_t column = 0; column < job.data; column++) {
    const __m512i data = _mm512_loadu_si512(job.data_shards[column] + piece.begin);
    for (size_t i = 0; i < kRows; i++) {
      const uint8_t coefficient = job.parity[(piece.row + i) * job.data + column];
      const __m512i matrix = _mm512_set1_epi64(static_cast<int64_t>(kAffineMatrices[coefficient]));
      sums[i] = _mm512_xor_si512(sums[i], _mm512_gf2p8affine_epi64_epi8(data, matrix, 0));
    }
  }
  for (size_t i = 0; i < kRows; i++)
    _mm512_storeu_si512(job.code_shards[piece.row + i] + piece.begin, sums[i]);
}

constexpr size_t kRowsAtOnce = 8;

// The last vector of a shard overlaps the one before; shards shorter than a vector go the portable
// way. `wide` computes kRowsAtOnce rows, `narrow` one.
template <size_t kBytes, void (*wide)(const Job&, Piece), void (*narrow)(const Job&, Piece)>
void encode_vectors(const Job& job, size_t shard_bytes) {
  if (shard_bytes < kBytes) return encode_portable(job, shard_bytes);
  for (size_t at = 0; at < shard_bytes; at += kBytes) {
    const size_t begin = std::min(at, shard_bytes - kBytes);
    size_t row = 0;
    for (; row + kRowsAtOnce <= job.code; row += kRowsAtOnce) wide(job, {row, begin});
    for (; row < job.code; row++) narrow(job, {row, begin});
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

// ReedSolomonPath, or -1 before the first call. Racing first calls choose the same.
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

ReedSolomon::ReedSolomon(size_t data, size_t code)
    : data_(data), code_(code), parity_(data * code) {
  const Matrix all = vandermonde(data + code, data);
  const Matrix to_data = inverted(Matrix(all.begin(), all.begin() + static_cast<ptrdiff_t>(data)));
  for (size_t row = 0; row < code; row++)
    for (size_t column = 0; column < data; column++) {
      uint8_t sum = 0;
      for (size_t i = 0; i < data; i++) sum ^= multiply(all[data + row][i], to_data[i][column]);
      parity_[row * data + column] = sum;
    }
}

void ReedSolomon::encode(const uint8_t* const* data_shards, uint8_t* const* code_shards,
                         size_t shard_bytes) const {
  const Job job = {parity_.data(), data_, code_, data_shards, code_shards};
  switch (reed_solomon_path()) {
#if defined(__x86_64__)
    case ReedSolomonPath::gfni:
      return encode_vectors<kGfniBytes, encode_piece_gfni<kRowsAtOnce>, encode_piece_gfni<1>>(
          job, shard_bytes);
    case ReedSolomonPath::avx2:
      return encode_vectors<kAvx2Bytes, encode_piece_avx2<kRowsAtOnce>, encode_piece_avx2<1>>(
          job, shard_bytes);
#endif
    default:
      return encode_portable(job, shard_bytes);
  }
}

}  // namespace shredway
