// Target batch: the messages of one thread to its targets by socket, for both address families.
//
// The worker and each of its sender threads have one. All use the worker's two sockets: every
// datagram has the same source address and port. The kernel lets several threads send on one socket
// at a time: two threads cost 3 % more per datagram on one socket than on two (two busy cores, ifb
// device, Linux 6.18, 2026-11-26).
#pragma once

#include <array>
#include <cstdint>

#include "net/udp_batch.h"
#include "relay/target_lists.h"

namespace shredway {

// Payload groups for one kind at a time; the groups differ in payload length.
inline constexpr size_t kTransmitGroups = 2;
// Payloads for each kind of target. Empty groups (count 0) are skipped.
using TransmitGroups = std::array<std::array<PayloadGroup, kTransmitGroups>, kTransmitKinds>;

struct SendSockets {
  int ipv4 = -1;
  int ipv6 = -1;  // -1: IPv6 targets fail as invalid
  bool gso = true;
};

class TargetBatch {
 public:
  TargetBatch(const SendSockets& sockets, SendObserver& observer, const SocketCalls& calls)
      : ipv4_(sockets.ipv4, sockets.gso, observer, calls),
        ipv6_(sockets.ipv6, sockets.gso, observer, calls) {}

  // The payloads and the target must stay valid until the flush.
  void add(const TransmitTarget& target, const PayloadGroup& group) {
    SendBatch& batch = target.is_ipv4() ? ipv4_ : ipv6_;
    batch.add(group, &target.address, target.address_bytes(), target.tag);
    // Together, so that the family with fewer targets does not wait for the end of a large list.
    if (ipv4_.size() + ipv6_.size() >= kSendBatchMax) flush();
  }
  void add(const TransmitTarget& target, const TransmitGroups& groups) {
    for (const PayloadGroup& group : groups[target.kind])
      if (group.count > 0) add(target, group);
  }
  void flush() {
    (ipv6_first_ ? ipv6_ : ipv4_).flush();
    (ipv6_first_ ? ipv4_ : ipv6_).flush();
  }
  // The family to flush first. It alternates with the rotation, so that none is always last.
  void alternate(uint32_t rotation) { ipv6_first_ = rotation % 2 == 1; }

  void forget_refusals() {
    ipv4_.forget_refusals();
    ipv6_.forget_refusals();
  }
  uint64_t system_calls() const { return ipv4_.system_calls() + ipv6_.system_calls(); }
  uint64_t gso_fallbacks() const { return ipv4_.gso_fallbacks() + ipv6_.gso_fallbacks(); }
  void lock_memory(MemoryLock& lock) const {
    ipv4_.lock_memory(lock);
    ipv6_.lock_memory(lock);
  }

 private:
  SendBatch ipv4_, ipv6_;
  bool ipv6_first_ = false;
};

}  // namespace shredway
