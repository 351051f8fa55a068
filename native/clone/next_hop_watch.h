// Next-hop watch: keeps the next-hop table current when routes, neighbours, links or addresses
// change.
//
// It has its own thread on routing netlink sockets and needs no privilege. The relay opens it with
// a clone plane and passes the addresses of every new fan-out table; the watch publishes whole
// tables, at most every 20 ms. It follows route, rule, address, link and neighbour messages. If
// messages were lost (ENOBUFS), and every 10 s, it reads everything again. Nothing here is on the
// packet path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clone/next_hops.h"
#include "clone/output_rules.h"
#include "net/address.h"

namespace shredway {

struct NextHopWatchOptions {
  Endpoint source;                           // source address; unspecified: that of the route
  uint32_t packet_bytes_max = 1228;          // UDP payload that must fit the path's MTU
  uint32_t receive_buffer_bytes = 1u << 20;  // receive buffer; messages beyond it are lost
  uint32_t refresh_interval_ms = 10'000;     // full refresh, in case a message was lost
  // Set: destinations go by socket while such rules exist, or if their interface could lose clones.
  std::shared_ptr<OutputRules> output_rules{};
  // Called from the watch's thread when the table differs from the last published one. Never called
  // after stop(); must not call stop().
  std::function<void(std::shared_ptr<const NextHops>)> publish;
};

class NextHopWatch {
 public:
  // Uses the network namespace of the calling thread. Returns nullptr and fills `error` if netlink
  // or a thread is not available.
  static std::unique_ptr<NextHopWatch> start(NextHopWatchOptions options, std::string& error);
  ~NextHopWatch();  // stops
  NextHopWatch(const NextHopWatch&) = delete;
  NextHopWatch& operator=(const NextHopWatch&) = delete;

  // Replaces the addresses to resolve; a table for them follows soon. Only the first kNextHopsMax
  // addresses, in ascending order, get an entry. Any thread; does not wait.
  void set_addresses(std::vector<AddressBytes> addresses);
  // Ends within milliseconds. Any thread; may be called repeatedly.
  void stop();

 private:
  class Impl;
  explicit NextHopWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace shredway
