// reachability_probe: closed, open and answering ports, and forged ICMP errors.
#include "net/reachability_probe.h"

#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "loopback_relay.h"
#include "net_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

Bytes secret_of(uint8_t byte) {
  Bytes datagram = {'S', 'W', 'P', 'R', 'O', 'O', 'F', '1'};
  datagram.resize(52, byte);
  return datagram;
}

std::unique_ptr<ReachabilityProbe> opened(const Endpoint& to, const Bytes& datagram) {
  std::string error;
  auto probe = ReachabilityProbe::open(to, datagram, error);
  CHECK_EQ(error, std::string());
  return probe;
}

// Waits, at most 30 s, until the result is known.
ProbeResult result_of(ReachabilityProbe& probe) {
  for (int i = 0; i < 6000; i++) {
    const ProbeResult result = probe.check();
    if (result != ProbeResult::pending) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return ProbeResult::pending;
}

Endpoint closed_port(const char* address) {
  const SocketResult opened = open_receive_socket({ipv4_endpoint(address, 0), 0, false});
  return local_endpoint(opened.socket.fd());  // closed on return
}

uint16_t checksum(const Bytes& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) sum += uint32_t{bytes[i]} << 8 | bytes[i + 1];
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<uint16_t>(~sum));
}

// An ICMP "port unreachable" from 127.0.0.99 about a datagram `from` → `to` with this payload.
bool forge(const Endpoint& from, const Endpoint& to, const Bytes& payload) {
  const UdpSocket raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  if (!raw.valid()) return false;
  Bytes message(sizeof(icmphdr) + sizeof(iphdr) + sizeof(udphdr));
  message[0] = ICMP_DEST_UNREACH;
  message[1] = ICMP_PORT_UNREACH;
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_UDP;
  ip.tot_len = htons(static_cast<uint16_t>(sizeof ip + sizeof(udphdr) + payload.size()));
  std::memcpy(&ip.saddr, from.address.data() + 12, 4);
  std::memcpy(&ip.daddr, to.address.data() + 12, 4);
  udphdr udp{};
  udp.source = htons(from.port);
  udp.dest = htons(to.port);
  udp.len = htons(static_cast<uint16_t>(sizeof udp + payload.size()));
  std::memcpy(message.data() + sizeof(icmphdr), &ip, sizeof ip);
  std::memcpy(message.data() + sizeof(icmphdr) + sizeof ip, &udp, sizeof udp);
  message.insert(message.end(), payload.begin(), payload.end());
  if (message.size() % 2) message.push_back(0);
  const uint16_t sum = checksum(message);
  std::memcpy(message.data() + 2, &sum, sizeof sum);
  sockaddr_storage source{}, target{};
  const socklen_t bytes = to_sockaddr(ipv4_endpoint("127.0.0.99", 0), source);
  to_sockaddr(from, target);
  CHECK_EQ(bind(raw.fd(), reinterpret_cast<const sockaddr*>(&source), bytes), 0);
  return sendto(raw.fd(), message.data(), message.size(), 0,
                reinterpret_cast<const sockaddr*>(&target), bytes) > 0;
}

}  // namespace

TEST(reachability_probe_reports_a_closed_port) {
  const auto probe = opened(closed_port("127.0.0.98"), secret_of(7));
  CHECK(result_of(*probe) == ProbeResult::unreachable);
  CHECK(probe->check() == ProbeResult::unreachable);
}

TEST(reachability_probe_reports_an_answer) {
  Peer receiver("127.0.0.98");
  const Bytes secret = secret_of(7);
  const auto probe = opened(receiver.endpoint(), secret);
  CHECK(receiver.receive(1) == std::vector<Bytes>{secret});
  receiver.send(probe->local(), secret_of(8));  // another token
  CHECK(probe->check() == ProbeResult::pending);
  receiver.send(probe->local(), secret);
  CHECK(result_of(*probe) == ProbeResult::answered);
}

TEST(reachability_probe_ignores_forged_errors_without_the_secret) {
  Peer receiver("127.0.0.98");
  const Bytes secret = secret_of(7);
  const auto probe = opened(receiver.endpoint(), secret);
  CHECK_EQ(receiver.receive(1).size(), 1u);
  const Bytes shred = make_slot({.slot = 5}).packets[0];
  const Bytes truncated(secret.begin(), secret.begin() + 23);
  for (const Bytes& payload : {Bytes(), shred, secret_of(8), truncated})
    if (!forge(probe->local(), receiver.endpoint(), payload))
      SKIP("this user may not open raw sockets");
  CHECK(probe->check() == ProbeResult::pending);
  // The forgery works: with the secret, which only the path has seen, it counts.
  CHECK(forge(probe->local(), receiver.endpoint(), secret));
  CHECK(result_of(*probe) == ProbeResult::unreachable);
}

TEST(reachability_probe_without_a_route_is_unreachable) {
  std::string error;
  const auto probe = ReachabilityProbe::open(ipv4_endpoint("240.0.0.1", 9), secret_of(1), error);
  CHECK(probe == nullptr || probe->check() != ProbeResult::answered);
}
