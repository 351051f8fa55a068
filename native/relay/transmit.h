// Transmit: sends all datagrams of a worker, by socket, by clone or by AF_XDP.
//
// The worker sets the target lists (target_lists.h) and adds the payloads for each kind of target.
// Targets of the clone lists are cloned to, or get whole frames by AF_XDP. All others, and those
// for which the kernel refused that, get datagrams of a socket, with the sender threads if these
// exist and there is enough to send. Each target of a list gets each payload once, by one send
// path. Everything of a list is sent before anything of the next list, with one exception: a target
// whose clone the kernel refused may get its datagram after the clones of the next list. Belongs to
// one worker's thread; no allocation after construction and start_senders().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "clone/clone.h"
#include "relay/sender_threads.h"
#include "relay/source_table.h"
#include "relay/target_batch.h"
#include "relay/target_lists.h"
#include "xdp/xdp.h"

namespace shredway {

// Lists of one worker.
inline constexpr size_t kTransmitListsMax = kTiersMax;
static_assert(kTransmitListsMax * kCloneListsPerList <= kCloneListsMax);

// Sends by socket are reported at once. Clones and frames are reported later.
class TransmitObserver : public SendObserver {
 public:
  virtual void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) = 0;
  virtual void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) = 0;

 protected:
  ~TransmitObserver() = default;
};

struct TransmitOptions {
  SendSockets sockets{};
  CloneRegion clone{};            // without targets: no clones
  std::vector<XdpSocket*> xdp{};  // empty: no AF_XDP; only without clones
  uint8_t ttl = 64;               // for clones and frames; sockets have their own
  uint8_t dscp = 0;
};

class Transmit final : private ListObserver {
 public:
  using Groups = TransmitGroups;

  static constexpr uint64_t kRetryAfter_ns = 10'000'000'000;

  Transmit(const TransmitOptions& options, TransmitObserver& observer,
           const SocketCalls& calls = system_socket_calls());
  ~Transmit();
  Transmit(const Transmit&) = delete;
  Transmit& operator=(const Transmit&) = delete;

  // Starts threads that help to send by socket. Precondition: no clones, no AF_XDP. Returns an
  // error text, empty on success. The observer is then called by these threads too, inside add().
  std::string start_senders(const SenderThreadsOptions& options);

  // Rules that lists for this worker must be built with.
  TargetRules target_rules(uint32_t tier_count) const;
  // Replaces all lists after reporting the counts of the old ones. `lists` must be built for this
  // worker and stay valid until the next call; the old lists may already be freed. At most
  // kTransmitListsMax lists. Only between flush() and add().
  void set_lists(const TargetLists& lists);
  // Adds the groups for all targets of the list. The start rotates, so that no target is always
  // last. Sends what was added before, unless both leave by the same single send path. Payloads
  // must stay valid until the flush. `recovered`: clones are counted apart. With sender threads,
  // all targets of a large list have their datagrams when this returns.
  void add(uint32_t list, const Groups& groups, bool recovered);
  // Sends everything. Clones of a list go first, because they reach many targets at little cost.
  void flush();
  // Reports to the observer the clones and refusals since the last call. Every kRetryAfter_ns it
  // also tries again what the kernel refused. Call it regularly.
  void settle(uint64_t now_ns);

  // The memory of sends by socket.
  void lock_memory(MemoryLock& lock) const {
    by_socket_.lock_memory(lock);
    if (senders_) senders_->lock_memory(lock);
  }
  uint32_t cloned_targets() const;  // targets sent to by clone or AF_XDP now
  uint64_t clone_triggers() const { return clone_ ? clone_->triggers() : 0; }
  // Datagrams that went by socket because a trigger was refused or not executed, or because the
  // interface of a frame was down. After a refusal,
  // the targets of that address family go by socket until the next lists or the next attempt. After
  // a trigger that was accepted but not executed, everything goes by socket for good: a program
  // that holds triggers back could release an old one later.
  uint64_t clone_fallbacks() const { return clone_fallbacks_; }
  // Times that the kernel refused the triggers of a family.
  uint64_t clone_refusals() const { return clone_refusals_; }
  uint64_t system_calls() const;
  uint64_t gso_fallbacks() const;
  // Sends that the sender threads took part in, threads that were late for one, and their processor
  // time. 0 without such threads.
  uint64_t divided_sends() const { return senders_ ? senders_->sends() : 0; }
  uint64_t late_senders() const { return senders_ ? senders_->late() : 0; }
  uint64_t sender_cpu_ns() const { return senders_ ? senders_->cpu_ns() : 0; }

 private:
  // Clones and sockets of each address family, as bits. Each of these sends in the order of add().
  using SendPaths = uint32_t;
  static constexpr SendPaths clone_path(size_t family) { return 1u << family; }
  static constexpr SendPaths socket_path(size_t family) { return 4u << family; }

  SendPaths paths_of(uint32_t list, const Groups& groups) const;
  bool begin_list(uint32_t list, const Groups& groups);
  std::span<const TransmitTarget> socket_targets(uint32_t list) const;
  void close_clones();
  void add_by_clone(uint32_t list, const Groups& groups, uint32_t rotation, bool recovered);
  void add_all_by_socket(std::span<const TransmitTarget> targets,
                         const std::array<PayloadGroup, kTransmitGroups>& groups);
  bool is_worth_dividing(uint32_t list, const Groups& groups) const;
  void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) override;
  void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) override;
  void not_cloned(uint32_t clone_list, uint32_t from, uint32_t count, const PayloadGroup& group,
                  int error_number) override;

  TransmitObserver& observer_;
  const SendSockets sockets_;
  const SocketCalls& calls_;
  TargetBatch by_socket_;
  CloneHeader header_;
  std::vector<uint32_t> interfaces_;  // of AF_XDP
  CloneFamilies families_;
  const TargetLists* lists_ = nullptr;
  // The second number is for recovered shreds. Both rotate evenly, however such sends alternate.
  std::array<std::array<uint32_t, 2>, kTransmitListsMax> rotations_{};
  SendPaths queued_ = 0;                     // of the lists that were added since the last flush
  std::array<uint32_t, 2> clone_targets_{};  // of the clone lists, by family
  std::array<bool, 2> refused_{};            // families whose triggers the kernel refused
  uint64_t retried_ns_ = 0;
  uint64_t clone_fallbacks_ = 0;
  uint64_t clone_refusals_ = 0;
  bool clones_broken_ = false;              // a trigger was not executed: send no more of them
  bool clones_closed_ = false;              // and no lists are in use
  std::unique_ptr<ListBatch> clone_;        // clones or frames; nullptr: neither
  std::unique_ptr<SenderThreads> senders_;  // nullptr: none
};

}  // namespace shredway
