// Byte offsets in an Ethernet frame with a UDP datagram, as frames are received and written.
//
// Offsets in a header are from its first byte.
#pragma once

#include <cstdint>
#include <cstring>

namespace shredway {

inline constexpr uint32_t kProtocolAt = 12, kEthernetBytes = 14;
inline constexpr uint32_t kIpv4Bytes = 20, kIpv6Bytes = 40, kUdpBytes = 8;  // IPv4: without options
inline constexpr uint8_t kVersionAndLength = 0x45;                          // IPv4 without options
inline constexpr uint16_t kFragmentBits = 0x3fff;  // more fragments, and the offset
inline constexpr uint32_t kUdpDestinationAt = 2, kUdpLengthAt = 4, kUdpSumAt = 6;

// In memory order, for checksums.
inline uint16_t word_at(const uint8_t* bytes) {
  uint16_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace shredway
