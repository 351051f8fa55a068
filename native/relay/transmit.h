// Transmit: the one way out of a worker, whichever roads its datagrams take.
//
// Told lists of targets, and what each kind of target of a list gets now. A target whose next hop
// is known goes by clone, when there is a clone plane and enough of its like to be worth it;
// everybody else, and whoever a clone trigger did not serve, goes by socket. Each target of a list
// gets each payload once, by one road. Belongs to one worker's thread; no allocation but in
// set_lists().
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clone/clone.h"
#include "net/udp_batch.h"

namespace shredway {

// Targets of one list that get different payloads.
inline constexpr size_t kTransmitKinds = 2;
// Groups that one kind gets at a time: their payloads differ in length.
inline constexpr size_t kTransmitGroups = 2;

// A trigger costs about as much as two datagrams by socket: fewer targets than these are not worth
// it.
inline constexpr size_t kCloneTargetsLeast = 3;

struct TransmitTarget {
  union {
    sockaddr address;
    sockaddr_in ipv4;
    sockaddr_in6 ipv6;
  };
  uint32_t tag;        // whom the counts are told of
  uint8_t kind;        // < kTransmitKinds
  const NextHop* hop;  // nullptr: by socket; read by set_lists() only
  bool is_ipv4() const { return address.sa_family == AF_INET; }
  socklen_t address_bytes() const { return is_ipv4() ? sizeof ipv4 : sizeof ipv6; }
};

// By socket: told at once. By clone: told later, by what the kernel counted.
class TransmitObserver : public SendObserver {
 public:
  virtual void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) = 0;
  virtual void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) = 0;

 protected:
  ~TransmitObserver() = default;
};

struct TransmitOptions {
  int send_ipv4 = -1;
  int send_ipv6 = -1;  // -1: IPv6 targets fail as invalid
  bool gso = true;
  CloneRegion clone{};  // of no targets: everybody by socket
  uint8_t ttl = 64;     // of clones; sockets have their own
  uint8_t dscp = 0;
};

class Transmit final : private CloneObserver {
 public:
  // By kind: what its targets get now. Empty groups (count 0) are passed over.
  using Groups = std::array<std::array<PayloadGroup, kTransmitGroups>, kTransmitKinds>;

  Transmit(const TransmitOptions& options, TransmitObserver& observer,
           const SocketCalls& calls = system_socket_calls());
  ~Transmit();
  Transmit(const Transmit&) = delete;
  Transmit& operator=(const Transmit&) = delete;

  // Replaces all lists, after telling the counts of the old ones. Between flush() and add() only.
  void set_lists(std::span<const std::vector<TransmitTarget>> lists);
  // Adds the groups for all targets of the list, each time another one first, so that nobody is
  // always last. Payloads must stay valid until the flush. `recovered`: counts apart, for clones.
  void add(uint32_t list, const Groups& groups, bool recovered);
  // Hands over everything: clones first, for they are many for little.
  void flush();
  // Tells the observer what was cloned and refused since the last time.
  void settle();

  uint32_t cloned_targets() const { return cloned_targets_; }  // that go by clone now
  uint64_t clone_triggers() const { return clone_ ? clone_->triggers() : 0; }
  // Datagrams that went by socket because a trigger was refused or not obeyed. After one that was
  // not, everything goes by socket: whoever holds triggers back could let an old one through later.
  uint64_t clone_fallbacks() const { return clone_fallbacks_; }
  uint64_t system_calls() const;
  uint64_t gso_fallbacks() const;

 private:
  // Targets by clone, by kind and family: each a list of the clone batch.
  static constexpr size_t kCloneLists = 2 * kTransmitKinds;
  struct List {
    std::vector<TransmitTarget> by_socket;
    std::array<std::vector<TransmitTarget>, kCloneLists> by_clone;
    uint32_t rotation = 0;
  };
  static size_t clone_list_of(const TransmitTarget& target) {
    return target.kind * 2u + (target.is_ipv4() ? 0 : 1);
  }
  void divide(const std::vector<TransmitTarget>& targets, List& list) const;
  void set_clone_lists();
  void close_clones();
  void add_by_clone(uint32_t list, const Groups& groups, bool recovered);
  void add_by_socket(const TransmitTarget& target, const PayloadGroup& group);
  void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) override;
  void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) override;
  void not_cloned(uint32_t clone_list, uint32_t from, uint32_t count, const PayloadGroup& group,
                  int error_number) override;

  TransmitObserver& observer_;
  SendBatch send_ipv4_;
  SendBatch send_ipv6_;
  bool has_ipv4_region_ = false;
  bool has_ipv6_region_ = false;
  std::vector<List> lists_;
  uint32_t cloned_targets_ = 0;
  uint64_t clone_fallbacks_ = 0;
  bool clones_broken_ = false;         // a trigger was not obeyed: no more of them
  std::unique_ptr<CloneBatch> clone_;  // nullptr: no plane
};

}  // namespace shredway
