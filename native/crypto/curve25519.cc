#include "crypto/curve25519.h"

#include <cstring>

#include "system/bytes.h"

namespace shredway {
namespace {

// ---- constants, computed from their definitions ----

struct Constants {
  Field d, twice_d, root_of_minus_one;
};
const Constants& constants() {
  static const Constants values = [] {
    const Field minus_121665 = kFieldZero - Field{{121'665, 0, 0, 0, 0}};
    const Field d = minus_121665 * inverse(Field{{121'666, 0, 0, 0, 0}});
    // 2^((p - 1) / 2) = -1, because 2 is not a square; (p - 1) / 4 = 2 (2^252 - 3) + 1.
    const Field two{{2, 0, 0, 0, 0}};
    return Constants{d, (d + d) * kFieldOne, square(root_power(two)) * two};
  }();
  return values;
}

// ---- points ----

// The four products that every formula ends with.
Point combine(const Field& e, const Field& f, const Field& g, const Field& h) {
  return {e * f, g * h, f * g, e * h};
}

Point doubled(const Point& p) {
  const Field xx = square(p.x), yy = square(p.y), zz = square(p.z);
  const Field h = xx + yy;
  const Field g = xx - yy;
  return combine(h - square(p.x + p.y), (zz + zz) + g, g, h);
}

// a, b, c: of the sum's terms; d: twice the product of both z.
Point sum_of(const Field& a, const Field& b, const Field& c, const Field& d, bool subtract) {
  const Field d_minus_c = d - c;
  const Field d_plus_c = d + c;
  return subtract ? combine(b - a, d_plus_c, d_minus_c, b + a)
                  : combine(b - a, d_minus_c, d_plus_c, b + a);
}

Point sum_of(const Point& p, const Point& q) {
  const Field zz = p.z * q.z;
  return sum_of((p.y - p.x) * (q.y - q.x), (p.y + p.x) * (q.y + q.x),
                p.t * q.t * constants().twice_d, zz + zz, false);
}

// Replaces each z by its inverse, with one inversion for all of them (Montgomery's trick).
void invert_each_z(std::vector<Point>& points) {
  std::vector<Field> products;  // of the z of all points before this one
  products.reserve(points.size());
  Field product = kFieldOne;
  for (const Point& point : points) {
    products.push_back(product);
    product = product * point.z;
  }
  Field rest = inverse(product);
  for (size_t i = points.size(); i-- > 0;) {
    const Field z = points[i].z;
    points[i].z = rest * products[i];
    rest = rest * z;
  }
}

// ---- scalars ----

// The order is 2^252 + kOrderRest.
constexpr uint64_t kOrderRest[2] = {0x5812631a5cf5d3ed, 0x14def9dea2f79cd6};
constexpr uint64_t kTop = uint64_t{1} << 60;  // 2^252 in the fourth word
using Words = std::array<uint64_t, 4>;

// value - quotient * kOrderRest. Returns whether the result is negative, as a number of 256 bits.
bool subtract_rest(Words& value, uint64_t quotient) {
  using Wide = unsigned __int128;
  Wide product = 0;
  uint64_t borrow = 0;
  for (size_t i = 0; i < value.size(); i++) {
    if (i < 2) product += Wide{quotient} * kOrderRest[i];
    const Wide difference = Wide{value[i]} - static_cast<uint64_t>(product) - borrow;
    value[i] = static_cast<uint64_t>(difference);
    borrow = static_cast<uint64_t>(difference >> 64) & 1;
    product >>= 64;
  }
  return borrow != 0;
}

void add_order(Words& value) {
  unsigned __int128 sum = 0;
  for (size_t i = 0; i < value.size(); i++) {
    sum += value[i];
    sum += i < 2 ? kOrderRest[i] : i == 3 ? kTop : 0;
    value[i] = static_cast<uint64_t>(sum);
    sum >>= 64;
  }
}

}  // namespace

// Horner's rule with words of 32 bits. value 2^32 + word = quotient 2^252 + low, and 2^252 is
// -kOrderRest, so the next value is low - quotient * kOrderRest. This is below the order, and above
// its negative.
Scalar reduced_scalar(const uint8_t* bytes) {
  Words value{};
  for (size_t word = 16; word-- > 0;) {
    const uint64_t quotient = value[3] >> 28;
    value = {value[0] << 32 | load_u32(bytes + 4 * word), value[1] << 32 | value[0] >> 32,
             value[2] << 32 | value[1] >> 32, (value[3] << 32 | value[2] >> 32) & (kTop - 1)};
    if (subtract_rest(value, quotient)) add_order(value);
  }
  Scalar out;
  for (size_t i = 0; i < value.size(); i++) store_u64(out.data() + 8 * i, value[i]);
  return out;
}

bool is_reduced_scalar(const uint8_t* bytes) {
  Words value;
  for (size_t i = 0; i < value.size(); i++) value[i] = load_u64(bytes + 8 * i);
  if (value[3] != kTop) return value[3] < kTop;
  value[3] = 0;
  return subtract_rest(value, 1);
}

std::array<int8_t, 64> signed_digits(const Scalar& scalar) {
  std::array<int8_t, 64> digits;
  int carry = 0;
  for (size_t i = 0; i < digits.size(); i++) {
    const int digit = (scalar[i / 2] >> (i % 2 * 4) & 15) + carry;
    carry = digit > 8 ? 1 : 0;
    digits[i] = static_cast<int8_t>(digit - 16 * carry);
  }
  return digits;  // the last carry is 0: scalars are below 2^253
}

// x^2 = (y^2 - 1) / (d y^2 + 1) =: u / v. If u / v is a square, u v^3 (u v^7)^((p - 5) / 8) is a
// root: its square is u / v or -u / v (RFC 8032, 5.1.3).
std::optional<Point> decode_point(const uint8_t* bytes) {
  const Field y = field_of(bytes);
  const Field yy = square(y);
  const Field u = yy - kFieldOne;
  const Field v = yy * constants().d + kFieldOne;
  const Field v3 = square(v) * v;
  Field x = u * v3 * root_power(u * square(v3) * v);
  const Field vxx = v * square(x);
  if (!same(vxx, u)) {
    if (!same(vxx, kFieldZero - u * kFieldOne)) return std::nullopt;
    x = x * constants().root_of_minus_one;
  }
  const bool odd = bytes[31] >> 7;
  const std::array<uint8_t, 32> x_bytes = bytes_of(x);
  if (odd && x_bytes == bytes_of(kFieldZero)) return std::nullopt;
  if ((x_bytes[0] & 1) != odd) x = (kFieldZero - x) * kFieldOne;
  return Point{x, y, kFieldOne, x * y};
}

std::array<uint8_t, 32> encode_point(const Point& point) {
  const Field z_inverse = inverse(point.z);
  const std::array<uint8_t, 32> x = bytes_of(point.x * z_inverse);
  std::array<uint8_t, 32> out = bytes_of(point.y * z_inverse);
  out[31] ^= static_cast<uint8_t>(x[0] << 7);
  return out;
}

Point negated(const Point& point) {
  return {(kFieldZero - point.x) * kFieldOne, point.y, point.z, (kFieldZero - point.t) * kFieldOne};
}

const Point& base_point() {
  static const Point point = [] {
    // y = 4 / 5, and x is even.
    const Field y = Field{{4, 0, 0, 0, 0}} * inverse(Field{{5, 0, 0, 0, 0}});
    return *decode_point(bytes_of(y).data());
  }();
  return point;
}

Multiples::Multiples(const Point& point) {
  std::vector<Point> points;
  points.reserve(kWindows * kEach);
  Point power = point;  // 16^i times the point
  for (size_t i = 0; i < kWindows; i++) {
    points.push_back(power);
    for (size_t j = 1; j < kEach; j++) points.push_back(sum_of(points.back(), power));
    power = doubled(points.back());
  }
  invert_each_z(points);
  entries_.reserve(points.size());
  for (const Point& each : points) {
    const Field x = each.x * each.z;
    const Field y = each.y * each.z;
    entries_.push_back({y + x, y - x, x * y * constants().twice_d});
  }
}

// The negative of an affine point has its y + x and y - x exchanged, and a negative x y.
void Multiples::add_to(Point& sum, size_t i, int digit) const {
  if (digit == 0) return;
  const Entry& other = entry(i, digit);
  const bool negative = digit < 0;
  const Field& minus = negative ? other.y_plus_x : other.y_minus_x;
  const Field& plus = negative ? other.y_minus_x : other.y_plus_x;
  sum = sum_of((sum.y - sum.x) * minus, (sum.y + sum.x) * plus, sum.t * other.xy2d, sum.z + sum.z,
               negative);
}

void Multiples::prefetch(size_t i, int digit) const {
  if (digit == 0) return;
  const auto* bytes = reinterpret_cast<const char*>(&entry(i, digit));
  __builtin_prefetch(bytes);
  __builtin_prefetch(bytes + 64);
}

}  // namespace shredway
