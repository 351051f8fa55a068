// Feed: packets for a worker without sockets, and what its thread did meanwhile.
//
// The bench program has its own recvmmsg and malloc. Normally they pass everything on to the
// system; while a list is played, the fed thread's recvmmsg is answered from memory (copied into
// its buffers, as the kernel does), so that nothing but the relay's own work is left to measure.
// The same feed into a loop that only receives is the baseline to subtract (it holds the clock
// readings, too).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "net/udp_batch.h"

namespace shredway::bench {

struct FedPacket {
  const uint8_t* bytes;
  uint32_t length;
  uint32_t sender;  // IPv4 address, host order
};

struct FeedResult {
  uint64_t cpu_ns;  // of the fed thread, from the first packet to the first empty look, without
                    // the copying that stands for the kernel
  uint64_t allocations;  // that the thread made in the same time; see counts_allocations()
  bool finished;         // false: the thread did not take them all within five seconds
};

// Makes `thread` a fed one: from now on it receives from lists only. One at a time is fed.
void adopt_fed_thread(pid_t thread);
// Plays the list to the adopted thread, `batch` packets for each receive call (1..64), and waits
// for the end.
FeedResult play(const std::vector<FedPacket>& packets, size_t batch);
// True where the C library allows allocations to be counted.
bool counts_allocations();

// The baseline: ReceiveBatch and nothing else.
class FedReceiver {
 public:
  explicit FedReceiver(int cpu);
  ~FedReceiver();
  pid_t thread() const { return thread_number_; }

 private:
  std::atomic<bool> stopping_{false};
  std::atomic<pid_t> thread_number_{0};
  std::thread thread_;
};

}  // namespace shredway::bench
