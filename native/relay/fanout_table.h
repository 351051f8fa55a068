// Fan-out table: who receives the shreds of which tier.
//
// Published whole by the control plane, immutable afterwards, walked by every worker for every
// batch with something new. One address appears once: nobody gets a shred twice. Bytes,
// little-endian:
//   [0, 4) "SWF1"   [4, 8) entry count   then 24 bytes an entry:
//   [0, 4) destination id   [4, 5) tier   [5, 6) 1: wants recovered shreds, else 0
//   [6, 22) address, IPv4 as ::ffff:a.b.c.d   [22, 24) port, not 0
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/address.h"

namespace shredway {

inline constexpr uint32_t kDestinationsMax = 4096;

struct Destination {
  union {
    sockaddr address;
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
  };
  uint32_t id;           // number of its counters
  bool wants_recovered;  // shreds that were recovered, before they come
  socklen_t address_bytes() const {
    return address.sa_family == AF_INET ? sizeof ipv4 : sizeof ipv6;
  }
};

class FanoutTable {
 public:
  // Checks everything before it builds anything. Returns nullptr and fills `error` when the bytes
  // are no valid table for `tier_count` tiers. An empty table sends to nobody.
  static std::unique_ptr<const FanoutTable> parse(const uint8_t* bytes, size_t length,
                                                  uint32_t tier_count, std::string& error);
  std::span<const Destination> of_tier(uint32_t tier) const { return tiers_[tier]; }
  bool anybody_wants_recovered() const { return anybody_wants_recovered_; }
  // Each once.
  std::vector<std::array<uint8_t, 16>> addresses() const;
  // For errors that come back later: the destination with this address, or nullptr.
  const Destination* find(const Endpoint& endpoint) const;

 private:
  FanoutTable() = default;
  std::vector<std::vector<Destination>> tiers_;
  bool anybody_wants_recovered_ = false;
};

}  // namespace shredway
