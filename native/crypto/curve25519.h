// Points of Ed25519's curve, -x^2 + y^2 = 1 + d x^2 y^2 (RFC 8032, 5.1), and tables of their
// multiples.
//
// The formulas are those of Hisil, Wong, Carter and Dawson (2008) for extended coordinates. They
// hold for all points, so that there are no special cases. Variable time: nothing here is secret.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "crypto/field25519.h"

namespace shredway {

// Scalars modulo the order of the base point, 2^252 + 27742317777372353535851937790883648493, as 32
// little-endian bytes.
using Scalar = std::array<uint8_t, 32>;
Scalar reduced_scalar(const uint8_t* bytes);                 // of a number of 64 bytes
bool is_reduced_scalar(const uint8_t* bytes);                // of 32 bytes
std::array<int8_t, 64> signed_digits(const Scalar& scalar);  // to base 16, each from -7 to 8

// x = x / z and y = y / z; t = x y / z. All reduced.
struct Point {
  Field x, y, z, t;
};
inline constexpr Point kNeutralPoint{kFieldZero, kFieldOne, kFieldOne, kFieldZero};

// Returns no value if the bytes are not the encoding of a point. Accepts y >= p.
std::optional<Point> decode_point(const uint8_t* bytes);
std::array<uint8_t, 32> encode_point(const Point& point);
Point negated(const Point& point);
const Point& base_point();

// The multiples 16^i j of a point, for i from 0 to 63 and j from 1 to 8, so that a product needs 64
// additions and no doubling. 65,536 bytes; takes about 0.2 ms to compute.
class Multiples {
 public:
  explicit Multiples(const Point& point);
  // Adds `digit` 16^i times the point to `sum`. -8 <= digit <= 8.
  void add_to(Point& sum, size_t i, int digit) const;
  // Requests the memory that add_to() will read: the cache may not contain it.
  void prefetch(size_t i, int digit) const;

 private:
  static constexpr size_t kWindows = 64, kEach = 8;
  // A multiple as an affine point, in two cache lines.
  struct alignas(128) Entry {
    Field y_plus_x, y_minus_x, xy2d;  // the last one: 2 d x y, reduced
  };
  const Entry& entry(size_t i, int digit) const {
    return entries_[i * kEach + static_cast<size_t>(digit < 0 ? -digit : digit) - 1];
  }
  std::vector<Entry> entries_;
};

}  // namespace shredway
