#include "crypto/prepared_key.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shredway {
namespace {

const Multiples& multiples_of_base_point() {
  static const Multiples multiples(base_point());
  return multiples;
}

}  // namespace

std::unique_ptr<const PreparedKey> PreparedKey::create(const PublicKey& key) {
  Sha512Digest unused;
  if (!is_safe_key(key.data()) || !sha512({}, unused)) return nullptr;
  const std::optional<Point> point = decode_point(key.data());
  if (!point) return nullptr;
  multiples_of_base_point();  // here rather than in the first verification
  return std::unique_ptr<const PreparedKey>(new PreparedKey(key, *point));
}

// R is compared as bytes: an encoding with y >= p is refused.
bool PreparedKey::verify(const uint8_t* signature, const uint8_t* message,
                         size_t message_bytes) const {
  const uint8_t* s = signature + 32;
  if (!is_reduced_scalar(s) || has_small_order(signature)) return false;
  Sha512Digest hash;
  if (!sha512({{signature, 32}, bytes_, {message, message_bytes}}, hash)) return false;
  Scalar s_bytes;
  std::memcpy(s_bytes.data(), s, s_bytes.size());
  const auto s_digits = signed_digits(s_bytes);
  const auto h_digits = signed_digits(reduced_scalar(hash.data()));

  const Multiples& base = multiples_of_base_point();
  for (size_t i = 0; i < s_digits.size(); i++) {
    base.prefetch(i, s_digits[i]);
    negative_.prefetch(i, h_digits[i]);
  }
  Point sum = kNeutralPoint;
  for (size_t i = 0; i < s_digits.size(); i++) {
    base.add_to(sum, i, s_digits[i]);
    negative_.add_to(sum, i, h_digits[i]);
  }
  return std::memcmp(encode_point(sum).data(), signature, 32) == 0;
}

void PreparedKeys::add(const PublicKey& key, const PreparedKeys& others) {
  const auto is_key = [&](const auto& each) { return each->bytes() == key; };
  if (std::any_of(keys_.begin(), keys_.end(), is_key)) return;
  const auto known = std::find_if(others.keys_.begin(), others.keys_.end(), is_key);
  std::shared_ptr<const PreparedKey> prepared =
      known == others.keys_.end() ? PreparedKey::create(key) : *known;
  if (prepared) keys_.push_back(std::move(prepared));
}

const PreparedKey* PreparedKeys::find(const PublicKey& key) const {
  for (const auto& each : keys_)
    if (each->bytes() == key) return each.get();
  return nullptr;
}

}  // namespace shredway
