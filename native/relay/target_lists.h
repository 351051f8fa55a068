// Target lists: who receives the shreds of each tier, and how each one is reached, ready for a
// worker to send by.
//
// Built by Tables on the publishing thread, once for all workers that send alike; immutable
// afterwards and read by Transmit. A target whose next hop is known is cloned to, where the worker
// can clone and enough targets of its kind and family are there to be worth it; all others are sent
// to by socket.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clone/clone.h"
#include "relay/fanout_table.h"

namespace shredway {

// Targets of one list that get different payloads.
inline constexpr size_t kTransmitKinds = 2;
// Clone lists of one list, by kind and family.
inline constexpr size_t kCloneListsPerList = 2 * kTransmitKinds;

// A trigger costs about as much as two datagrams by socket: fewer targets than these are not worth
// it.
inline constexpr size_t kCloneTargetsLeast = 3;

struct TransmitTarget {
  union {
    sockaddr address;
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
  };
  uint32_t tag;  // whom the counts are told of
  uint8_t kind;  // < kTransmitKinds
  bool is_ipv4() const { return address.sa_family == AF_INET; }
  socklen_t address_bytes() const { return is_ipv4() ? sizeof ipv4 : sizeof ipv6; }
};

// What the lists of a worker depend on besides the tables.
struct TargetRules {
  uint32_t tier_count = 0;
  CloneFamilies clones{};
  CloneHead head{};
  bool operator==(const TargetRules&) const = default;
};

class TargetLists {
 public:
  struct Range {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct List {
    std::vector<TransmitTarget> targets;  // those by socket first, then by clone list
    uint32_t by_socket = 0;
    std::array<Range, kCloneListsPerList> by_clone{};
  };

  // `fanout` nullptr: no targets. `next_hops` nullptr: all by socket.
  TargetLists(const FanoutTable* fanout, const NextHops* next_hops, const TargetRules& rules);

  const std::vector<List>& lists() const { return lists_; }  // by tier
  // The list of clones l of tier t is number t * kCloneListsPerList + l.
  const CloneLists& clones() const { return clones_; }
  // Destinations by the state of their next hop; zeros without next hops.
  const std::array<uint64_t, kNextHopStateCount>& next_hop_states() const { return states_; }

 private:
  std::vector<List> lists_;
  CloneLists clones_;
  std::array<uint64_t, kNextHopStateCount> states_{};
};

}  // namespace shredway
