// Paced sender: sends a list of packets to one address, each at its scheduled time.
//
// The traffic source of replay, the sandbox, tests and benchmarks. It has its own thread. Packets
// have a time offset from the start and are sent in sendmmsg batches when they are due. It reads
// the clock itself (it is not a worker). ICMP errors never stop it. Lists stay in memory until they
// have been sent; the caller must limit them (counts().queued).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/socket_calls.h"
#include "net/thread.h"
#include "net/udp_socket.h"

namespace shredway {

// Consecutive packets with their times. times_ns are ascending offsets from the start of the list.
// Packet i is bytes[offsets[i], offsets[i + 1]).
struct PacedPackets {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets;
  std::vector<uint64_t> times_ns;
};

struct PacedSenderOptions {
  // Source address, same family as `to`; unspecified address and port 0: the kernel chooses.
  Endpoint from;
  Endpoint to;
  uint32_t buffer_bytes = 8u << 20;
};

struct PacedSenderCounts {
  uint64_t sent;         // datagrams that the kernel accepted
  uint64_t failed;       // datagrams that the kernel refused
  uint64_t refused;      // ICMP errors that were received: closed port or no route
  uint64_t late_max_ns;  // longest delay behind schedule
  uint64_t queued;       // datagrams not sent yet
};

class PacedSender {
 public:
  // Returns nullptr and fills `error` if the address families differ or the socket cannot be
  // opened.
  static std::unique_ptr<PacedSender> open(const PacedSenderOptions& options, std::string& error,
                                           const SocketCalls& calls = system_socket_calls());
  ~PacedSender();  // stops
  PacedSender(const PacedSender&) = delete;
  PacedSender& operator=(const PacedSender&) = delete;

  // Appends a list. Its clock starts after the last packet of the previous list, or now. Any
  // thread. Returns false and sends nothing after stop(), or if the offsets are not ascending,
  // point beyond the bytes or are not one more than the times.
  bool enqueue(PacedPackets packets);
  PacedSenderCounts counts() const;
  Endpoint local() const;
  // Ends within milliseconds (at most 50 with a full send buffer); drops all queued packets.
  void stop();

 private:
  PacedSender(UdpSocket socket, const SocketCalls& calls);
  void run();
  bool next_list(PacedPackets& packets);
  void play(const PacedPackets& packets);
  void wait(uint64_t from_ns, uint64_t wait_ns);
  void send(const PacedPackets& packets, size_t begin, size_t end);
  bool may_try_again(int error_number);

  UdpSocket socket_;
  const SocketCalls& calls_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<PacedPackets> lists_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> sent_{0}, failed_{0}, late_max_ns_{0}, queued_{0};
  mutable std::atomic<uint64_t> refused_{0};
  Thread thread_;
};

}  // namespace shredway
