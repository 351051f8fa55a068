#include "system/base64.h"

#include <array>

namespace shredway {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNotBase64 = 0xff;

constexpr std::array<uint8_t, 256> make_values() {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kNotBase64;
  for (size_t i = 0; i < kBase64Digits.size(); i++)
    values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr std::array<uint8_t, 256> kValues = make_values();

}  // namespace

void base64_encode(const uint8_t* bytes, size_t length, char* out) {
  for (size_t at = 0; at < length; at += 3) {
    const size_t left = length - at;
    uint32_t group = static_cast<uint32_t>(bytes[at]) << 16;
    if (left > 1) group |= static_cast<uint32_t>(bytes[at + 1]) << 8;
    if (left > 2) group |= bytes[at + 2];
    *out++ = kBase64Digits[group >> 18];
    *out++ = kBase64Digits[group >> 12 & 63];
    *out++ = left > 1 ? kBase64Digits[group >> 6 & 63] : '=';
    *out++ = left > 2 ? kBase64Digits[group & 63] : '=';
  }
}

bool base64_decode(std::string_view text, uint8_t* out, size_t out_max, size_t& out_bytes) {
  if (text.size() % 4 != 0) return false;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') padding++;
  const size_t bytes = text.size() / 4 * 3 - padding;
  if (bytes > out_max) return false;
  size_t written = 0;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t group = 0;
    const size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    for (size_t i = 0; i < digits; i++) {
      const uint8_t value = kValues[static_cast<uint8_t>(text[at + i])];
      if (value == kNotBase64) return false;
      group |= static_cast<uint32_t>(value) << (18 - 6 * i);
    }
    // Bits behind the last byte.
    if ((group & ((1U << (24 - 8 * (digits - 1))) - 1)) != 0) return false;
    for (size_t i = 0; i + 1 < digits; i++)
      out[written++] = static_cast<uint8_t>(group >> (16 - 8 * i));
  }
  out_bytes = written;
  return true;
}

}  // namespace shredway
