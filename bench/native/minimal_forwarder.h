// Minimal forwarder: the least that passes UDP packets on to several destinations.
//
// The yardstick for latency and for the whole relay's cost: recvmmsg, then sendmmsg with one shared
// payload, in plain C style. It looks at nothing, forgets everything and counts nothing, so no
// relay on sockets can be much faster.
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
  // Listens on a port of loopback that the kernel chooses, on a thread pinned to `cpu`.
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
  bool times = false;         // packets carry the kernel's receive time
  bool any_address = false;   // all of 127.0.0.0/8, else 127.0.0.1 alone
  const char* device = "lo";  // the only one that it receives from
};
// Socket on a port of the kernel's choice with a large buffer, whose blocking receive looks up
// every 100 ms.
int open_loopback_socket(const LoopbackSocketOptions& options);

}  // namespace shredway::bench
