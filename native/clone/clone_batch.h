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
#include "clone/list_batch.h"
#include "net/udp_batch.h"

namespace shredway {

// Number of lists that need no allocation.
inline constexpr size_t kCloneListsMax = 64;

// Error number of a trigger that the kernel accepted, but whose job the program did not run.
inline constexpr int kCloneNotExecuted = ENOLINK;

// `not_cloned`: a trigger was refused or not executed (a firewall, a removed interface or hook).
using CloneObserver = ListObserver;

class CloneBatch final : public ListBatch {
 public:
  // `gso`: whether bursts may be sent as one trigger if the plane supports it.
  CloneBatch(const CloneRegion& region, const CloneHeader& header, bool gso,
             CloneObserver& observer, const SocketCalls& calls = system_socket_calls());
  ~CloneBatch() override;
  CloneBatch(const CloneBatch&) = delete;
  CloneBatch& operator=(const CloneBatch&) = delete;

  // Copies the lists: at most kCloneListsMax.
  void use_lists(const CloneLists& lists) override;
  // Builds lists and uses them; allocates. Returns the number of targets that fit.
  size_t set_lists(std::span<const std::vector<CloneTarget>> lists);
  CloneFamilies families() const override;  // families whose triggers the program executes
  uint32_t list_size(uint32_t list) const;

  // Flushes if the batch is full.
  void add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered) override;
  void flush() override;
  void settle() override;
  void forget_refusals() override {}  // keeps none

  uint64_t triggers() const override;      // triggers that the kernel accepted
  uint64_t system_calls() const override;  // sendmmsg calls

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shredway
