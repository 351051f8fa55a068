// Forged ICMP messages about the path MTU ("fragmentation needed", "packet too big") from an
// address that is not the destination's. No socket makes the kernel accept them, and MTUs that the
// kernel learned otherwise change neither datagrams sent by socket nor the choice of clone targets.
//
// Each test has a control, a plain socket or another forgery, which shows that the forgery works.
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "clone_support.h"
#include "next_hop_lab.h"

namespace shredway::test {
namespace {

constexpr uint8_t kEchoReplyIpv4 = 0, kEchoReplyIpv6 = 129;
constexpr uint32_t kForgedMtuIpv4 = 560;
constexpr uint32_t kForgedMtuIpv6 = 1280;  // the kernel's minimum
constexpr uint16_t kShredBytes = 1228;
// Longer than a shred; a shred fits the minimum MTU of IPv6.
constexpr uint16_t kLongBytes = 1400;

// ---- state of the kernel --------------------------------------------------------------------

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  CHECK(pipe != nullptr);
  std::string out;
  for (int byte = 0; pipe && (byte = std::fgetc(pipe)) != EOF;) out += static_cast<char>(byte);
  if (pipe) CHECK_EQ(pclose(pipe), 0);
  return out;
}

// The MTU of the kernel's exception for an address; 0: none.
uint32_t learned_mtu(const Endpoint& to) {
  std::string address = to_string({to.address, 0});  // "10.0.0.1:0", "[fd00::1]:0"
  address = to.is_ipv4() ? address.substr(0, address.find(':'))
                         : address.substr(1, address.find(']') - 1);
  const std::string route = output_of("ip route get " + address);
  const size_t at = route.find(" mtu ");
  return at == std::string::npos ? 0 : static_cast<uint32_t>(std::stoul(route.substr(at + 5)));
}

// A counter of this thread's namespace by its name in /proc/net/snmp ("Ip", "FragCreates"); IPv6
// has one name for both ("Ip6FragCreates").
uint64_t counter(bool is_ipv4, const std::string& group, const std::string& name) {
  std::ifstream file(is_ipv4 ? "/proc/thread-self/net/snmp" : "/proc/thread-self/net/snmp6");
  std::string line, word;
  if (!is_ipv4) {
    uint64_t value = 0;
    while (file >> word >> value)
      if (word == group + name) return value;
  }
  while (std::getline(file, line)) {
    if (line.rfind(group + ": ", 0) != 0) continue;
    std::string values;
    std::getline(file, values);
    std::istringstream names_in(line), values_in(values);
    std::string value;
    while (names_in >> word && values_in >> value)
      if (word == name) return std::stoull(value);
  }
  report_failure(__FILE__, __LINE__, "no counter " + group + " " + name);
  return 0;
}

uint64_t fragments_made(bool is_ipv4) {
  return counter(is_ipv4, is_ipv4 ? "Ip" : "Ip6", "FragCreates");
}

// ---- forged ICMP messages -------------------------------------------------------------------

void append_u16(Bytes& out, uint32_t value) {
  out.push_back(static_cast<uint8_t>(value >> 8));
  out.push_back(static_cast<uint8_t>(value));
}

// The checksum of IPv4 and ICMP over whole 16-bit words.
uint16_t checksum(const Bytes& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += 2) sum += uint32_t(bytes[i] << 8 | bytes[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// The first bytes of a packet, as a router quotes them.
Bytes quoted(const Endpoint& from, const Endpoint& to, uint8_t protocol) {
  Bytes out;
  constexpr uint16_t kUdpBytes = kShredBytes + 8;
  if (to.is_ipv4()) {
    out = {0x45, 0};
    append_u16(out, kUdpBytes + 20);
    out.insert(out.end(), {0, 0, 0, 0, 64, protocol, 0, 0});
    out.insert(out.end(), from.address.begin() + 12, from.address.end());
    out.insert(out.end(), to.address.begin() + 12, to.address.end());
  } else {
    out = {0x60, 0, 0, 0};
    append_u16(out, kUdpBytes);
    out.insert(out.end(), {protocol, 64});
    out.insert(out.end(), from.address.begin(), from.address.end());
    out.insert(out.end(), to.address.begin(), to.address.end());
  }
  if (protocol == IPPROTO_UDP) {
    append_u16(out, from.port);
    append_u16(out, to.port);
    append_u16(out, kUdpBytes);
    append_u16(out, 0);
  } else {
    out.insert(out.end(), {to.is_ipv4() ? kEchoReplyIpv4 : kEchoReplyIpv6, 0, 0, 0, 0, 1, 0, 1});
  }
  return out;
}

Bytes too_big(const Bytes& quote, bool is_ipv4) {
  Bytes message = is_ipv4 ? Bytes{3, 4, 0, 0, 0, 0} : Bytes{2, 0, 0, 0, 0, 0};
  append_u16(message, is_ipv4 ? kForgedMtuIpv4 : kForgedMtuIpv6);
  message.insert(message.end(), quote.begin(), quote.end());
  if (is_ipv4) {  // the kernel computes the IPv6 checksum
    const uint16_t sum = checksum(message);
    message[2] = static_cast<uint8_t>(sum >> 8);
    message[3] = static_cast<uint8_t>(sum);
  }
  return message;
}

// A cable to many addresses, and a stranger at its other end.
struct Path {
  Lab& lab;
  CloneCable cable{lab, "shwp0", 9};
  CloneReceiver ipv4{lab, true}, ipv6{lab, false};
  uint32_t next = 1;

  explicit Path(Lab& the_lab) : lab(the_lab) {
    lab.ip(
        "neigh replace 10.9.0.2 lladdr 02:00:00:00:01:09 dev shwp0 nud permanent\n"
        "neigh replace fd00:9::2 lladdr 02:00:00:00:01:09 dev shwp0 nud permanent\n"
        "route add 10.77.0.0/16 via 10.9.0.2\nroute add fd77::/64 via fd00:9::2\n");
    lab.ip_theirs("addr add 10.9.0.66/16 dev shwp0\naddr add fd00:9::66/64 nodad dev shwp0\n");
  }
  // An address without forged messages so far.
  Endpoint destination(bool is_ipv4) {
    return behind_cable(is_ipv4, next++, is_ipv4 ? ipv4.port() : ipv6.port());
  }
  // The stranger reports that a packet from us to `to` was too big; returns when the kernel has
  // processed it.
  void forge(uint16_t from_port, const Endpoint& to, uint8_t protocol = IPPROTO_UDP) const {
    const bool is_ipv4 = to.is_ipv4();
    const auto reported = [&] {
      return is_ipv4 ? counter(true, "Icmp", "InDestUnreachs")
                     : counter(false, "Icmp6", "InPktTooBigs");
    };
    const Endpoint us = endpoint_of(is_ipv4 ? "10.9.0.1" : "fd00:9::1", from_port);
    const Bytes message = too_big(quoted(us, to, protocol), is_ipv4);
    const uint64_t before = reported();
    lab.in_theirs([&] {
      const UdpSocket raw(::socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC,
                                   is_ipv4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6}));
      const Address stranger(endpoint_of(is_ipv4 ? "10.9.0.66" : "fd00:9::66", 0));
      const Address target({us.address, 0});
      CHECK_EQ(bind(raw.fd(), stranger.get(), stranger.bytes), 0);
      CHECK_EQ(sendto(raw.fd(), message.data(), message.size(), 0, target.get(), target.bytes),
               static_cast<ssize_t>(message.size()));
    });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (reported() == before && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_EQ(reported(), before + 1);
  }
  // A burst of 32 arrives unfragmented, sent as one GSO message.
  void check_whole(int fd, const Endpoint& to) {
    const bool is_ipv4 = to.is_ipv4();
    Random random{uint64_t{to.address[15]}};
    Burst burst(random, 32, is_ipv4 ? kShredBytes : kLongBytes);
    const uint64_t fragments = fragments_made(is_ipv4);
    SendCounts tally;
    SendBatch batch(fd, true, tally);
    const Address address(to);
    batch.add(burst.group(), address.get(), address.bytes, 1);
    batch.flush();
    CHECK_EQ(tally.sent_by_tag[1], uint64_t{32});
    CHECK_EQ(batch.gso_fallbacks(), uint64_t{0});
    std::vector<Bytes> got;
    for (CloneArrival& arrival : (is_ipv4 ? ipv4 : ipv6).read(32))
      got.push_back(std::move(arrival.bytes));
    CHECK(got == burst.payloads);
    CHECK_EQ(fragments_made(is_ipv4), fragments);
  }
};

Endpoint any(bool is_ipv4) { return is_ipv4 ? ipv4(0, 0, 0, 0) : Endpoint{}; }

uint32_t forged_mtu(bool is_ipv4) { return is_ipv4 ? kForgedMtuIpv4 : kForgedMtuIpv6; }

// ---- sockets --------------------------------------------------------------------------------

LAB_TEST(path_mtu_is_not_learned_through_any_socket) {
  Path path(lab);
  for (const bool is_ipv4 : {true, false}) {
    // The control: a socket with the system's defaults.
    const UdpSocket plain(::socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const Address nowhere(any(is_ipv4));
    CHECK_EQ(bind(plain.fd(), nowhere.get(), nowhere.bytes), 0);
    const Endpoint control = path.destination(is_ipv4);
    path.forge(local_endpoint(plain.fd()).port, control);
    CHECK_EQ(learned_mtu(control), forged_mtu(is_ipv4));

    SocketResult opened[] = {open_send_socket({any(is_ipv4), 1u << 20}),
                             open_receive_socket({any(is_ipv4), 1u << 20, false}),
                             open_bound_socket(any(is_ipv4))};
    for (const SocketResult& each : opened) {
      CHECK_EQ(each.error, std::string());
      const Endpoint to = path.destination(is_ipv4);
      path.forge(local_endpoint(each.socket.fd()).port, to);
      CHECK_EQ(learned_mtu(to), 0u);
      path.check_whole(each.socket.fd(), to);
    }
  }
}

// Quotes an answer to a ping, which no socket sent.
LAB_TEST(path_mtu_that_the_kernel_learned_does_not_fragment) {
  Path path(lab);
  for (const bool is_ipv4 : {true, false}) {
    const SocketResult out = open_send_socket({any(is_ipv4), 1u << 20});
    CHECK_EQ(out.error, std::string());
    const Endpoint to = path.destination(is_ipv4);
    path.forge(0, to, is_ipv4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6});
    CHECK_EQ(learned_mtu(to), forged_mtu(is_ipv4));
    path.check_whole(out.socket.fd(), to);
  }
}

LAB_TEST(path_mtu_of_a_narrow_interface_fragments_datagrams) {
  Path path(lab);
  lab.ip("link set shwp0 mtu 1000\n");
  const SocketResult out = open_send_socket({any(true), 1u << 20});
  const Endpoint to = path.destination(true);
  Random random{7};
  Burst burst(random, 4, kShredBytes);
  const uint64_t fragments = fragments_made(true);
  SendCounts tally;
  SendBatch batch(out.socket.fd(), true, tally);
  const Address address(to);
  batch.add(burst.group(), address.get(), address.bytes, 1);
  batch.flush();
  CHECK_EQ(tally.sent_by_tag[1], uint64_t{4});
  CHECK_EQ(path.ipv4.read(4).size(), size_t{4});
  CHECK_EQ(fragments_made(true), fragments + 8);
}

// ---- clones ---------------------------------------------------------------------------------

LAB_TEST(path_mtu_that_the_kernel_learned_does_not_prevent_clones) {
  Path path(lab);
  for (const bool is_ipv4 : {true, false}) {
    const Endpoint to = path.destination(is_ipv4);
    path.forge(0, to, is_ipv4 ? int{IPPROTO_ICMP} : int{IPPROTO_ICMPV6});
    CHECK_EQ(learned_mtu(to), forged_mtu(is_ipv4));
    WatchedHops hops;
    hops.watch().set_addresses({to.address});
    CHECK(hops.wait([&](const NextHops& table) {
      const NextHops::Entry* entry = table.find(to.address);
      return entry && entry->state == NextHopState::resolved;
    }));
  }
}

}  // namespace
}  // namespace shredway::test
