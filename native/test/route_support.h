// Support for next-hop tests: one network namespace per test, ip(8) commands in it, and a watch
// whose tables can be awaited.
//
// Included by clone_next_hop*_test.cc and clone_netlink*_test.cc. A namespace lives as long as the
// thread of the test's body, so nothing is left behind.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clone/next_hop_watch.h"

namespace shredway::test {

inline constexpr const char* kNeedsNamespace =
    "network namespaces, veth and ip(8) are needed (CAP_SYS_ADMIN and CAP_NET_ADMIN)";

// Two namespaces: "ours", in which the body runs, and "theirs", at the other end of its cables.
class Lab {
 public:
  // Runs the body on a thread in new namespaces. Returns false, without running it, if privileges
  // are missing.
  static bool run(const std::function<void(Lab&)>& body);

  // Runs lines with ip -batch; a refused line fails the test.
  void ip(const std::string& lines) const;
  void ip_theirs(const std::string& lines) const;
  // Writes to a file of /proc/sys/net.
  void set(const std::string& path, const std::string& value) const;
  // Creates a veth called `name` at both ends, both up. Our MAC is 02:00:00:00:00:<number>, theirs
  // 02:00:00:00:01:<number>. IPv6 addresses are usable at once.
  void cable(const std::string& name, int number) const;
  // Runs the body in "theirs".
  void in_theirs(const std::function<void()>& body) const;
  uint32_t interface(const std::string& name) const;  // index of the interface

 private:
  Lab(int ours, int theirs) : ours_(ours), theirs_(theirs) {}
  int ours_;
  int theirs_;
};

// Converts an address of either family from and to text.
AddressBytes address_of(const std::string& text);
MacAddress mac_of(const std::string& text);
std::string text_of(const MacAddress& mac);

// A watch and its published tables.
class WatchedHops {
 public:
  explicit WatchedHops(NextHopWatchOptions options = {});
  ~WatchedHops();

  void set_addresses(const std::vector<std::string>& addresses);
  NextHopWatch& watch() { return *watch_; }
  // Waits, bounded, until a table satisfies `holds`. Returns false if none did.
  bool wait(const std::function<bool(const NextHops&)>& holds);
  // Waits for a state of one address; returns "" if it came, otherwise the actual state.
  std::string wait_for(const std::string& address, NextHopState state);
  // As above, and the hop must have this interface and MAC.
  std::string wait_for_hop(const std::string& address, uint32_t interface, const std::string& mac);
  std::shared_ptr<const NextHops> table();
  uint64_t tables_published();
  uint64_t last_published_ns();  // CLOCK_MONOTONIC
  // After block(), the watch's thread waits in its next publication.
  void block();
  void unblock();
  bool blocked_now();  // waits, bounded

 private:
  void publish(std::shared_ptr<const NextHops> table);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const NextHops> table_;
  uint64_t tables_published_ = 0;
  uint64_t last_published_ns_ = 0;
  bool block_ = false;
  bool blocked_ = false;
  std::unique_ptr<NextHopWatch> watch_;
};

}  // namespace shredway::test
