// Next-hop watch: keeps the table of next hops true while routes, neighbours, links and addresses
// change.
//
// A thread of its own on routing netlink sockets; needs no privilege. Opened by the relay beside a
// clone plane, told the addresses of every new fan-out table, and tells back whole tables. Follows
// route, rule, address, link and neighbour messages; when some were lost (ENOBUFS), and every 10 s,
// it asks for everything again. Nothing here is on the path of a packet.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clone/next_hops.h"
#include "net/address.h"

namespace shredway {

struct NextHopWatchOptions {
  Endpoint source;                           // address to send from; unspecified: the route's
  uint32_t packet_bytes_max = 1228;          // UDP payload that the path's MTU must take
  uint32_t receive_buffer_bytes = 1u << 20;  // for messages; those beyond it are lost
  uint32_t everything_every_ms = 10'000;     // in case a message was lost
  // Told after every change, from the watch's thread, and only when the table differs from the one
  // told before. Never called after stop(), which must not be called from here.
  std::function<void(std::shared_ptr<const NextHops>)> publish;
};

class NextHopWatch {
 public:
  // In the network namespace of the calling thread. Returns nullptr and fills `error` when netlink
  // or a thread cannot be had.
  static std::unique_ptr<NextHopWatch> start(NextHopWatchOptions options, std::string& error);
  ~NextHopWatch();  // stops
  NextHopWatch(const NextHopWatch&) = delete;
  NextHopWatch& operator=(const NextHopWatch&) = delete;

  // Replaces the addresses to be resolved; a table for them follows soon. Of more than kNextHopsMax
  // the last ones, by address, get no entry. Any thread, does not wait.
  void want(std::vector<AddressBytes> addresses);
  // Ends within milliseconds. Any thread, once or more.
  void stop();

 private:
  class Impl;
  explicit NextHopWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shredway
