// Support for native/net tests: loopback sockets of both families, a reader that waits for sent
// datagrams, and a table of system calls that the test replaces.
//
// Included by net_*_test.cc only. The kernel always chooses the ports; all waits are bounded.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "net/udp_batch.h"
#include "net/udp_socket.h"

namespace shredway::test {

using Bytes = std::vector<uint8_t>;

inline Endpoint ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint16_t port = 0) {
  Endpoint endpoint;
  endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
  endpoint.port = port;
  return endpoint;
}

inline Endpoint loopback(bool is_ipv4, uint16_t port = 0) {
  if (is_ipv4) return ipv4(127, 0, 0, 1, port);
  Endpoint endpoint;
  endpoint.address[15] = 1;
  endpoint.port = port;
  return endpoint;
}

inline UdpSocket receiver(bool is_ipv4, bool share_port = false, uint16_t port = 0) {
  SocketResult result = open_receive_socket({loopback(is_ipv4, port), 4u << 20, share_port, 0});
  CHECK_EQ(result.error, std::string());
  return std::move(result.socket);
}

inline UdpSocket sender(bool is_ipv4) {
  SocketResult result = open_send_socket({loopback(is_ipv4), 4u << 20});
  CHECK_EQ(result.error, std::string());
  return std::move(result.socket);
}

// The socket's option for path MTUs from ICMP; -1 if the option is refused.
inline int path_mtu_option(int fd, bool is_ipv4) {
  int value = -1;
  socklen_t bytes = sizeof value;
  const int refused = is_ipv4 ? getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, &bytes)
                              : getsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &value, &bytes);
  return refused == 0 ? value : -1;
}
inline void check_path_mtu_is_ignored(int fd, bool is_ipv4) {
  CHECK_EQ(path_mtu_option(fd, true), int{IP_PMTUDISC_OMIT});
  if (!is_ipv4) CHECK_EQ(path_mtu_option(fd, false), int{IPV6_PMTUDISC_OMIT});
}

// True (IPv4), then false (IPv6) if this machine has an IPv6 loopback.
inline std::vector<bool> families() {
  const bool ipv6 = open_receive_socket({loopback(false), 0, false, 0}).error.empty();
  return ipv6 ? std::vector<bool>{true, false} : std::vector<bool>{true};
}

// Address in the form of the system calls.
struct Address {
  sockaddr_storage storage;
  socklen_t bytes;
  explicit Address(const Endpoint& endpoint) : bytes(to_sockaddr(endpoint, storage)) {}
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

struct ReceivedDatagram {
  Bytes bytes;  // captured part
  uint32_t length;
  uint64_t received_ns;
  Endpoint from;
};

// Reads until `expected` datagrams or nothing more arrive for 30 s; returns extra datagrams too.
inline std::vector<ReceivedDatagram> arrivals(int fd, size_t expected) {
  static ReceiveBatch batch;
  std::vector<ReceivedDatagram> out;
  for (;;) {
    pollfd entry = {fd, POLLIN, 0};
    if (poll(&entry, 1, out.size() < expected ? 30'000 : 0) <= 0) return out;
    if (batch.receive(fd) == 0) return out;
    for (size_t i = 0; i < batch.size(); i++) {
      const ReceivedPacket packet = batch.packet(i);
      const size_t kept = std::min<size_t>(packet.length, kReceiveBufferBytes);
      out.push_back({Bytes(packet.bytes, packet.bytes + kept), packet.length, packet.received_ns,
                     endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(packet.sender))});
    }
  }
}

// Adds up the results of messages by tag.
struct SendCounts final : SendObserver {
  std::map<uint32_t, uint64_t> sent_by_tag;
  std::map<uint32_t, std::map<SendFailure, uint64_t>> failed_by_tag;
  uint64_t reports = 0;
  void sent(uint32_t tag, uint32_t datagrams) override {
    reports++;
    sent_by_tag[tag] += datagrams;
  }
  void failed(uint32_t tag, uint32_t datagrams, SendFailure failure) override {
    reports++;
    failed_by_tag[tag][failure] += datagrams;
  }
  uint64_t failures(uint32_t tag) const {
    uint64_t sum = 0;
    const auto found = failed_by_tag.find(tag);
    if (found != failed_by_tag.end())
      for (const auto& [failure, datagrams] : found->second) sum += datagrams;
    return sum;
  }
};

// A table of system calls whose sendmmsg is the test's function; one instance at a time, one
// thread.
class FakeSend {
 public:
  using Body = std::function<int(mmsghdr*, unsigned)>;  // result, or the negative errno
  explicit FakeSend(Body body) { body_ref() = std::move(body); }
  ~FakeSend() { body_ref() = nullptr; }
  static const SocketCalls& calls() {
    static const SocketCalls kCalls = {&::recvmmsg, &sendmmsg, &::recvmsg, &::poll};
    return kCalls;
  }

 private:
  static Body& body_ref() {
    static Body body;
    return body;
  }
  static int sendmmsg(int, mmsghdr* messages, unsigned count, int flags) {
    CHECK(flags & MSG_DONTWAIT);
    CHECK(count >= 1 && count <= kSendBatchMax);
    const int result = body_ref()(messages, count);
    if (result >= 0) return result;
    errno = -result;
    return -1;
  }
};

// Small generator of reproducible numbers (SplitMix64).
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t bound) { return next() % bound; }
  bool one_in(uint64_t chances) { return below(chances) == 0; }
};

inline Bytes random_bytes(Random& random, size_t count) {
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

}  // namespace shredway::test
