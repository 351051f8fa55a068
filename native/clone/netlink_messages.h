// Routing netlink messages: what the kernel says of routes, links and neighbours, and the questions
// to it.
//
// Read by next_hop_view and next_hop_watch. Every length is checked before it is believed: a
// message that does not hold what it says is refused, an attribute of another size than expected
// counts as absent. Layouts are those of linux/netlink.h and linux/rtnetlink.h (native byte order,
// all parts aligned to 4). No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "clone/next_hops.h"

namespace shredway {

// One message, its head read; `body` is what follows the head.
struct NetlinkMessage {
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t sequence = 0;
  std::span<const uint8_t> body;
};

// Takes the next message off the front of a datagram. False at its end, or when what follows is no
// whole message.
bool take_message(std::span<const uint8_t>& datagram, NetlinkMessage& out);

// The error number (> 0) that an NLMSG_ERROR tells, 0 for an acknowledgement; EBADMSG when cut.
int error_of(const NetlinkMessage& message);

// A route, as an answer to append_route_question().
struct RouteMessage {
  uint8_t type = 0;        // RTN_*
  uint32_t interface = 0;  // 0: none
  bool encapsulated = false;
  std::optional<AddressBytes> gateway;  // may be IPv6 for an IPv4 destination
  std::optional<AddressBytes> source;
  // 0: the link's. One that the kernel learned from ICMP does not count: anybody can forge it, and
  // neither sockets (udp_socket.h) nor clones follow it.
  uint32_t mtu = 0;
};
struct LinkMessage {
  uint32_t interface = 0;
  uint16_t type = 0;   // ARPHRD_*
  uint32_t flags = 0;  // IFF_*
  uint32_t mtu = 0;
  uint32_t mtu_ipv6 = 0;  // 0: the same
  std::optional<MacAddress> mac;
};
struct NeighbourMessage {
  uint32_t interface = 0;
  AddressBytes address{};
  uint16_t state = 0;  // NUD_*; 0 for a deleted one
  std::optional<MacAddress> mac;
};
// nullopt: cut, another kind of message, or of a family that is none of ours.
std::optional<RouteMessage> read_route(const NetlinkMessage& message);
std::optional<LinkMessage> read_link(const NetlinkMessage& message);
std::optional<NeighbourMessage> read_neighbour(const NetlinkMessage& message);

// ---- questions ----

// Which way a UDP datagram takes to `to`, sent from `from` when it is not nullptr (same family).
void append_route_question(std::vector<uint8_t>& out, uint32_t sequence, const AddressBytes& to,
                           const AddressBytes* from);
// Everything: RTM_GETLINK or RTM_GETNEIGH.
void append_dump_question(std::vector<uint8_t>& out, uint32_t sequence, uint16_t type);

bool is_ipv4(const AddressBytes& address);

}  // namespace shredway
