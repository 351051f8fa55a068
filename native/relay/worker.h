// Worker: the packet path, from the receive sockets to every destination.
//
// One thread that shares nothing: its sockets, memory, counters and caches are its own; the tables
// are immutable. Steps for each batch: receive, examine, authenticate, record, fan out, send,
// count; then the same for the shreds that need a signature check (worker_checks.cc). At the end
// the deshredder gets a copy of every new shred. The thread allocates nothing, also when tables are
// swapped (libsodium verifies without allocations; OpenSSL makes its own). It waits for no lock,
// writes no log, throws no exception, and reads the clock once for each batch that it sent, and
// twice for each that it received by AF_XDP. Every packet
// gets exactly one verdict and is counted once.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/challenge_echo.h"
#include "net/multicast_socket.h"
#include "net/receive_filter.h"
#include "net/socket_calls.h"
#include "net/thread.h"
#include "net/udp_batch.h"
#include "net/udp_socket.h"
#include "net/waiter.h"
#include "relay/arrivals.h"
#include "relay/counters.h"
#include "relay/deshred_thread.h"
#include "relay/event_ring.h"
#include "relay/pending_shreds.h"
#include "relay/recent_shreds.h"
#include "relay/slot_window.h"
#include "relay/tables.h"
#include "relay/trace_ring.h"
#include "relay/transmit.h"
#include "shred/leader_auth.h"
#include "system/memory_lock.h"
#include "system/named_enum.h"

namespace shredway {

// How a worker waits for packets.
#define SHREDWAY_WAIT_MODES(X)            \
  X(block, "sleep in the kernel")         \
  X(spin, "poll for a while, then sleep") \
  X(busy, "never sleep: for isolated cores")
SHREDWAY_NAMED_ENUM(WaitMode, uint8_t, kWaitModeCount, wait_mode_name, SHREDWAY_WAIT_MODES)

// Slot range that the control plane's clock allows. It expires, so that a stalled control plane
// cannot exclude current slots. The bounds are valid separately, so workers read them without
// ordering. The expiry time is released and acquired after them: a worker that gets a new time must
// not apply the bounds that had expired before it.
struct SlotBounds {
  static constexpr int64_t kHoldMax_ns = 5'000'000'000;
  std::atomic<uint64_t> floor{0};  // never expires: slots before it are behind
  std::atomic<uint64_t> lowest{0};
  std::atomic<uint64_t> highest{~uint64_t{0}};
  // Evidence of several leaders overrules a range that is not confirmed.
  std::atomic<bool> confirmed{false};
  std::atomic<uint64_t> until_ns{0};  // CLOCK_REALTIME

  // False if the range has expired, or if it ends so late that the clock must have been set back.
  bool hold_at(uint64_t now_ns) const {
    const auto left_ns = static_cast<int64_t>(until_ns.load(std::memory_order_acquire) - now_ns);
    return left_ns > 0 && left_ns <= kHoldMax_ns;
  }
};

struct WorkerOptions {
  uint32_t number = 0;
  uint32_t worker_count = 1;  // of the relay; the kernel steers each FEC set to one of them
  bool authenticate = true;
  uint16_t shred_version = 0;  // 0: any
  uint32_t tier_count = 1;
  WaitMode wait = WaitMode::block;
  uint32_t spin_us = 150;
  int cpu = -1;                 // -1: not pinned
  uint32_t sender_threads = 0;  // only without `clone` and `xdp`; up to kSenderThreadsMax
  uint32_t failed_checks_per_second = 1000;  // of single shreds of a failing source, at least 1
  bool gso = true;
  uint8_t ttl = 64;                       // or IPv6 hop limit
  uint8_t dscp = 0;                       // 0 .. 63
  CloneRegion clone{};                    // without targets: no clones
  std::vector<XdpSocket*> xdp{};          // empty: does not send by AF_XDP
  std::vector<XdpSocket*> xdp_receive{};  // in addition to the receive sockets
  bool prefault = true;
  bool filtered = false;                       // the receive sockets have the receive filter
  bool answer_challenges = false;              // for known sources only
  bool keep_retransmitter_signatures = false;  // false: zeros, as the leader sends them
  const SlotBounds* slot_bounds = nullptr;     // nullptr: every slot is allowed
  RecoveredRing* recovered = nullptr;  // shreds that the deshredder recovered; nullptr: none
  ShredRing* deshred = nullptr;        // gets a copy of every new shred; nullptr: none
  // Bits of the tiers whose streams have subscribers: a shred that is new for one of them goes to
  // `deshred` too. nullptr: none.
  const std::atomic<uint8_t>* stream_tiers = nullptr;
  ArrivalRings* arrivals = nullptr;  // records every arrival of a shred; nullptr: none
  const SocketCalls* calls = &system_socket_calls();  // the network and the clock
};

struct WorkerSockets {
  struct Receive {
    UdpSocket socket;
    uint16_t port;
    bool multicast = false;  // the destination group of a packet identifies its source
  };
  std::vector<Receive> receive;
  UdpSocket send_ipv4;
  UdpSocket send_ipv6;  // may be invalid: IPv6 destinations then fail as invalid
};

class Worker final : private TransmitObserver {
 public:
  // Both return nullptr and fill `error` (empty before) if memory, the wake-up descriptor or the
  // CPU is not available. Without a thread, the caller calls take_turn() and rest().
  static std::unique_ptr<Worker> start(const WorkerOptions& options, WorkerSockets sockets,
                                       Tables& tables, std::string& error);
  static std::unique_ptr<Worker> create(const WorkerOptions& options, WorkerSockets sockets,
                                        Tables& tables, std::string& error);
  ~Worker();  // stops

  struct Turn {
    bool received_any = false;
    bool more_waiting = false;  // a socket had at least a full batch
  };
  // One batch by AF_XDP and of each receive socket, then recovered shreds. Worker's thread.
  Turn take_turn();
  // The tasks of an idle worker, which repeats them regularly. Worker's thread.
  void rest() { housekeeping(now_ns()); }

  // Adds what the packet path of this worker reads and writes, except for the tables, which the
  // control plane replaces. Call it after start(); `lock` must end before the worker.
  void lock_memory(MemoryLock& lock) const;

  void stop();  // any thread; returns when the thread has ended
  const WorkerCounters& counters() const { return *counters_; }
  // Joins or leaves a group with every socket of this port and address family. Any thread. Returns
  // an error text, empty on success.
  std::string change_membership(uint16_t port, const GroupMembership& membership, bool join) const;
  // Packets that the kernel dropped at each receive socket until now. Any thread, until stop().
  std::vector<uint64_t> receive_drops_by_socket() const;
  EventRing& events() { return events_; }
  TraceRing& traces() { return traces_; }
  TableReader& table_reader() { return table_reader_; }

 private:
  // Common properties of the packets of a batch. By AF_XDP, each packet has its own port.
  struct Origin {
    int fd;
    uint16_t port;
    bool multicast;
  };
  // A packet that passed the static rules and may be new. Its Merkle root is not computed yet.
  struct Candidate {
    uint8_t* packet;
    uint64_t received_ns;
    const VerifyingKey* leader;
    Source source;
    Shred shred;
  };
  // A shred that needs a signature check.
  struct Unverified {
    Candidate candidate;
    Root root;
    uint16_t group;  // number
    bool decided;    // has its verdict
  };
  // Unverified shreds of the batch that one check decides: same root and signature.
  struct CheckGroup {
    uint16_t number = 0;
    uint16_t first = 0;  // index of the first member
    uint16_t members = 0;
    bool failing = true;     // all of its sources are failing
    bool confirmed = false;  // another shred of the FEC set has the same root and signature
    uint32_t rank = 0;       // the lowest is checked first
  };
  // Shreds of one type to send: the iovecs that all destinations of a tier share.
  struct Payloads {
    iovec iovecs[kReceiveBatchMax];
    uint32_t count;
    void add(const uint8_t* packet, size_t bytes) {
      iovecs[count++] = {const_cast<uint8_t*>(packet), bytes};
    }
  };
  // Payloads for one kind of destination, by tier and type.
  using PayloadsByTier = std::array<std::array<Payloads, 2>, kTiersMax>;
  struct SendQueue {
    PayloadsByTier plain;
    // For destinations that want recovered shreds: without the shreds they got as recovered copies.
    PayloadsByTier wants_recovered;
    std::array<uint64_t, kReceiveBatchMax> received_ns;
    uint32_t shreds;
  };
  // New shreds of the batch, for the deshredder.
  struct DeshredInput {
    struct Item {
      const uint8_t* packet;
      uint64_t received_ns;
      uint16_t bytes;
      bool is_new;
      bool is_forwardable;
      TierMask tiers;
    };
    std::array<Item, kReceiveBatchMax> items;
    size_t count = 0;
  };

  Worker(const WorkerOptions& options, WorkerSockets sockets, Tables& tables, std::string& error);
  std::string start_senders();
  void run();
  bool receive_by_xdp(Turn& turn);
  void handle_batch(std::span<const ReceivedPacket> packets, const Origin& from);
  bool examine(const ReceivedPacket& packet, const Origin& from);
  const Source* source_of(const ReceivedPacket& packet, const Origin& from) const;
  void count_misdirected(const Shred& shred);
  bool refuse(const ReceivedPacket& packet, const Origin& from, uint16_t source, Verdict verdict);
  void settle_candidates();
  void record_arrival(const Candidate& candidate) {
    options_.arrivals->record(candidate.shred, candidate.packet, candidate.source.id,
                              candidate.received_ns);
  }
  SlotWindow::Place place_of(uint64_t slot, uint64_t now_ns);
  void record_ahead(const Candidate& candidate);
  void report_anchor(uint64_t now_ns);
  std::optional<Verdict> known_verdict(const Candidate& candidate, const Root& root);
  void settle(const Candidate& candidate, const Root& root, Verdict verdict);
  void check_unverified();
  void group_unverified();
  static bool same_check(const Unverified& a, const Unverified& b);
  void check_group(const CheckGroup& group);
  bool may_check(const CheckGroup& group);
  void check_signature(const Unverified& one);
  bool verify(const VerifyingKey& leader, const uint8_t* signature, const Root& root);
  void keep_pending(const Unverified& one);
  void release_pending(const Unverified& verified);
  void expire_pending(uint64_t now_ns);
  void record(const Candidate& candidate, const Root& root);
  void record_new(const Candidate& candidate);
  void queue_for_send(const Candidate& candidate, const RecentShreds::Outcome& outcome);
  void queue_recovered();
  void send_recovered(const uint8_t* packet);
  bool record_duplicate(const Candidate& candidate);
  void record_lead(const Candidate& candidate);
  void fan_out();
  bool send_queued();
  void queue_for_deshredder(const Candidate& candidate, const RecentShreds::Outcome& outcome);
  void feed_deshredder();
  bool send_tier(uint32_t tier);
  void acquire_tables();
  // Returns true, so that a caller can return the result: the packet has its verdict.
  bool count(uint16_t source, Verdict verdict) {
    counters_->sources[source].verdicts[static_cast<size_t>(verdict)].add(1);
    return true;
  }
  uint64_t now_ns() const;
  void wait();
  void housekeeping(uint64_t now_ns);
  void count_receive_drops(uint64_t now_ns);
  void read_send_errors(int fd, uint64_t now_ns);
  void emit(const Event& event);
  void sent(uint32_t tag, uint32_t datagrams) override;
  void failed(uint32_t tag, uint32_t datagrams, SendFailure failure) override;
  void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) override;
  void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) override;

  struct FailedChecks {
    uint64_t second = 0;
    uint32_t count = 0;           // in this second
    uint32_t previous = 0;        // in the second before
    uint64_t next_single_ns = 0;  // earliest check of a root that one shred confirms
  };
  FailedChecks& failed_checks_of(uint16_t source, uint64_t now_ns);
  bool is_failing(uint16_t source, uint64_t now_ns);

  const WorkerOptions options_;
  WorkerSockets sockets_;
  TableReader table_reader_;
  const TableSet* tables_ = nullptr;
  const TargetLists* targets_ = nullptr;  // in use
  std::unique_ptr<WorkerCounters> counters_;
  EventRing events_;
  TraceRing traces_;
  std::unique_ptr<RecentShreds> recent_;
  SlotWindow window_;
  bool overrules_bounds_ = false;  // leaders moved the window beyond the slot bounds
  LeaderAuth leader_auth_;
  ChallengeEcho challenge_echo_;
  ReceiveBatch received_;
  XdpReceiver by_xdp_;
  uint32_t turns_without_sockets_ = 0;
  Transmit transmit_;
  std::array<Candidate, kMerkleLanes> candidates_;
  size_t candidate_count_ = 0;
  std::array<ReceivedPacket, kReceiveBatchMax> postponed_;
  size_t postponed_count_ = 0;
  std::unique_ptr<SendQueue> send_queue_;
  DeshredInput deshred_input_;
  std::array<Unverified, kReceiveBatchMax> unverified_;
  size_t unverified_count_ = 0;
  std::array<CheckGroup, kReceiveBatchMax> check_groups_;
  size_t check_group_count_ = 0;
  uint32_t check_turn_ = 0;
  uint32_t failed_in_batch_ = 0;
  uint32_t confirmed_checks_in_batch_ = 0;
  PendingShreds pending_;
  std::array<FailedChecks, kSourcesMax> failed_checks_;
  ReceiveDropCounter receive_drop_counter_;
  uint64_t last_housekeeping_ns_ = 0;
  uint64_t last_drop_count_ns_ = 0;
  uint32_t empty_polls_ = 0;
  bool sends_recovered_ = false;  // true: count as recovered copies
  Waiter waiter_;
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace shredway
