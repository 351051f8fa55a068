// Sender threads: they help a worker to send one batch to many targets by socket.
//
// A datagram costs the kernel about two microseconds, so the last of several hundred destinations
// waits long for a single thread. The worker divides its targets into one share for each thread,
// wakes the threads, and sends its own share. Every thread that has finished its share takes
// targets of the others. send_to_all() returns when each target has its datagrams. Therefore:
//   - Payloads, tables and counters need no copy and no lock: the threads use them only inside
//     send_to_all(), each target is one thread's at a time, and the worker waits for all.
//   - A target gets the datagrams of one send_to_all() before those of the next.
//   - A thread that has not begun when the worker has finished is not waited for: its share has
//     been sent by the others, and it is counted as late. Nothing queues up, nothing is dropped.
// No allocation and no lock after start().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/thread.h"
#include "relay/target_batch.h"

namespace shredway {

inline constexpr uint32_t kSenderThreadsMax = 15;  // per worker

struct SenderThreadsOptions {
  uint32_t count = 1;   // 1..kSenderThreadsMax
  uint32_t worker = 0;  // for the names of the threads
  // Time that a thread polls for the next batch before it sleeps. Waking a thread that sleeps takes
  // longer, and the worker makes a system call for it.
  uint32_t poll_us = 0;
};

class SenderThreads {
 public:
  // Messages of one send_to_all() from which on dividing it pays, with some reserve. Time of single
  // shreds to n destinations, with one thread that sleeps ÷ by the worker alone, two busy cores,
  // medians of seven interleaved rounds (Linux 6.18, 2026-11-26): 16: 1.18, 32: 1.03, 48: 0.93, 64:
  // 0.97, 100: 0.94, 200: 0.77. With a thread that polls: 0.73, 0.67, 0.69, 0.64, 0.64, 0.64.
  static constexpr uint64_t kMessagesLeast = 64;

  // Returns nullptr and fills `error` if the system refuses a thread. The observer is called by all
  // threads, but only inside send_to_all(), and never by two threads for the same tag.
  static std::unique_ptr<SenderThreads> start(const SenderThreadsOptions& options,
                                              const SendSockets& sockets, SendObserver& observer,
                                              const SocketCalls& calls, std::string& error);
  ~SenderThreads();  // stops; not inside send_to_all()
  SenderThreads(const SenderThreads&) = delete;
  SenderThreads& operator=(const SenderThreads&) = delete;

  // Sends the groups to all targets and returns when that is done. `own` is the worker's batch,
  // which must be empty. `rotation`: increases with every call, so that no target is always last.
  void send_to_all(std::span<const TransmitTarget> targets, const TransmitGroups& groups,
                   uint32_t rotation, TargetBatch& own);

  // The worker's thread, outside send_to_all():
  void forget_refusals();
  uint64_t sends() const { return sends_; }  // calls of send_to_all()
  // Threads that had not begun when everything was sent, summed over all calls.
  uint64_t late() const { return late_; }
  uint64_t cpu_ns() const;  // processor time of all threads
  uint64_t system_calls() const;
  uint64_t gso_fallbacks() const;
  void lock_memory(MemoryLock& lock) const;

 private:
  // Targets [first, first + count) of the send. `claimed` of them are taken, in the order of the
  // rotation; more than `count`: all.
  struct alignas(64) Share {
    std::atomic<uint32_t> claimed{0};
    uint32_t first = 0;
    uint32_t count = 0;
  };
  enum class State : uint32_t { polling, asleep, posted, sending, stopping };
  struct Sender;

  SenderThreads(const SenderThreadsOptions& options, const SendSockets& sockets,
                SendObserver& observer, const SocketCalls& calls);
  void divide(size_t target_count);
  void send_shares(size_t own_share, TargetBatch& batch);
  void send_share(Share& share, TargetBatch& batch);

  // The send in progress. Threads read it between State::posted and the end of their work.
  std::span<const TransmitTarget> targets_;
  const TransmitGroups* groups_ = nullptr;
  uint32_t rotation_ = 0;
  std::vector<Share> shares_;  // the worker's, then one for each thread

  const uint32_t poll_us_;
  uint64_t sends_ = 0;
  uint64_t late_ = 0;
  std::vector<std::unique_ptr<Sender>> senders_;
};

}  // namespace shredway
