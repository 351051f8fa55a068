// Transmit: the one way out of a worker, whichever roads its datagrams take.
//
// Told lists of targets (target_lists.h), and what each kind of target of a list gets now. Targets
// of the clone lists are cloned to; the others, and those that a clone trigger did not serve, are
// sent to by socket. Each target of a list gets each payload once, by one road. Belongs to one
// worker's thread; no allocation after construction.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "clone/clone.h"
#include "net/udp_batch.h"
#include "relay/source_table.h"
#include "relay/target_lists.h"

namespace shredway {

// Groups that one kind gets at a time: their payloads differ in length.
inline constexpr size_t kTransmitGroups = 2;

// Lists of one worker.
inline constexpr size_t kTransmitListsMax = kTiersMax;
static_assert(kTransmitListsMax * kCloneListsPerList <= kCloneListsMax);

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

  // What lists for this worker must be built for.
  TargetRules target_rules(uint32_t tier_count) const;
  // Replaces all lists, after telling the counts of the old ones. `lists` must be built for this
  // worker and stay valid until the next call; the old ones may be gone already. At most
  // kTransmitListsMax lists. Between flush() and add() only.
  void set_lists(const TargetLists& lists);
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
  std::span<const TransmitTarget> socket_targets(uint32_t list) const;
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
  CloneHead head_;
  CloneFamilies families_;
  const TargetLists* lists_ = nullptr;
  std::array<uint32_t, kTransmitListsMax> rotations_{};
  uint32_t cloned_targets_ = 0;
  uint64_t clone_fallbacks_ = 0;
  bool clones_broken_ = false;         // a trigger was not obeyed: no more of them
  std::unique_ptr<CloneBatch> clone_;  // nullptr: no plane
};

}  // namespace shredway
