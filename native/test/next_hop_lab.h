// Support for both files of next-hop watch tests: a test in a lab, cables and neighbours.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "check.h"
#include "route_support.h"

namespace shredway::test {

inline const std::string kMacA = "02:00:00:00:0a:0a";
inline const std::string kMacB = "02:00:00:00:0b:0b";

// Runs the test's body in a lab, or skips the test.
#define LAB_TEST(name)                                 \
  static void lab_##name(Lab& lab);                    \
  TEST(name) {                                         \
    if (!Lab::run(&lab_##name)) SKIP(kNeedsNamespace); \
  }                                                    \
  static void lab_##name([[maybe_unused]] Lab& lab)

#define CHECK_STATE(hops, address, state) CHECK_EQ((hops).wait_for(address, state), std::string())
#define CHECK_HOP(hops, address, interface, mac) \
  CHECK_EQ((hops).wait_for_hop(address, interface, mac), std::string())

// One cable with 10.1.0.1/24 and fd00:1::1/64 on our side.
inline void one_cable(const Lab& lab) {
  lab.cable("wa", 1);
  lab.ip("address add 10.1.0.1/24 dev wa\naddress add fd00:1::1/64 dev wa nodad\n");
}

// A second cable: 10.2.0.1/24.
inline void another_cable(const Lab& lab) {
  lab.cable("wb", 2);
  lab.ip("address add 10.2.0.1/24 dev wb\naddress add fd00:2::1/64 dev wb nodad\n");
}

inline std::string neighbour(const std::string& what, const std::string& address,
                             const std::string& mac, const std::string& rest = "nud permanent") {
  return "neigh " + what + " " + address + " lladdr " + mac + " dev wa " + rest + "\n";
}

inline Endpoint endpoint_of(const std::string& address, uint16_t port) {
  Endpoint endpoint;
  endpoint.address = address_of(address);
  endpoint.port = port;
  return endpoint;
}

// Sends a datagram by socket, so that the kernel resolves an unknown neighbour.
inline void send_to(const std::string& address) {
  sockaddr_storage to;
  const socklen_t length = to_sockaddr(endpoint_of(address, 9), to);
  const int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  CHECK_EQ(sendto(fd, "?", 1, 0, reinterpret_cast<const sockaddr*>(&to), length), ssize_t{1});
  close(fd);
}

}  // namespace shredway::test
