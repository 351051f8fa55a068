// Clone batch: a worker's hand on the clone plane; what SendBatch is to sockets.
//
// Lists of targets are set whenever tables or next hops change; then each group of payloads costs
// one trigger for each list (more for long lists), however many targets it has. Belongs to one
// worker's thread; no allocation but in set_lists().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clone/clone_plane.h"
#include "clone/next_hops.h"
#include "net/address.h"
#include "net/udp_batch.h"

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
};

class CloneObserver {
 public:
  // Datagrams of a target since its last telling, recovered ones apart; from settle() and
  // set_lists().
  virtual void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) = 0;
  virtual void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) = 0;
  // A trigger was refused or not obeyed (a firewall, a removed interface or hook): no target of
  // `list` from position `from` on, `count` of them (after the last comes the first), got the
  // group. From flush().
  virtual void not_cloned(uint32_t list, uint32_t from, uint32_t count, const PayloadGroup& group,
                          int error_number) = 0;

 protected:
  ~CloneObserver() = default;
};

class CloneBatch {
 public:
  // `gso`: whether bursts may go as one trigger where the plane can.
  CloneBatch(const CloneRegion& region, const CloneHead& head, bool gso, CloneObserver& observer,
             const SocketCalls& calls = system_socket_calls());
  ~CloneBatch();
  CloneBatch(const CloneBatch&) = delete;
  CloneBatch& operator=(const CloneBatch&) = delete;

  // Replaces all lists, after telling the counts of the old ones. A list holds targets of one
  // family. Returns how many targets had room, list by list in order; the rest is for the socket.
  size_t set_lists(std::span<const std::vector<CloneTarget>> lists);
  uint32_t list_size(uint32_t list) const;

  // Adds a group for all targets of the list, the first served being `start` % size; flushes by
  // itself when the batch is full. Payloads must stay valid until the flush. An empty list:
  // nothing.
  void add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered);
  void flush();
  // Tells the observer what was sent and refused since the last time.
  void settle();

  uint64_t triggers() const;      // taken by the kernel
  uint64_t system_calls() const;  // sendmmsg

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shredway
