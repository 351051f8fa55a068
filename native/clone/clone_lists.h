// Clone lists: target lists in the layout that the clone program reads, ready to be copied into a
// worker's region.
//
// Built on any thread, immutable afterwards. All frame headers are complete, so that a worker that
// gets new lists only copies rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clone/clone_plane.h"
#include "clone/next_hops.h"
#include "net/address.h"

namespace shredway {

struct CloneTarget {
  uint32_t tag;  // identifies the target's counters
  Endpoint destination;
  NextHop hop;
};

// Header fields of the clones that do not depend on the target.
struct CloneHeader {
  // Port of the worker's send socket, so that ICMP errors come back to it.
  uint16_t source_port_ipv4 = 0;
  uint16_t source_port_ipv6 = 0;
  uint8_t ttl = 64;
  uint8_t dscp = 0;  // 0 .. 63
  bool operator==(const CloneHeader&) const = default;
};

// Address families that a worker can clone to.
struct CloneFamilies {
  bool ipv4 = false;
  bool ipv6 = false;
  bool operator==(const CloneFamilies&) const = default;
};

class CloneLists {
 public:
  struct List {
    uint32_t first = 0;  // index of the first row
    uint32_t size = 0;
    bool ipv4 = true;
  };

  CloneLists() = default;
  // Each list holds targets of one family. Targets have no row, and must be sent to by socket, if
  // their family cannot be cloned to or if more than kCloneTargetsMax targets precede them.
  CloneLists(std::span<const std::vector<CloneTarget>> lists, const CloneHeader& header,
             const CloneFamilies& families);

  const std::vector<List>& lists() const { return lists_; }
  const std::vector<CloneTargetRow>& rows() const { return rows_; }
  const std::vector<uint32_t>& tags() const { return tags_; }  // by row

 private:
  std::vector<List> lists_;
  std::vector<CloneTargetRow> rows_;
  std::vector<uint32_t> tags_;
};

}  // namespace shredway
