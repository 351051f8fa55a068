// Paced sender: plays a list of packets to one address, each at its time.
//
// The traffic of replay, of the default start, of tests and benches. A thread of its own; packets
// are given with a time offset from the start, and go out in sendmmsg batches as they fall due.
// Reads the clock itself (it is no worker). An ICMP error never stops it: what nobody listens to is
// sent all the same. Lists wait in memory, each as large as its packets, until they have been
// played: whoever enqueues keeps count (counts().queued).
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

// Packets back to back with their times; times_ns are offsets from the moment that the list is
// taken up, ascending. packet i is bytes[offsets[i], offsets[i + 1]).
struct PacedPackets {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets;
  std::vector<uint64_t> times_ns;
};

struct PacedSenderOptions {
  Endpoint from;  // source address, of the family of `to`; unspecified and 0: the kernel chooses
  Endpoint to;
  uint32_t buffer_bytes = 8u << 20;
};

struct PacedSenderCounts {
  uint64_t sent;         // datagrams handed to the kernel
  uint64_t failed;       // not taken by the kernel
  uint64_t refused;      // ICMP errors that came back: nobody listens, or no way to get there
  uint64_t late_max_ns;  // longest delay behind schedule
  uint64_t queued;       // still to go
};

class PacedSender {
 public:
  // Returns nullptr and fills `error` when the addresses do not fit or the socket cannot be opened.
  static std::unique_ptr<PacedSender> open(const PacedSenderOptions& options, std::string& error,
                                           const SocketCalls& calls = system_socket_calls());
  ~PacedSender();  // stops
  PacedSender(const PacedSender&) = delete;
  PacedSender& operator=(const PacedSender&) = delete;

  // Appends a list; its clock starts when the previous list's last packet has gone, or now. Any
  // thread. False, and nothing is sent, when the offsets are not ascending, lead beyond the bytes
  // or are not one more than the times, or after stop().
  bool enqueue(PacedPackets packets);
  PacedSenderCounts counts() const;
  Endpoint local() const;
  // Ends within milliseconds (at most 50 with a full send buffer); what is still queued is dropped.
  void stop();

 private:
  PacedSender(UdpSocket socket, const SocketCalls& calls);
  void run();
  bool take_list(PacedPackets& packets);
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
