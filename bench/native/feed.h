// Feed: packets for a worker without sockets, and the costs of the worker's thread meanwhile.
//
// The bench program replaces recvmmsg and malloc. Normally they call the system's functions. While
// a list is played, the fed thread's recvmmsg is answered from memory (copied into its buffers, as
// the kernel does), so that only the relay's own work is measured. The same feed into a loop that
// only receives is the baseline to subtract (it includes the clock readings).
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
  // Processor time of the fed thread, from the first packet to the first empty poll, without the
  // copying that replaces the kernel's.
  uint64_t cpu_ns;
  // Allocations of the thread in the same time; see counts_allocations()
  uint64_t allocations;
  bool finished;  // false: the thread did not receive all packets within five seconds
};

// Makes `thread` the fed thread: from now on it receives only from lists. Only one thread at a
// time.
void adopt_fed_thread(pid_t thread);
// Plays the list to the adopted thread, `batch` packets per receive call (1..64), and waits for the
// end.
FeedResult play(const std::vector<FedPacket>& packets, size_t batch);
// True if the C library allows allocations to be counted.
bool counts_allocations();

// The baseline: only ReceiveBatch.
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
