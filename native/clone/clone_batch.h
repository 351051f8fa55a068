// Clone batch: a worker's interface to the clone plane, like SendBatch for sockets.
//
// The target lists are replaced when tables or next hops change. Each group of payloads then costs
// one trigger per list (more for long lists), however many targets the list has. Belongs to one
// worker's thread; allocates only in the constructor and in set_lists().
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clone/clone_lists.h"
#include "clone/clone_plane.h"
#include "net/udp_batch.h"

namespace shredway {

// Number of lists that need no allocation.
inline constexpr size_t kCloneListsMax = 64;

// Error number of a trigger that the kernel accepted, but whose job the program did not run.
inline constexpr int kCloneNotExecuted = ENOLINK;

class CloneObserver {
 public:
  // Datagrams of a target since the last report; recovered ones are counted apart. Called from
  // settle(), use_lists() and set_lists().
  virtual void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) = 0;
  virtual void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) = 0;
  // A trigger was refused or not executed (a firewall, a removed interface or hook). `count`
  // targets of `list` from position `from` on (wrapping to the first) did not get the group. Called
  // from flush().
  virtual void not_cloned(uint32_t list, uint32_t from, uint32_t count, const PayloadGroup& group,
                          int error_number) = 0;

 protected:
  ~CloneObserver() = default;
};

class CloneBatch {
 public:
  // `gso`: whether bursts may be sent as one trigger if the plane supports it.
  CloneBatch(const CloneRegion& region, const CloneHeader& header, bool gso,
             CloneObserver& observer, const SocketCalls& calls = system_socket_calls());
  ~CloneBatch();
  CloneBatch(const CloneBatch&) = delete;
  CloneBatch& operator=(const CloneBatch&) = delete;

  // Reports the counts of the old lists, then copies the new ones. They must be built for this
  // batch's header and families. At most kCloneListsMax lists.
  void use_lists(const CloneLists& lists);
  // Builds lists and uses them; allocates. Returns the number of targets that fit.
  size_t set_lists(std::span<const std::vector<CloneTarget>> lists);
  CloneFamilies families() const;  // families whose triggers the program executes
  uint32_t list_size(uint32_t list) const;

  // Adds a group for all targets of the list, beginning with target `start` % size; flushes if the
  // batch is full. Payloads must stay valid until the flush. No effect for an empty list.
  void add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered);
  void flush();
  // Reports to the observer the datagrams sent and refused since the last call.
  void settle();

  uint64_t triggers() const;      // triggers that the kernel accepted
  uint64_t system_calls() const;  // sendmmsg calls

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shredway
