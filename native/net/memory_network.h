// Memory network: a network of queues instead of the kernel's, for simulations of the whole relay.
//
// A relay that is opened with one starts no thread and opens no socket of the kernel: the
// simulation delivers datagrams, steps the relay and takes what it sent. The clock is the
// simulation's, too. The data plane reaches the network of the step in progress through calls().
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "net/address.h"
#include "net/socket_calls.h"
#include "net/udp_socket.h"

namespace shredway {

class MemoryNetwork {
 public:
  static constexpr size_t kSocketQueueMax = 65'536;  // datagrams that wait at one socket

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
  // Invalid if the system has no descriptor left.
  UdpSocket open(const Endpoint& local);
  // Queues a datagram at the socket that is bound to `to`. Returns false if none is, or if its
  // queue is full.
  bool deliver(const Endpoint& to, Datagram datagram);
  // Datagrams sent, oldest first. The caller removes them.
  std::deque<Datagram>& sent() { return sent_; }
  // From now on, each datagram to `to` fails with this errno. 0: it is sent again.
  void fail(const Endpoint& to, int error_number);
  void set_time(uint64_t now_ns) { now_ns_ = now_ns; }

  static const SocketCalls& calls();

 private:
  struct Socket {
    Endpoint local;
    std::deque<Datagram> waiting;
  };
  static MemoryNetwork& in_use();
  static int receive(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout);
  static int send(int fd, mmsghdr* messages, unsigned count, int flags);
  int failure_of(const Endpoint& to) const;
  void send_one(const Endpoint& to, const msghdr& message);

  std::map<int, Socket> sockets_;
  std::map<std::vector<uint8_t>, int> failures_;  // errno by address and port
  std::deque<Datagram> sent_;
  uint64_t now_ns_ = 0;
};

}  // namespace shredway
