// Memory network: a network of queues instead of the kernel's, for simulations of the whole relay.
//
// A relay that is opened with one starts no thread and opens no socket of the kernel: the
// simulation delivers datagrams, steps the relay and takes what it sent. The clock is the
// simulation's, too. The data plane reaches the network of the step in progress through calls().
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <vector>

#include "net/address.h"
#include "net/socket_calls.h"
#include "net/udp_socket.h"

namespace shredway {

class MemoryNetwork {
 public:
  static constexpr size_t kSocketQueueMax = 65'536;  // datagrams that wait at one socket
  static constexpr size_t kErrorQueueMax = 512;      // ICMP errors that wait at one socket

  struct Datagram {
    Endpoint peer;  // received: the sender; sent: the destination
    std::vector<uint8_t> bytes;
    uint64_t time_ns = 0;  // receive time, or time of the step that sent it
  };
  // Makes a network the one that calls() of this thread act on.
  class Use {
   public:
    explicit Use(MemoryNetwork& network);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    MemoryNetwork* before_;
  };

  // A socket of this network; the descriptor is a real one, so that it is unique and can be closed.
  // Sockets with the same address share it, as those of several workers do. Invalid if the system
  // has no descriptor left.
  UdpSocket open(const Endpoint& local);
  // Queues a datagram at a socket that is bound to `to`; of several, steered_worker() selects one.
  // Returns false if no socket has this address, or if its queue is full.
  bool deliver(const Endpoint& to, Datagram datagram);
  // Datagrams sent, oldest first. The caller removes them.
  std::deque<Datagram>& sent() { return sent_; }
  // From now on, each datagram to `to` fails with this errno. 0: it is sent again.
  void fail(const Endpoint& to, int error_number);
  // From now on, no datagram arrives at `to`: an ICMP error answers each (refuses), or they arrive.
  void refuse(const Endpoint& to, bool refuses);
  // An ICMP error about a datagram to `to` arrives at each socket that has sent one. Anyone can
  // forge it.
  void report_unreachable(const Endpoint& to);
  void set_time(uint64_t now_ns) { now_ns_ = now_ns; }

  static const SocketCalls& calls();

 private:
  using EndpointBytes = std::vector<uint8_t>;  // address and port
  struct Socket {
    std::deque<Datagram> waiting;
    std::set<EndpointBytes> sent_to;
    std::deque<Endpoint> errors;  // destinations of the datagrams that ICMP errors quote
    bool has_pending_error = false;
  };
  static MemoryNetwork& in_use();
  static int receive(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
  static int send(int fd, mmsghdr* messages, unsigned count, int flags);
  static ssize_t receive_error(int fd, msghdr* message, int flags);
  static EndpointBytes bytes_of(const Endpoint& endpoint);
  static void add_error(Socket& socket, const Endpoint& to);
  int failure_of(Socket& from, const Endpoint& to) const;
  void send_one(Socket& from, const Endpoint& to, const msghdr& message);

  std::map<int, Socket> sockets_;
  std::map<EndpointBytes, std::vector<int>> bound_;  // descriptors in the order of opening
  std::map<EndpointBytes, int> failures_;            // errno
  std::set<EndpointBytes> refusing_;
  std::deque<Datagram> sent_;
  uint64_t now_ns_ = 0;
};

}  // namespace shredway
