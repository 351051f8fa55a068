// Minimal forwarder: the least code that forwards UDP packets to several destinations.
//
// The baseline for latency and for the whole relay's cost: recvmmsg, then sendmmsg with one shared
// payload, in plain C style. It checks, stores and counts nothing, so no relay on sockets can be
// much faster.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace shredway::bench {

class MinimalForwarder {
 public:
  // Listens on a loopback port that the kernel chooses, on a thread pinned to `cpu`.
  MinimalForwarder(std::vector<sockaddr_in> destinations, int cpu);
  ~MinimalForwarder();
  uint16_t port() const { return port_; }
  pid_t thread() const { return thread_number_.load(); }

 private:
  void run();

  std::vector<sockaddr_in> destinations_;
  int fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<pid_t> thread_number_{0};
  std::thread thread_;
};

struct LoopbackSocketOptions {
  bool times = false;         // packets have the kernel's receive time
  bool any_address = false;   // all of 127.0.0.0/8, else only 127.0.0.1
  const char* device = "lo";  // the only device that it receives from
};
// Opens a socket on a port that the kernel chooses, with a large buffer; a blocking receive returns
// every 100 ms.
int open_loopback_socket(const LoopbackSocketOptions& options);

}  // namespace shredway::bench
