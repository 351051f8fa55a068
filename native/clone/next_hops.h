// Next hops: the interface, source address and MAC address for each destination, from the kernel's
// own tables.
//
// An immutable table by destination address. NextHopWatch builds it; workers use it to build whole
// frames (clone_batch.h). An address without a hop is sent to by socket for the given reason; the
// kernel then selects the route.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/address.h"
#include "system/named_enum.h"

namespace shredway {

using MacAddress = std::array<uint8_t, 6>;

inline constexpr size_t kNextHopsMax = 4096;  // per table

struct NextHop {
  uint32_t interface = 0;  // interface index
  MacAddress from{};
  MacAddress to{};
  AddressBytes source{};  // source address that the kernel would use
  bool operator==(const NextHop& other) const = default;
};

// Reasons for sending by socket. X(name, meaning)
#define SHREDWAY_NEXT_HOP_STATES(X)                                                    \
  X(resolved, "interface and MAC address are known")                                   \
  X(no_route, "no route, or a route that refuses")                                     \
  X(local, "an address of this machine, or behind the loopback interface")             \
  X(interface_unsuitable, "the interface is down or has no Ethernet frames (tunnels)") \
  X(neighbour_unknown, "the MAC address of the next hop is not known yet")             \
  X(neighbour_checked,                                                                 \
    "one destination of a stale next hop: "                                            \
    "its datagrams make the kernel probe the next hop")                                \
  X(mtu_small, "a whole shred exceeds the MTU of the interface or route")              \
  X(queue_lossy, "the interface may lose parts of bursts without counting them")       \
  X(output_rules, "a firewall rule or IPsec policy applies to outgoing datagrams")
SHREDWAY_NAMED_ENUM(NextHopState, uint8_t, kNextHopStateCount, next_hop_state_name,
                    SHREDWAY_NEXT_HOP_STATES)

class NextHops {
 public:
  struct Entry {
    AddressBytes address;
    NextHopState state;
    NextHop hop;  // valid if resolved
    bool operator==(const Entry& other) const = default;
  };
  // Any order; one entry per address.
  explicit NextHops(std::vector<Entry> entries);
  // nullptr for an address that was never requested.
  const Entry* find(const AddressBytes& address) const;
  const std::vector<Entry>& entries() const { return entries_; }  // by address

 private:
  std::vector<Entry> entries_;
};

}  // namespace shredway
