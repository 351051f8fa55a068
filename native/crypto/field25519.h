// Numbers modulo p = 2^255 - 19, the coordinates of Ed25519 points (RFC 8032, 5.1).
//
// Five limbs of 51 bits: the number is the sum of limb[i] * 2^(51 i). Sums need no carry, because a
// limb may exceed 51 bits. Comments name the bounds of arguments and results:
//   reduced  limbs below 2^51 + 2^13: every product, and every decoded number
//   wide     limbs below 2^54: everything else
// Variable time is fine: all numbers are public.
#pragma once

#include <array>
#include <cstdint>

#include "system/bytes.h"

namespace shredway {

struct Field {
  std::array<uint64_t, 5> limb;
};

inline constexpr uint64_t kLimbMask = (uint64_t{1} << 51) - 1;
inline constexpr Field kFieldZero{{0, 0, 0, 0, 0}};
inline constexpr Field kFieldOne{{1, 0, 0, 0, 0}};

// The sums of the limbs must be below 2^54. Wide.
inline Field operator+(const Field& a, const Field& b) {
  Field out;
  for (size_t i = 0; i < 5; i++) out.limb[i] = a.limb[i] + b.limb[i];
  return out;
}

// Adds 2 p, so that no limb becomes negative. b: reduced; a: limbs below 2^53. Wide.
inline Field operator-(const Field& a, const Field& b) {
  constexpr uint64_t kTwoP = 2 * kLimbMask;
  Field out;
  out.limb[0] = a.limb[0] + (kTwoP - 36) - b.limb[0];
  for (size_t i = 1; i < 5; i++) out.limb[i] = a.limb[i] + kTwoP - b.limb[i];
  return out;
}

// Carries of a product, whose sums are below 2^115. Since 2^255 = 19 (mod p), the carry out of the
// highest limb returns to the lowest one, times 19. Reduced.
inline Field carry(const std::array<unsigned __int128, 5>& sums) {
  Field out;
  unsigned __int128 rest = 0;
  for (size_t i = 0; i < 5; i++) {
    rest += sums[i];
    out.limb[i] = static_cast<uint64_t>(rest) & kLimbMask;
    rest >>= 51;
  }
  out.limb[0] += static_cast<uint64_t>(rest) * 19;
  out.limb[1] += out.limb[0] >> 51;
  out.limb[0] &= kLimbMask;
  return out;
}

// a, b: wide. Reduced.
inline Field operator*(const Field& a, const Field& b) {
  using Wide = unsigned __int128;
  const auto& x = a.limb;
  const auto& y = b.limb;
  const uint64_t y1 = 19 * y[1], y2 = 19 * y[2], y3 = 19 * y[3], y4 = 19 * y[4];
  return carry(
      {Wide{x[0]} * y[0] + Wide{x[1]} * y4 + Wide{x[2]} * y3 + Wide{x[3]} * y2 + Wide{x[4]} * y1,
       Wide{x[0]} * y[1] + Wide{x[1]} * y[0] + Wide{x[2]} * y4 + Wide{x[3]} * y3 + Wide{x[4]} * y2,
       Wide{x[0]} * y[2] + Wide{x[1]} * y[1] + Wide{x[2]} * y[0] + Wide{x[3]} * y4 +
           Wide{x[4]} * y3,
       Wide{x[0]} * y[3] + Wide{x[1]} * y[2] + Wide{x[2]} * y[1] + Wide{x[3]} * y[0] +
           Wide{x[4]} * y4,
       Wide{x[0]} * y[4] + Wide{x[1]} * y[3] + Wide{x[2]} * y[2] + Wide{x[3]} * y[1] +
           Wide{x[4]} * y[0]});
}

// a: wide. Reduced.
inline Field square(const Field& a) {
  using Wide = unsigned __int128;
  const auto& x = a.limb;
  const uint64_t x0 = 2 * x[0], x1 = 2 * x[1], x3 = 19 * x[3], x4 = 19 * x[4];
  return carry({Wide{x[0]} * x[0] + Wide{x1} * x4 + Wide{2 * x[2]} * x3,
                Wide{x0} * x[1] + Wide{2 * x[2]} * x4 + Wide{x[3]} * x3,
                Wide{x0} * x[2] + Wide{x[1]} * x[1] + Wide{2 * x[3]} * x4,
                Wide{x0} * x[3] + Wide{x1} * x[2] + Wide{x[4]} * x4,
                Wide{x0} * x[4] + Wide{x1} * x[3] + Wide{x[2]} * x[2]});
}

// a^(2^count), count >= 1.
inline Field square_times(Field a, int count) {
  while (count-- > 0) a = square(a);
  return a;
}

// Two powers of a: a^(2^250 - 1) and a^11, which lead to the powers below.
struct FieldPowers {
  Field long_power, eleventh;
};
inline FieldPowers powers_of(const Field& a) {
  const Field ninth = square_times(square(a), 2) * a;
  const Field eleventh = ninth * square(a);
  const Field ones5 = square(eleventh) * ninth;  // the exponent has 5 ones in binary, and so on
  const Field ones10 = square_times(ones5, 5) * ones5;
  const Field ones20 = square_times(ones10, 10) * ones10;
  const Field ones40 = square_times(ones20, 20) * ones20;
  const Field ones50 = square_times(ones40, 10) * ones10;
  const Field ones100 = square_times(ones50, 50) * ones50;
  const Field ones200 = square_times(ones100, 100) * ones100;
  return {square_times(ones200, 50) * ones50, eleventh};
}

// 1 / a = a^(p - 2) = a^(2^255 - 21); 0 for 0.
inline Field inverse(const Field& a) {
  const FieldPowers powers = powers_of(a);
  return square_times(powers.long_power, 5) * powers.eleventh;
}

// a^((p - 5) / 8) = a^(2^252 - 3), the main part of a square root.
inline Field root_power(const Field& a) { return square_times(powers_of(a).long_power, 2) * a; }

// Ignores the highest bit. Reduced.
inline Field field_of(const uint8_t* bytes) {
  const uint64_t a = load_u64(bytes), b = load_u64(bytes + 8), c = load_u64(bytes + 16),
                 d = load_u64(bytes + 24);
  return {{a & kLimbMask, (a >> 51 | b << 13) & kLimbMask, (b >> 38 | c << 26) & kLimbMask,
           (c >> 25 | d << 39) & kLimbMask, d >> 12 & kLimbMask}};
}

// The 32 bytes of the number below p. a: wide.
inline std::array<uint8_t, 32> bytes_of(const Field& a) {
  const Field once = a * kFieldOne;  // reduced: below 2 p
  // Adding 19 carries out of the highest limb exactly if the number is at least p.
  uint64_t above = 19;
  for (const uint64_t limb : once.limb) above = (limb + above) >> 51;
  std::array<uint64_t, 5> limb{};
  uint64_t rest = 19 * above;
  for (size_t i = 0; i < 5; i++) {
    rest += once.limb[i];
    limb[i] = rest & kLimbMask;
    rest >>= 51;
  }
  std::array<uint8_t, 32> out;
  store_u64(out.data(), limb[0] | limb[1] << 51);
  store_u64(out.data() + 8, limb[1] >> 13 | limb[2] << 38);
  store_u64(out.data() + 16, limb[2] >> 26 | limb[3] << 25);
  store_u64(out.data() + 24, limb[3] >> 39 | limb[4] << 12);
  return out;
}

// a, b: wide.
inline bool same(const Field& a, const Field& b) { return bytes_of(a) == bytes_of(b); }

}  // namespace shredway
