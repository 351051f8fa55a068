// Next hops: through which interface, from which address and to which MAC address a destination is
// reached, as the kernel's own tables say.
//
// An immutable table by destination address, made by NextHopWatch and read by workers that put
// whole frames together (clone_batch.h). An address without a hop goes by socket, for the reason
// given: there the kernel itself looks for the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "system/named_enum.h"

namespace shredway {

using AddressBytes = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d
using MacAddress = std::array<uint8_t, 6>;

inline constexpr size_t kNextHopsMax = 4096;  // of a table

struct NextHop {
  uint32_t interface = 0;  // its index
  MacAddress from{};
  MacAddress to{};
  AddressBytes source{};  // what the kernel would send from
  bool operator==(const NextHop& other) const = default;
};

// Why a destination goes by socket. X(name, meaning)
#define SHREDWAY_NEXT_HOP_STATES(X)                                                    \
  X(resolved, "interface and MAC address are known")                                   \
  X(no_route, "no route leads there, or one that refuses")                             \
  X(local, "an address of this machine, or behind the loopback interface")             \
  X(interface_unsuitable, "the interface is down or has no Ethernet frames (tunnels)") \
  X(neighbour_unknown, "the MAC address of the next hop is not known (yet)")           \
  X(neighbour_checked,                                                                 \
    "one destination behind a next hop that nothing was heard of for a while: "        \
    "its datagrams make the kernel ask")                                               \
  X(mtu_small, "the interface or a configured route does not take a whole shred")
SHREDWAY_NAMED_ENUM(NextHopState, uint8_t, kNextHopStateCount, next_hop_state_name,
                    SHREDWAY_NEXT_HOP_STATES)

class NextHops {
 public:
  struct Entry {
    AddressBytes address;
    NextHopState state;
    NextHop hop;  // of meaning when resolved
    bool operator==(const Entry& other) const = default;
  };
  // Any order; one entry for each address.
  explicit NextHops(std::vector<Entry> entries);
  // nullptr for an address that was never asked for.
  const Entry* find(const AddressBytes& address) const;
  const std::vector<Entry>& entries() const { return entries_; }  // by address

 private:
  std::vector<Entry> entries_;
};

}  // namespace shredway
