// Clone batch: a worker's hand on the clone plane; what SendBatch is to sockets.
//
// Lists of targets are replaced whenever tables or next hops change; then each group of payloads
// costs one trigger for each list (more for long lists), however many targets it has. Belongs to
// one worker's thread; no allocation after construction but in set_lists().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clone/clone_lists.h"
#include "clone/clone_plane.h"
#include "net/udp_batch.h"

namespace shredway {

// Lists of one batch that need no allocation.
inline constexpr size_t kCloneListsMax = 64;

class CloneObserver {
 public:
  // Datagrams of a target since its last telling, recovered ones apart; from settle(),
  // use_lists() and set_lists().
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

  // Replaces all lists, after telling the counts of the old ones, by a copy of lists that were
  // built elsewhere for this batch's head and families. At most kCloneListsMax lists.
  void use_lists(const CloneLists& lists);
  // Builds lists and uses them; allocates. Returns how many targets had room.
  size_t set_lists(std::span<const std::vector<CloneTarget>> lists);
  CloneFamilies families() const;  // of whose triggers the program obeys
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
