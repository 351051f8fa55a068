// Connection ids: ids of connections that the kernel recognises, so that it drops packets with
// others.
//
// An id is a random number and its check value under a secret key, 4 bytes each. Any program that
// has seen an id can use it, so the check only keeps packets of strangers away;
// connection_packets.h knows which connections exist.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace shredway {

inline constexpr size_t kConnectionIdBytes = 8;
inline constexpr size_t kConnectionIdKeyBytes = 32;

using ConnectionIdKey = std::array<uint8_t, kConnectionIdKeyBytes>;
using ConnectionId = std::array<uint8_t, kConnectionIdBytes>;

class ConnectionIds {
 public:
  explicit ConnectionIds(const ConnectionIdKey& key);
  ConnectionId make(uint32_t number) const;
  ConnectionId make_random() const;
  bool is_own(std::span<const uint8_t> id) const;
  // From now on, the kernel drops packets of the UDP socket with another id after the first byte.
  // False: it refuses, and the socket is as before.
  bool attach_filter(int fd) const;

 private:
  static constexpr size_t kRounds = 3;
  static constexpr uint32_t kShift = 15;
  // A round makes value = (value ^ added) * factor, and then value ^= value >> kShift.
  struct Round {
    uint32_t added, factor;
  };

  uint32_t check_of(uint32_t number) const;

  std::array<Round, kRounds> rounds_;
};

}  // namespace shredway
