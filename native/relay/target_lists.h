// Target lists: the receivers of each tier's shreds and how to reach each of them, prepared for a
// worker's sends.
//
// Tables builds them on the publishing thread, once for all workers with the same rules; afterwards
// they are immutable, and Transmit reads them. A target with a resolved next hop is sent to by
// clone or AF_XDP if the worker can do so for its interface and address family, and if enough
// receivers of its kind can be reached in this way. A socket sends to all others.
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

// Number of target kinds in one list; each kind gets different payloads.
inline constexpr size_t kTransmitKinds = 2;
// Clone lists of one list, by kind and address family.
inline constexpr size_t kCloneListsPerList = 2 * kTransmitKinds;

// Processor time of clones ÷ sockets, medians of five interleaved rounds, two busy cores
// (Linux 6.18, 2026-11-26): 1 target 1.40 (single shreds), 1.20 (bursts of 32); 2 targets 0.88,
// 0.65; 3 targets 0.68, 0.51; 10 targets 0.34, 0.20. From 3 targets on, clones won in every round
// of every size of burst, also if the kernel segments. Fewer targets use sockets.
inline constexpr size_t kCloneTargetsLeast = 3;

struct TransmitTarget {
  union {
    sockaddr address;
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
  };
  uint32_t tag;  // identifies the target's counters
  uint8_t kind;  // < kTransmitKinds
  bool is_ipv4() const { return address.sa_family == AF_INET; }
  socklen_t address_bytes() const { return is_ipv4() ? sizeof ipv4 : sizeof ipv6; }
};

// Properties of a worker that its lists depend on, in addition to the tables.
struct TargetRules {
  uint32_t tier_count = 0;
  CloneFamilies clones{};  // by clone or AF_XDP
  CloneHeader header{};
  std::vector<uint32_t> interfaces{};         // that can be sent by; empty: all
  size_t targets_least = kCloneTargetsLeast;  // fewer of a kind and family use sockets
  bool operator==(const TargetRules&) const = default;
};

class TargetLists {
 public:
  struct Range {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct List {
    std::vector<TransmitTarget> targets;  // targets by socket first, then those of each clone list
    uint32_t by_socket = 0;
    // Numbers of targets by socket, and targets of each clone list; both by kind and family.
    std::array<uint32_t, kCloneListsPerList> socket_counts{};
    std::array<Range, kCloneListsPerList> by_clone{};
  };

  // `fanout` nullptr: no targets. `next_hops` nullptr: all targets by socket.
  TargetLists(const FanoutTable* fanout, const NextHops* next_hops, const TargetRules& rules);

  const std::vector<List>& lists() const { return lists_; }  // by tier
  // Clone list l of tier t has the index t * kCloneListsPerList + l.
  const CloneLists& clones() const { return clones_; }
  // Destinations by next-hop state; zeros without next hops.
  const std::array<uint64_t, kNextHopStateCount>& next_hop_states() const { return states_; }

 private:
  std::vector<List> lists_;
  CloneLists clones_;
  std::array<uint64_t, kNextHopStateCount> states_{};
};

}  // namespace shredway
