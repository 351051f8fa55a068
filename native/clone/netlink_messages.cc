#include "clone/netlink_messages.h"

#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "clone/netlink_attributes.h"

namespace shredway {
namespace {

constexpr size_t kDevconfMtu6 = 2;  // DEVCONF_MTU6 of linux/ipv6.h
using netlink::after;
using netlink::append;
using netlink::append_attribute;
using netlink::Bytes;
using netlink::each_attribute;
using netlink::read;
using netlink::text;

uint32_t number(Bytes payload) { return netlink::number<uint32_t>(payload); }

std::optional<MacAddress> mac(Bytes payload) {
  MacAddress out;
  if (payload.size() != out.size()) return std::nullopt;
  std::memcpy(out.data(), payload.data(), out.size());
  return out;
}

std::optional<AddressBytes> address(uint16_t family, Bytes payload) {
  AddressBytes out;
  if (family == AF_INET && payload.size() == 4) return mapped_ipv4(payload.data());
  if (family != AF_INET6 || payload.size() != out.size()) return std::nullopt;
  std::memcpy(out.data(), payload.data(), out.size());
  return out;
}

// RTA_VIA: a family, then an address of that family.
std::optional<AddressBytes> via(Bytes payload) {
  uint16_t family;
  if (!read(payload, family)) return std::nullopt;
  return address(family, payload.subspan(sizeof family));
}

uint32_t mtu_of_metrics(Bytes payload) {
  uint32_t mtu = 0;
  each_attribute(payload, [&](uint16_t type, Bytes value) {
    if (type == RTAX_MTU) mtu = number(value);
  });
  return mtu;
}

// An IPv4 route that expires is an exception created by ICMP (RFC 1191), so its MTU was learned.
// For IPv6, configured routes may expire too, and every valid MTU fits a whole shred.
bool is_learned(uint8_t family, Bytes cache_info) {
  rta_cacheinfo info;
  return family == AF_INET && read(cache_info, info) && info.rta_expires != 0;
}

// IFLA_AF_SPEC, AF_INET6, IFLA_INET6_CONF: an array of int32 by DEVCONF_*. Routers may announce a
// smaller MTU for IPv6 than the link has.
uint32_t mtu_of_families(Bytes payload) {
  uint32_t mtu = 0;
  each_attribute(payload, [&](uint16_t family, Bytes families) {
    if (family != AF_INET6) return;
    each_attribute(families, [&](uint16_t type, Bytes values) {
      if (type != IFLA_INET6_CONF || values.size() < (kDevconfMtu6 + 1) * sizeof mtu) return;
      std::memcpy(&mtu, values.data() + kDevconfMtu6 * sizeof mtu, sizeof mtu);
    });
  });
  return mtu;
}

// IFLA_LINKINFO: devices without hardware have a kind, for example "veth".
bool names_kind(Bytes payload) {
  bool named = false;
  each_attribute(payload, [&](uint16_t type, Bytes) { named |= type == IFLA_INFO_KIND; });
  return named;
}

Bytes payload_of(const AddressBytes& bytes) {
  return is_ipv4(bytes) ? Bytes(bytes).subspan(kIpv4At) : Bytes(bytes);
}

}  // namespace

bool next_message(std::span<const uint8_t>& datagram, NetlinkMessage& out) {
  nlmsghdr header;
  if (!read(datagram, header)) return false;
  if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) return false;
  out = {header.nlmsg_type, header.nlmsg_flags, header.nlmsg_seq,
         datagram.subspan(sizeof header, header.nlmsg_len - sizeof header)};
  datagram = after(datagram, header.nlmsg_len);
  return true;
}

int error_of(const NetlinkMessage& message) {
  int32_t error;
  if (!read(message.body, error) || error > 0 || error == INT32_MIN) return EBADMSG;
  return -error;
}

std::optional<RouteMessage> read_route(const NetlinkMessage& message) {
  rtmsg header;
  if (message.type != RTM_NEWROUTE || !read(message.body, header)) return std::nullopt;
  if (header.rtm_family != AF_INET && header.rtm_family != AF_INET6) return std::nullopt;
  RouteMessage route;
  route.type = header.rtm_type;
  bool learned = false;
  each_attribute(after(message.body, sizeof header), [&](uint16_t type, Bytes payload) {
    if (type == RTA_OIF) route.interface = number(payload);
    if (type == RTA_GATEWAY) route.gateway = address(header.rtm_family, payload);
    if (type == RTA_VIA) route.gateway = via(payload);
    if (type == RTA_PREFSRC) route.source = address(header.rtm_family, payload);
    if (type == RTA_METRICS) route.mtu = mtu_of_metrics(payload);
    if (type == RTA_ENCAP || type == RTA_ENCAP_TYPE) route.encapsulated = true;
    if (type == RTA_CACHEINFO) learned = is_learned(header.rtm_family, payload);
  });
  if (learned) route.mtu = 0;
  return route;
}

std::optional<LinkMessage> read_link(const NetlinkMessage& message) {
  ifinfomsg header;
  if (message.type != RTM_NEWLINK || !read(message.body, header)) return std::nullopt;
  if (header.ifi_family != AF_UNSPEC || header.ifi_index <= 0) return std::nullopt;
  LinkMessage link;
  link.interface = static_cast<uint32_t>(header.ifi_index);
  link.type = header.ifi_type;
  link.flags = header.ifi_flags;
  each_attribute(after(message.body, sizeof header), [&](uint16_t type, Bytes payload) {
    if (type == IFLA_MTU) link.mtu = number(payload);
    if (type == IFLA_ADDRESS) link.mac = mac(payload);
    if (type == IFLA_AF_SPEC) link.mtu_ipv6 = mtu_of_families(payload);
    if (type == IFLA_LINKINFO) link.is_virtual = names_kind(payload);
    if (type == IFLA_IFNAME) link.name = text(payload);
  });
  return link;
}

std::optional<NeighbourMessage> read_neighbour(const NetlinkMessage& message) {
  ndmsg header;
  if (message.type != RTM_NEWNEIGH && message.type != RTM_DELNEIGH) return std::nullopt;
  if (!read(message.body, header) || header.ndm_ifindex <= 0) return std::nullopt;
  // A proxy entry names an address that this machine answers for, not the location of a neighbour.
  if (header.ndm_flags & NTF_PROXY) return std::nullopt;
  NeighbourMessage neighbour;
  neighbour.interface = static_cast<uint32_t>(header.ndm_ifindex);
  std::optional<AddressBytes> of;
  each_attribute(after(message.body, sizeof header), [&](uint16_t type, Bytes payload) {
    if (type == NDA_DST) of = address(header.ndm_family, payload);
    if (type == NDA_LLADDR) neighbour.mac = mac(payload);
  });
  if (!of) return std::nullopt;
  neighbour.address = *of;
  if (message.type == RTM_NEWNEIGH) neighbour.state = header.ndm_state;
  else neighbour.mac.reset();
  return neighbour;
}

// ---- requests -------------------------------------------------------------------------------

void append_route_request(std::vector<uint8_t>& out, uint32_t sequence, const AddressBytes& to,
                          const AddressBytes* from) {
  const size_t begin = out.size();
  append(out, nlmsghdr{0, RTM_GETROUTE, NLM_F_REQUEST, sequence, 0});
  rtmsg header{};
  header.rtm_family = is_ipv4(to) ? AF_INET : AF_INET6;
  header.rtm_dst_len = static_cast<uint8_t>(payload_of(to).size() * 8);
  if (from) header.rtm_src_len = header.rtm_dst_len;
  append(out, header);
  append_attribute(out, RTA_DST, payload_of(to));
  if (from) append_attribute(out, RTA_SRC, payload_of(*from));
  const uint8_t protocol = IPPROTO_UDP;
  append_attribute(out, RTA_IP_PROTO, {&protocol, 1});
  const auto length = static_cast<uint32_t>(out.size() - begin);
  std::memcpy(out.data() + begin, &length, sizeof length);
}

void append_dump_request(std::vector<uint8_t>& out, uint32_t sequence, uint16_t type) {
  // Any family, then zeros. The kernel would read bytes beyond the header as an attribute.
  const size_t bytes = type == RTM_GETNEIGH ? sizeof(ndmsg) : sizeof(ifinfomsg);
  append(out, nlmsghdr{static_cast<uint32_t>(sizeof(nlmsghdr) + bytes), type,
                       NLM_F_REQUEST | NLM_F_DUMP, sequence, 0});
  if (type == RTM_GETNEIGH) append(out, ndmsg{});
  else append(out, ifinfomsg{});
}

}  // namespace shredway
