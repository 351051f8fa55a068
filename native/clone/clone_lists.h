// Clone lists: lists of targets as the clone program reads them, ready to be copied into a worker's
// region.
//
// Built on any thread, immutable afterwards. All heads of frames are put together here, so that a
// worker that takes new lists only copies rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clone/clone_plane.h"
#include "clone/next_hops.h"
#include "net/address.h"

namespace shredway {

struct CloneTarget {
  uint32_t tag;  // whom the counts are told of
  Endpoint destination;
  NextHop hop;
};

// How the heads of the clones look, beside what the target says.
struct CloneHead {
  uint16_t source_port_ipv4 = 0;  // of the worker's send sockets: ICMP errors come back to them
  uint16_t source_port_ipv6 = 0;
  uint8_t ttl = 64;
  uint8_t dscp = 0;  // 0 .. 63
  bool operator==(const CloneHead&) const = default;
};

// Which families a worker can clone to.
struct CloneFamilies {
  bool ipv4 = false;
  bool ipv6 = false;
  bool operator==(const CloneFamilies&) const = default;
};

class CloneLists {
 public:
  struct List {
    uint32_t first = 0;  // row
    uint32_t size = 0;
    bool ipv4 = true;
  };

  CloneLists() = default;
  // A list holds targets of one family. Of a family that is not cloned to, and beyond
  // kCloneTargetsMax in all, list by list in order, targets have no row: they are for the socket.
  CloneLists(std::span<const std::vector<CloneTarget>> lists, const CloneHead& head,
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
