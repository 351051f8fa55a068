// Fan-out table: the destinations of each tier.
//
// The control plane publishes it as a whole; afterwards it is immutable. Every worker walks it for
// every batch with new shreds. Addresses are unique: no destination receives a shred twice. Layout,
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
  uint32_t id;           // index of its counters
  bool wants_recovered;  // gets recovered shreds before the real ones arrive
  socklen_t address_bytes() const {
    return address.sa_family == AF_INET ? sizeof ipv4 : sizeof ipv6;
  }
};

class FanoutTable {
 public:
  // Checks all bytes before it builds a table. Returns nullptr and fills `error` if the bytes are
  // not a valid table for `tier_count` tiers. With an empty table nothing is sent.
  static std::unique_ptr<const FanoutTable> parse(const uint8_t* bytes, size_t length,
                                                  uint32_t tier_count, std::string& error);
  std::span<const Destination> of_tier(uint32_t tier) const { return tiers_[tier]; }
  bool any_wants_recovered() const { return any_wants_recovered_; }
  // Unique addresses of all destinations.
  std::vector<std::array<uint8_t, 16>> addresses() const;
  // Destination with this address, or nullptr. For ICMP errors, which strangers can cause: takes
  // the same time for any number of destinations.
  const Destination* find(const Endpoint& endpoint) const;

 private:
  FanoutTable() = default;
  void build_index();
  size_t place_of(const Endpoint& endpoint) const;

  std::vector<std::vector<Destination>> tiers_;
  std::vector<const Destination*> index_;  // hash table with open addressing, by endpoint
  bool any_wants_recovered_ = false;
};

}  // namespace shredway
