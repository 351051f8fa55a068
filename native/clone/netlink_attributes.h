// Netlink attributes: the type-length-value parts of a message, read with every length checked, and
// written with their padding.
//
// Used by netlink_messages.cc and output_rules.cc. Layout of linux/netlink.h: native byte order,
// all parts aligned to 4.
#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace shredway::netlink {

using Bytes = std::span<const uint8_t>;

inline constexpr uint16_t kTypeMask = 0x3fff;  // NLA_TYPE_MASK: two bits of a type are flags

constexpr size_t aligned(size_t length) { return (length + 3) & ~size_t{3}; }

// The bytes after the first `length` bytes and their padding; the last part may lack padding.
inline Bytes after(Bytes bytes, size_t length) {
  return bytes.subspan(std::min(aligned(length), bytes.size()));
}

// Copies the first bytes. False if there are fewer.
template <typename T>
bool read(Bytes bytes, T& out) {
  if (bytes.size() < sizeof out) return false;
  std::memcpy(&out, bytes.data(), sizeof out);
  return true;
}

// A payload of exactly this type, or zero.
template <typename T>
T number(Bytes payload) {
  T value = 0;
  return payload.size() == sizeof value && read(payload, value) ? value : T{0};
}

// A text that ends with its first zero byte, or with the payload.
inline std::string text(Bytes payload) {
  const std::string all(payload.begin(), payload.end());
  return all.substr(0, all.find('\0'));
}

// Calls take(type, payload) for each attribute; a truncated attribute ends the loop.
template <typename Take>
void each_attribute(Bytes bytes, Take take) {
  nlattr header;
  while (read(bytes, header)) {
    if (header.nla_len < sizeof header || header.nla_len > bytes.size()) return;
    take(static_cast<uint16_t>(header.nla_type & kTypeMask),
         bytes.subspan(sizeof header, header.nla_len - sizeof header));
    bytes = after(bytes, header.nla_len);
  }
}

template <typename T>
void append(std::vector<uint8_t>& out, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

inline void append_attribute(std::vector<uint8_t>& out, uint16_t type, Bytes payload) {
  append(out, nlattr{static_cast<uint16_t>(sizeof(nlattr) + payload.size()), type});
  out.insert(out.end(), payload.begin(), payload.end());
  out.resize(aligned(out.size()));
}

}  // namespace shredway::netlink
