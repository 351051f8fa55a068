// Prepared keys accept what the libraries accept. Known answers of scalars were computed with
// Python's integers.
#include "crypto/prepared_key.h"

#include <random>

#include "ed25519_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

template <size_t kBytes>
std::array<uint8_t, kBytes> random_bytes(std::mt19937_64& random) {
  std::array<uint8_t, kBytes> out;
  for (uint8_t& byte : out) byte = static_cast<uint8_t>(random());
  return out;
}

Scalar random_scalar(std::mt19937_64& random) {
  return reduced_scalar(random_bytes<64>(random).data());
}

void add_product(Point& sum, const Multiples& multiples, const Scalar& scalar) {
  const auto digits = signed_digits(scalar);
  for (size_t i = 0; i < digits.size(); i++) multiples.add_to(sum, i, digits[i]);
}

// a b + c modulo the order.
Scalar product_plus(const Scalar& a, const Scalar& b, const Scalar& c) {
  std::array<uint32_t, 64> sums{};
  for (size_t i = 0; i < 32; i++) {
    sums[i] += c[i];
    for (size_t j = 0; j < 32; j++) sums[i + j] += uint32_t{a[i]} * b[j];
  }
  std::array<uint8_t, 64> bytes;
  uint32_t rest = 0;
  for (size_t i = 0; i < bytes.size(); i++) {
    rest += sums[i];
    bytes[i] = static_cast<uint8_t>(rest);
    rest >>= 8;
  }
  return reduced_scalar(bytes.data());
}

Scalar challenge(const std::array<uint8_t, 32>& r, const PublicKey& key, const Bytes& message) {
  Sha512Digest digest;
  CHECK(sha512({r, key, message}, digest));
  return reduced_scalar(digest.data());
}

// y of a point of order 8.
constexpr const char* kOrder8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05";

}  // namespace

TEST(prepared_key_reduces_scalars) {
  const std::string zeros(64, '0');
  const std::string ones(128, 'f');
  const std::string order = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
  const std::string below = "ecd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {zeros + zeros, zeros},
      {ones, "000f9c44e31106a447938568a71b0ed065bef517d273ecce3d9a307c1b419903"},
      {order + zeros, zeros},
      {below + zeros, below},
      {"00000000000000000000000000000000000000000000000000edd3f55c1a6312"
       "58d69cf7a2def9de140000000000000000000000000000001000000000000000",
       zeros},
      {"0500000000000000000000000000000000000000000000000000000000000000"
       "689faee7d21893c0b2e6bc17f5cef7a600000000000000000000000000000080",
       "0500000000000000000000000000000000000000000000000000000000000000"},
      {"0000000000000000000000000000000000000000000000000000000000000008"
       "0000000000000000000000000000000000000000000000000000000000000080",
       "8a1dd37364d7f9a538fbc662e49097dd32dffa0be93976e71e4d18be8da0cc01"},
  };
  for (const auto& [number, reduced] : cases)
    CHECK_EQ(hex(reduced_scalar(unhex(number).data()).data(), 32), reduced);
  CHECK(is_reduced_scalar(unhex(below).data()));
  CHECK(!is_reduced_scalar(unhex(order).data()));
  CHECK(is_reduced_scalar(unhex(zeros).data()));
  CHECK(!is_reduced_scalar(unhex(ones).data()));
}

TEST(prepared_key_multiples_give_the_public_keys_of_a_library) {
  if (ed25519_library() == Ed25519Library::none) SKIP("neither libsodium nor OpenSSL here");
  const Multiples base(base_point());
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; i++) {
    const auto seed = random_bytes<32>(random);
    Sha512Digest secret;
    CHECK(sha512({seed}, secret));
    secret[0] &= 248;
    secret[31] = static_cast<uint8_t>((secret[31] & 127) | 64);
    std::fill(secret.begin() + 32, secret.end(), uint8_t{0});
    Point product = kNeutralPoint;
    add_product(product, base, reduced_scalar(secret.data()));
    CHECK(encode_point(product) == SigningKey(seed).public_key());
  }
}

TEST(prepared_key_multiples_of_each_digit) {
  const Multiples base(base_point());
  Point power = base_point();  // 16^i times the base point
  for (size_t i = 0; i < 64; i++) {
    const Multiples of_power(power);
    Point sum = kNeutralPoint;
    for (int digit = 1; digit <= 8; digit++) {
      of_power.add_to(sum, 0, 1);
      Point direct = kNeutralPoint;
      base.add_to(direct, i, digit);
      CHECK(encode_point(direct) == encode_point(sum));
      base.add_to(direct, i, -digit);
      CHECK(encode_point(direct) == encode_point(kNeutralPoint));
    }
    for (int j = 0; j < 8; j++) of_power.add_to(sum, 0, 1);
    power = *decode_point(encode_point(sum).data());
  }
}

TEST(prepared_key_decodes_points_as_they_were_encoded) {
  std::mt19937_64 random(2);
  size_t points = 0;
  for (int i = 0; i < 400; i++) {
    auto bytes = random_bytes<32>(random);
    bytes[31] &= 0xbf;  // below p
    const std::optional<Point> point = decode_point(bytes.data());
    if (!point) continue;
    points++;
    CHECK(encode_point(*point) == bytes);
    bytes[31] ^= 0x80;
    CHECK(encode_point(negated(*point)) == bytes);
  }
  CHECK(points > 100 && points < 300);  // half of all y
}

TEST(prepared_key_agrees_with_both_libraries_on_random_and_altered_signatures) {
  on_each_library([] {
    std::mt19937_64 random(3);
    for (int k = 0; k < 20; k++) {
      const SigningKey key(random_bytes<32>(random));
      const BothKeys both(key.public_key());
      for (int i = 0; i < 50; i++) {
        Bytes message(random() % 300);
        for (uint8_t& byte : message) byte = static_cast<uint8_t>(random());
        Signature signature;
        CHECK(key.sign(message.data(), message.size(), signature));
        CHECK(both.verify(signature, message));
        signature[random() % 64] ^= static_cast<uint8_t>(1 << random() % 8);
        CHECK(!both.verify(signature, message));
      }
    }
  });
}

// The key and R have a part of small order. The equation holds without the cofactor if these parts
// cancel, which is so for one of eight challenges.
TEST(prepared_key_agrees_with_both_libraries_on_points_with_a_small_part) {
  const Multiples base(base_point());
  const Multiples torsion(*decode_point(unhex(kOrder8).data()));
  std::mt19937_64 random(4);
  const Scalar a = random_scalar(random);
  Point key_point = kNeutralPoint;
  add_product(key_point, base, a);
  torsion.add_to(key_point, 0, 1);
  const PublicKey key = encode_point(key_point);
  on_each_library([&] {
    const BothKeys both(key);
    int valid = 0;
    for (int i = 0; i < 80; i++) {
      const Bytes message{static_cast<uint8_t>(i)};
      const Scalar r = random_scalar(random);
      Point r_point = kNeutralPoint;
      add_product(r_point, base, r);
      torsion.add_to(r_point, 0, i % 8);
      const auto r_bytes = encode_point(r_point);
      const Scalar h = challenge(r_bytes, key, message);
      const Scalar s = product_plus(h, a, r);
      Signature signature;
      std::memcpy(signature.data(), r_bytes.data(), 32);
      std::memcpy(signature.data() + 32, s.data(), 32);
      const bool cancels = (h[0] + i) % 8 == 0;
      CHECK_EQ(both.verify(signature, message), cancels);
      valid += cancels;
    }
    CHECK(valid > 0 && valid < 80);
  });
}

TEST(prepared_keys_are_prepared_once) {
  std::mt19937_64 random(5);
  const PublicKey first = SigningKey(random_bytes<32>(random)).public_key();
  const PublicKey second = SigningKey(random_bytes<32>(random)).public_key();
  PreparedKeys keys;
  keys.add(first, {});
  keys.add(first, {});
  keys.add(PublicKey{1}, {});  // of small order
  const PreparedKey* prepared = keys.find(first);
  CHECK(prepared && prepared->bytes() == first);
  CHECK(!keys.find(second) && !keys.find(PublicKey{1}));
  PreparedKeys next;
  next.add(second, keys);
  next.add(first, keys);
  CHECK_EQ(next.find(first), prepared);
  CHECK(!(next == keys));
}
