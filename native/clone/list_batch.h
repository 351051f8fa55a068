// List batch: sends payloads to all targets of prepared lists, with a result for each target.
//
// Transmit uses it for targets whose next hop is known. There are two: CloneBatch lets the kernel
// clone one send, XdpBatch (xdp/xdp_batch.h) writes a frame for each target. Both use the same
// lists with complete frame headers.
#pragma once

#include <cstdint>

#include "clone/clone_lists.h"
#include "net/udp_batch.h"

namespace shredway {

class ListObserver {
 public:
  // Datagrams of a target since the last report; recovered ones are counted apart. Called from any
  // function of the batch.
  virtual void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) = 0;
  virtual void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) = 0;
  // `count` targets of `list` from position `from` on (wrapping to the first) did not get the group
  // and never will, because the kernel refused it. Called from add() and flush().
  virtual void not_cloned(uint32_t list, uint32_t from, uint32_t count, const PayloadGroup& group,
                          int error_number) = 0;

 protected:
  ~ListObserver() = default;
};

// Belongs to one worker's thread.
class ListBatch {
 public:
  virtual ~ListBatch() = default;
  // Reports the counts of the old lists, which may already be freed. The new ones must be built for
  // this batch's header and families, and stay valid until the next call.
  virtual void use_lists(const CloneLists& lists) = 0;
  virtual CloneFamilies families() const = 0;  // families that it can send
  // Adds a group for all targets of the list, beginning with target `start` % size. Payloads must
  // stay valid until the flush. No effect for an empty list.
  virtual void add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered) = 0;
  virtual void flush() = 0;
  // Reports to the observer the datagrams sent and refused since the last call.
  virtual void settle() = 0;
  // Tries again what the kernel refused.
  virtual void forget_refusals() = 0;
  virtual uint64_t triggers() const = 0;  // sends that reached several targets
  virtual uint64_t system_calls() const = 0;
};

}  // namespace shredway
