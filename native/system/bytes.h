// Little-endian integers in byte arrays.
#pragma once

#include <cstdint>
#include <cstring>

namespace shredway {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline uint64_t load_u64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline void store_u64(uint8_t* p, uint64_t value) { std::memcpy(p, &value, sizeof value); }

}  // namespace shredway
