#include "clone/netlink_messages.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <cerrno>
#include <functional>
#include <string>

#include "net_support.h"
#include "route_support.h"

namespace shredway::test {
namespace {

// Messages that are built by hand, like the kernel's.
template <typename T>
Bytes bytes_of(const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  return {bytes, bytes + sizeof value};
}
Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}
Bytes attribute(uint16_t type, const Bytes& payload) {
  Bytes out = bytes_of(nlattr{static_cast<uint16_t>(sizeof(nlattr) + payload.size()), type});
  out = out + payload;
  out.resize((out.size() + 3) & ~size_t{3});
  return out;
}
Bytes message(uint16_t type, const Bytes& body, uint32_t sequence = 7) {
  const auto length = static_cast<uint32_t>(sizeof(nlmsghdr) + body.size());
  Bytes out = bytes_of(nlmsghdr{length, type, 0, sequence, 0}) + body;
  out.resize((out.size() + 3) & ~size_t{3});
  return out;
}
Bytes u32(uint32_t value) { return bytes_of(value); }
Bytes raw(const std::string& address) {
  const AddressBytes bytes = address_of(address);
  return {bytes.begin() + (is_ipv4(bytes) ? 12 : 0), bytes.end()};
}
Bytes raw_mac(const std::string& text) {
  const MacAddress mac = mac_of(text);
  return {mac.begin(), mac.end()};
}

Bytes route_message(uint8_t family, uint8_t type, const Bytes& attributes) {
  rtmsg header{};
  header.rtm_family = family;
  header.rtm_type = type;
  return message(RTM_NEWROUTE, bytes_of(header) + attributes);
}
Bytes link_message(const Bytes& attributes, int index = 3) {
  ifinfomsg header{};
  header.ifi_type = ARPHRD_ETHER;
  header.ifi_index = index;
  header.ifi_flags = IFF_UP | IFF_RUNNING;
  return message(RTM_NEWLINK, bytes_of(header) + attributes);
}
Bytes neighbour_message(uint16_t type, uint8_t family, const Bytes& attributes, uint8_t flags = 0,
                        int index = 3) {
  ndmsg header{};
  header.ndm_family = family;
  header.ndm_ifindex = index;
  header.ndm_state = NUD_REACHABLE;
  header.ndm_flags = flags;
  return message(type, bytes_of(header) + attributes);
}

const Bytes kRoute = route_message(
    AF_INET, RTN_UNICAST,
    attribute(RTA_OIF, u32(3)) + attribute(RTA_GATEWAY, raw("10.1.0.254")) +
        attribute(RTA_PREFSRC, raw("10.1.0.1")) +
        attribute(RTA_METRICS, attribute(RTAX_LOCK, u32(4)) + attribute(RTAX_MTU, u32(1400))));
const Bytes kLink = link_message(
    attribute(IFLA_IFNAME, {'w', 0}) + attribute(IFLA_MTU, u32(1500)) +
    attribute(IFLA_ADDRESS, raw_mac("02:00:00:00:00:01")) +
    attribute(IFLA_AF_SPEC | NLA_F_NESTED,
              attribute(AF_INET, attribute(1, u32(1) + u32(2) + u32(3))) +
                  attribute(AF_INET6, attribute(IFLA_INET6_CONF, u32(0) + u32(64) + u32(1280)))));
const Bytes kNeighbour = neighbour_message(
    RTM_NEWNEIGH, AF_INET6,
    attribute(NDA_DST, raw("fe80::1")) + attribute(NDA_LLADDR, raw_mac("02:00:00:00:00:0a")));

NetlinkMessage only(const Bytes& bytes) {
  std::span<const uint8_t> rest = bytes;
  NetlinkMessage out;
  CHECK(next_message(rest, out));
  CHECK(rest.empty());
  return out;
}

TEST(netlink_reads_a_route) {
  const auto route = read_route(only(kRoute));
  CHECK(route.has_value());
  if (!route) return;
  CHECK_EQ(int(route->type), int(RTN_UNICAST));
  CHECK_EQ(route->interface, 3u);
  CHECK(route->gateway == address_of("10.1.0.254"));
  CHECK(route->source == address_of("10.1.0.1"));
  CHECK_EQ(route->mtu, 1400u);
  CHECK(!route->encapsulated);
}

TEST(netlink_ignores_an_mtu_learned_from_icmp) {
  const Bytes mtu = attribute(RTA_METRICS, attribute(RTAX_MTU, u32(560)));
  const auto read_mtu = [&](uint8_t family, uint32_t expires, size_t info_bytes) {
    rta_cacheinfo info{};
    info.rta_expires = expires;
    Bytes bytes = bytes_of(info);
    bytes.resize(info_bytes);
    const Bytes cache = attribute(RTA_CACHEINFO, bytes);
    // In either order.
    const auto first = read_route(only(route_message(family, RTN_UNICAST, cache + mtu)));
    const auto second = read_route(only(route_message(family, RTN_UNICAST, mtu + cache)));
    CHECK(first && second && first->mtu == second->mtu);
    return first ? first->mtu : 1u;
  };
  constexpr size_t kWhole = sizeof(rta_cacheinfo);
  CHECK_EQ(read_mtu(AF_INET, 59'900, kWhole), 0u);
  CHECK_EQ(read_mtu(AF_INET, 0, kWhole), 560u);  // configured
  CHECK_EQ(read_mtu(AF_INET, 59'900, kWhole - 1), 560u);
  CHECK_EQ(read_mtu(AF_INET6, 59'900, kWhole), 560u);  // a router announced the route
}

TEST(netlink_reads_an_ipv6_gateway_of_an_ipv4_route) {
  const Bytes gateway = bytes_of(uint16_t{AF_INET6}) + raw("fe80::1");
  const auto route =
      read_route(only(route_message(AF_INET, RTN_UNICAST, attribute(RTA_VIA, gateway))));
  CHECK(route && route->gateway == address_of("fe80::1"));
  CHECK(route && !route->source && route->mtu == 0 && route->interface == 0);
}

TEST(netlink_reads_an_encapsulated_route) {
  for (const uint16_t type : {RTA_ENCAP, RTA_ENCAP_TYPE}) {
    const auto route =
        read_route(only(route_message(AF_INET6, RTN_UNICAST, attribute(type, {1, 0}))));
    CHECK(route && route->encapsulated);
  }
}

TEST(netlink_reads_a_link) {
  const auto link = read_link(only(kLink));
  CHECK(link.has_value());
  if (!link) return;
  CHECK_EQ(link->interface, 3u);
  CHECK_EQ(link->type, uint16_t{ARPHRD_ETHER});
  CHECK_EQ(link->flags, uint32_t{IFF_UP | IFF_RUNNING});
  CHECK_EQ(link->mtu, 1500u);
  CHECK_EQ(link->mtu_ipv6, 1280u);
  CHECK(link->mac == mac_of("02:00:00:00:00:01"));
  LinkMessage with_mac;
  with_mac.mac = MacAddress{};
  CHECK(!read_link(only(link_message({}))).value_or(with_mac).mac);
}

TEST(netlink_reads_a_neighbour) {
  const auto neighbour = read_neighbour(only(kNeighbour));
  CHECK(neighbour.has_value());
  if (!neighbour) return;
  CHECK_EQ(neighbour->interface, 3u);
  CHECK_EQ(neighbour->state, uint16_t{NUD_REACHABLE});
  CHECK(neighbour->address == address_of("fe80::1"));
  CHECK(neighbour->mac == mac_of("02:00:00:00:00:0a"));
  Bytes deleted = kNeighbour;
  deleted[4] = RTM_DELNEIGH;
  const auto gone = read_neighbour(only(deleted));
  CHECK(gone && gone->state == 0 && !gone->mac && gone->address == neighbour->address);
}

TEST(netlink_refuses_unusable_messages) {
  const Bytes of = attribute(NDA_DST, raw("10.1.0.2"));
  CHECK(read_neighbour(only(neighbour_message(RTM_NEWNEIGH, AF_INET, of))));
  CHECK(!read_neighbour(only(neighbour_message(RTM_NEWNEIGH, AF_INET, of, NTF_PROXY))));
  CHECK(!read_neighbour(only(neighbour_message(RTM_NEWNEIGH, AF_INET6, of))));
  CHECK(!read_neighbour(only(neighbour_message(RTM_NEWNEIGH, AF_BRIDGE, of))));
  CHECK(!read_neighbour(only(neighbour_message(RTM_NEWNEIGH, AF_INET, of, 0, 0))));
  CHECK(!read_neighbour(only(neighbour_message(RTM_NEWNEIGH, AF_INET, {}))));
  CHECK(!read_neighbour(only(neighbour_message(RTM_GETNEIGH, AF_INET, of))));
  CHECK(!read_route(only(route_message(AF_BRIDGE, RTN_UNICAST, {}))));
  CHECK(!read_route(only(kLink)) && !read_route(only(kNeighbour)));
  CHECK(!read_link(only(kRoute)) && !read_link(only(link_message({}, -1))));
  Bytes of_bridge = kLink;
  of_bridge[sizeof(nlmsghdr)] = AF_BRIDGE;
  CHECK(!read_link(only(of_bridge)));
}

TEST(netlink_treats_attributes_of_another_size_as_absent) {
  const auto route = read_route(only(
      route_message(AF_INET, RTN_UNICAST,
                    attribute(RTA_OIF, {3, 0}) + attribute(RTA_GATEWAY, raw("fe80::1")) +
                        attribute(RTA_PREFSRC, {1, 2, 3}) + attribute(RTA_VIA, {2}) +
                        attribute(RTA_METRICS, attribute(RTAX_MTU, {1, 2, 3, 4, 5, 6, 7, 8})))));
  CHECK(route && route->interface == 0 && !route->gateway && !route->source && route->mtu == 0);
  const auto link = read_link(only(link_message(
      attribute(IFLA_ADDRESS, Bytes(20, 1)) + attribute(IFLA_MTU, {}) +
      attribute(IFLA_AF_SPEC, attribute(AF_INET6, attribute(IFLA_INET6_CONF, u32(0) + u32(64)))))));
  CHECK(link && !link->mac && link->mtu == 0 && link->mtu_ipv6 == 0);
}

TEST(netlink_reads_consecutive_messages) {
  const Bytes all = kRoute + kLink + kNeighbour;
  std::span<const uint8_t> rest = all;
  NetlinkMessage out;
  CHECK(next_message(rest, out) && out.type == RTM_NEWROUTE && out.sequence == 7);
  CHECK(next_message(rest, out) && out.type == RTM_NEWLINK);
  CHECK(next_message(rest, out) && out.type == RTM_NEWNEIGH);
  CHECK(!next_message(rest, out));
  // The last message may lack padding.
  Bytes odd = message(NLMSG_DONE, {1, 2, 3, 4, 5});
  odd.resize(sizeof(nlmsghdr) + 5);
  CHECK_EQ(only(odd).body.size(), size_t{5});
}

TEST(netlink_reads_errors) {
  CHECK_EQ(error_of(only(message(NLMSG_ERROR, u32(static_cast<uint32_t>(-ENETUNREACH))))),
           int(ENETUNREACH));
  CHECK_EQ(error_of(only(message(NLMSG_DONE, u32(0)))), 0);
  CHECK_EQ(error_of(only(message(NLMSG_ERROR, {1, 2}))), int(EBADMSG));
  CHECK_EQ(error_of(only(message(NLMSG_ERROR, u32(5)))), int(EBADMSG));
  CHECK_EQ(error_of(only(message(NLMSG_ERROR, u32(0x80000000)))), int(EBADMSG));
}

TEST(netlink_requests_have_the_kernels_format) {
  std::vector<uint8_t> out;
  const AddressBytes to = address_of("192.0.2.1"), from = address_of("10.1.0.1");
  append_route_request(out, 5, to, &from);
  append_route_request(out, 6, address_of("2001:db8::1"), nullptr);
  append_dump_request(out, 7, RTM_GETLINK);
  std::span<const uint8_t> rest = out;
  NetlinkMessage question;
  CHECK(next_message(rest, question));
  CHECK_EQ(question.type, uint16_t{RTM_GETROUTE});
  CHECK_EQ(question.flags, uint16_t{NLM_F_REQUEST});
  CHECK_EQ(question.sequence, 5u);
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = header.rtm_src_len = 32;
  const Bytes expected = bytes_of(header) + attribute(RTA_DST, raw("192.0.2.1")) +
                         attribute(RTA_SRC, raw("10.1.0.1")) + attribute(RTA_IP_PROTO, {17});
  CHECK(Bytes(question.body.begin(), question.body.end()) == expected);
  CHECK(next_message(rest, question));
  CHECK_EQ(question.sequence, 6u);
  CHECK_EQ(int(question.body[0]), int(AF_INET6));
  CHECK_EQ(int(question.body[1]), 128);
  CHECK_EQ(int(question.body[2]), 0);
  CHECK(next_message(rest, question));
  CHECK_EQ(question.flags, uint16_t{NLM_F_REQUEST | NLM_F_DUMP});
  CHECK(!next_message(rest, question) && rest.empty());
}

// Numbers of whole messages in a datagram and of those that could be read.
struct ReadCounts {
  size_t messages = 0;
  size_t readable = 0;
};

// Reads everything in a datagram that is stored in memory of exactly its size, so that a sanitizer
// detects a read beyond it.
ReadCounts read_all(const Bytes& datagram) {
  ReadCounts counts;
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[datagram.size()]);
  std::copy(datagram.begin(), datagram.end(), exact.get());
  std::span<const uint8_t> rest(exact.get(), datagram.size());
  NetlinkMessage one;
  while (next_message(rest, one)) {
    CHECK(error_of(one) >= 0);
    const auto route = read_route(one);
    const auto link = read_link(one);
    const auto neighbour = read_neighbour(one);
    if (link) CHECK(link->interface != 0);
    if (neighbour) CHECK(neighbour->interface != 0);
    // A message has only one kind.
    const int kinds = route.has_value() + link.has_value() + neighbour.has_value();
    CHECK(kinds <= 1);
    counts.messages++;
    counts.readable += size_t(kinds);
  }
  CHECK(rest.size() <= datagram.size());
  CHECK(counts.messages * sizeof(nlmsghdr) <= datagram.size());
  return counts;
}

TEST(netlink_reads_truncated_messages_safely) {
  for (const Bytes& whole : {kRoute, kLink, kNeighbour}) {
    for (size_t length = 0; length < whole.size(); length++) {
      Bytes cut(whole.begin(), whole.begin() + long(length));
      std::span<const uint8_t> rest = cut;
      NetlinkMessage one;
      CHECK(!next_message(rest, one));
      read_all(cut);
      // Truncated, but with a correct header length: an incomplete attribute counts as absent.
      if (length < sizeof(nlmsghdr)) continue;
      cut[0] = static_cast<uint8_t>(length);
      read_all(cut);
    }
  }
}

TEST(netlink_reads_garbled_messages_safely) {
  Random random{20261121};
  const Bytes whole[] = {kRoute, kLink, kNeighbour, kLink + kRoute + kNeighbour};
  ReadCounts sum;
  for (int i = 0; i < 200'000; i++) {
    Bytes bytes = whole[random.below(4)];
    for (uint64_t times = random.below(6) + 1; times > 0; times--) {
      const uint8_t edges[] = {0, 1, 3, 4, 5, 0x7f, 0x80, 0xff};
      bytes[random.below(bytes.size())] =
          random.one_in(2) ? edges[random.below(8)] : static_cast<uint8_t>(random.next());
    }
    if (random.one_in(4)) bytes.resize(random.below(bytes.size()));
    const ReadCounts counts = read_all(bytes);
    CHECK(counts.messages <= 3);
    sum.messages += counts.messages;
    sum.readable += counts.readable;
  }
  // Some garbled messages stay readable, and some are whole but unreadable.
  CHECK(sum.readable > 0);
  CHECK(sum.messages > sum.readable);
}

}  // namespace
}  // namespace shredway::test
