// Worker: the path of a packet, from a receive socket to every destination.
//
// One thread, share-nothing: its sockets, memory, counters and caches are its own; the tables are
// immutable. Per batch: receive, check, authenticate, record, fan out, send, count; then, behind
// the path of the packets, a copy of what was new for the deshredder. The thread allocates nothing,
// table swaps included (libsodium verifies without, OpenSSL makes its own); it takes no lock,
// writes no log, throws no exception, and one clock reading for a batch that sent something. Every
// packet ends in exactly one verdict, counted once.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "net/challenge_echo.h"
#include "net/thread.h"
#include "net/udp_batch.h"
#include "net/udp_socket.h"
#include "net/waiter.h"
#include "relay/arrivals.h"
#include "relay/counters.h"
#include "relay/deshred_thread.h"
#include "relay/event_ring.h"
#include "relay/recent_shreds.h"
#include "relay/slot_window.h"
#include "relay/tables.h"
#include "relay/transmit.h"
#include "shred/leader_auth.h"
#include "system/named_enum.h"

namespace shredway {

// How a worker waits for packets.
#define SHREDWAY_WAIT_MODES(X)            \
  X(block, "sleep in the kernel")         \
  X(spin, "poll for a while, then sleep") \
  X(busy, "never sleep: for isolated cores")
SHREDWAY_NAMED_ENUM(WaitMode, uint8_t, kWaitModeCount, wait_mode_name, SHREDWAY_WAIT_MODES)

// What the control plane's clock says of the present slot, for a while: a control plane that stands
// still must not shut the present out. Each number by itself is right at any time, so workers read
// them without order.
struct SlotBounds {
  static constexpr int64_t kHoldMax_ns = 5'000'000'000;
  std::atomic<uint64_t> lowest{0};
  std::atomic<uint64_t> highest{~uint64_t{0}};
  std::atomic<uint64_t> until_ns{0};  // CLOCK_REALTIME

  // Not when their time is over, nor when it lies so far ahead that the clock was set back.
  bool hold_at(uint64_t now_ns) const {
    const auto left_ns = static_cast<int64_t>(until_ns.load(std::memory_order_relaxed) - now_ns);
    return left_ns > 0 && left_ns <= kHoldMax_ns;
  }
};

struct WorkerOptions {
  uint32_t number = 0;
  bool authenticate = true;
  uint16_t shred_version = 0;  // 0: any
  uint32_t tier_count = 1;
  WaitMode wait = WaitMode::block;
  uint32_t spin_us = 150;
  int cpu = -1;                              // -1: not pinned
  uint32_t failed_checks_per_second = 1000;  // per source, while packets wait
  bool gso = true;
  uint8_t ttl = 64;     // or hop limit
  uint8_t dscp = 0;     // 0 .. 63
  CloneRegion clone{};  // of no targets: everybody by socket
  bool prefault = true;
  bool answer_challenges = false;           // those of known sources only
  const SlotBounds* slot_bounds = nullptr;  // nullptr: every slot may be now
  RecoveredRing* recovered = nullptr;       // brings back what was recovered; nullptr: nothing is
  ShredRing* deshred = nullptr;             // takes a copy of every new shred; nullptr: nobody does
  ArrivalRings* arrivals = nullptr;         // takes every sight of a shred; nullptr: nobody does
};

struct WorkerSockets {
  struct Receive {
    UdpSocket socket;
    uint16_t port;
  };
  std::vector<Receive> receive;
  UdpSocket send_ipv4;
  UdpSocket send_ipv6;  // may be invalid: then IPv6 destinations fail as invalid
};

class Worker final : private TransmitObserver {
 public:
  // Returns nullptr and fills `error` (empty before) when memory, a wake-up descriptor or the CPU
  // cannot be had.
  static std::unique_ptr<Worker> start(const WorkerOptions& options, WorkerSockets sockets,
                                       Tables& tables, std::string& error);
  ~Worker();  // stops

  void stop();  // any thread; returns when the thread has ended
  const WorkerCounters& counters() const { return *counters_; }
  // What the kernel dropped at each receive socket, as of now. Any thread, until stop().
  std::vector<uint64_t> receive_drops_by_socket() const;
  EventRing& events() { return events_; }
  TableReader& table_reader() { return table_reader_; }

 private:
  // A packet that passed the static rules and may be new; waits for its Merkle root.
  struct Candidate {
    const uint8_t* packet;
    uint64_t received_ns;
    const VerifyingKey* leader;
    Source source;
    Shred shred;
  };
  // Shreds of one type to send, the iovecs that all destinations of a tier share.
  struct Payloads {
    iovec iovecs[kReceiveBatchMax];
    uint32_t count;
    void add(const uint8_t* packet, size_t bytes) {
      iovecs[count++] = {const_cast<uint8_t*>(packet), bytes};
    }
  };
  // What one kind of destination gets, by tier and type.
  using Audience = std::array<std::array<Payloads, 2>, kTiersMax>;
  struct Fresh {
    Audience plain;
    Audience
        wants_recovered;  // destinations that want recovered shreds: what they have not got yet
    std::array<uint64_t, kReceiveBatchMax> received_ns;
    uint32_t shreds;
  };
  // New shreds of the batch, for the deshredder.
  struct Handing {
    struct Item {
      const uint8_t* packet;
      uint64_t received_ns;
      uint16_t bytes;
    };
    std::array<Item, kReceiveBatchMax> items;
    size_t count = 0;
  };

  Worker(const WorkerOptions& options, WorkerSockets sockets, Tables& tables, std::string& error);
  void run();
  void handle_batch(const WorkerSockets::Receive& from);
  bool examine(const ReceivedPacket& packet, const WorkerSockets::Receive& from);
  bool refuse(const ReceivedPacket& packet, const WorkerSockets::Receive& from, uint16_t source,
              Verdict verdict);
  void settle_candidates();
  void note_arrival(const Candidate& candidate) {
    options_.arrivals->note(candidate.shred, candidate.packet, candidate.source.id,
                            candidate.received_ns);
  }
  SlotWindow::Place place_of(uint64_t slot, uint64_t now_ns) const;
  Verdict authenticate(const Candidate& candidate, const Root& root);
  bool may_check_signature(uint16_t source, uint64_t now_ns);
  void record(const Candidate& candidate, const Root& root);
  void queue_for_send(const Candidate& candidate, const RecentShreds::Outcome& outcome);
  void queue_recovered();
  void send_recovered(const uint8_t* packet);
  bool note_duplicate(const Candidate& candidate);
  void note_lead(const Candidate& candidate);
  void fan_out();
  bool send_fresh();
  void feed_deshredder();
  bool send_tier(uint32_t tier);
  void take_tables();
  // True, for those who return with it: the packet has its verdict.
  bool count(uint16_t source, Verdict verdict) {
    counters_->sources[source].verdicts[static_cast<size_t>(verdict)].add(1);
    return true;
  }
  void wait();
  void housekeeping(uint64_t now_ns);
  void read_send_errors(int fd, uint64_t now_ns);
  void emit(const Event& event);
  void sent(uint32_t tag, uint32_t datagrams) override;
  void failed(uint32_t tag, uint32_t datagrams, SendFailure failure) override;
  void cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) override;
  void clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) override;

  struct FailedChecks {
    uint64_t second = 0;
    uint32_t count = 0;
  };

  const WorkerOptions options_;
  WorkerSockets sockets_;
  TableReader table_reader_;
  const TableSet* tables_ = nullptr;
  const TargetLists* targets_ = nullptr;  // in use
  std::unique_ptr<WorkerCounters> counters_;
  EventRing events_;
  std::unique_ptr<RecentShreds> recent_;
  SlotWindow window_;
  LeaderAuth leader_auth_;
  ChallengeEcho challenge_echo_;
  ReceiveBatch received_;
  Transmit transmit_;
  std::array<Candidate, kMerkleLanes> candidates_;
  size_t candidate_count_ = 0;
  std::array<ReceivedPacket, kReceiveBatchMax> postponed_;
  size_t postponed_count_ = 0;
  std::unique_ptr<Fresh> fresh_;
  Handing handing_;
  std::array<FailedChecks, kSourcesMax> failed_checks_;
  uint64_t last_housekeeping_ns_ = 0;
  uint32_t empty_looks_ = 0;
  bool sends_recovered_ = false;  // what is being sent now counts apart
  Waiter waiter_;
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace shredway
