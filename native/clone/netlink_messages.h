// Routing netlink messages: parses the kernel's routes, links and neighbours, and builds requests.
//
// Used by next_hop_view and next_hop_watch. Every length is checked before use: a truncated message
// is refused, and an attribute of unexpected size counts as absent. The layouts are those of
// linux/netlink.h and linux/rtnetlink.h (native byte order, all parts aligned to 4). No I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clone/next_hops.h"

namespace shredway {

// One message with its parsed header; `body` follows the header.
struct NetlinkMessage {
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t sequence = 0;
  std::span<const uint8_t> body;
};

// Removes the first message of a datagram. False at its end, or if the rest is not a whole message.
bool next_message(std::span<const uint8_t>& datagram, NetlinkMessage& out);

// Error number (> 0) of an NLMSG_ERROR, 0 for an acknowledgement, EBADMSG if truncated.
int error_of(const NetlinkMessage& message);

// A route: the answer to append_route_request().
struct RouteMessage {
  uint8_t type = 0;        // RTN_*
  uint32_t interface = 0;  // 0: none
  bool encapsulated = false;
  std::optional<AddressBytes> gateway;  // may be IPv6 for an IPv4 destination
  std::optional<AddressBytes> source;
  // 0: use the link's. MTUs that the kernel learned from ICMP are ignored: anyone can forge them,
  // and neither sockets (udp_socket.h) nor clones follow them.
  uint32_t mtu = 0;
};
struct LinkMessage {
  uint32_t interface = 0;
  uint16_t type = 0;   // ARPHRD_*
  uint32_t flags = 0;  // IFF_*
  uint32_t mtu = 0;
  uint32_t mtu_ipv6 = 0;  // 0: the same
  std::optional<MacAddress> mac;
  std::string name;
  bool is_virtual = false;  // a device without hardware, such as veth
  bool segments = false;    // cuts UDP bursts itself, or passes them on whole; not in the message
};
struct NeighbourMessage {
  uint32_t interface = 0;
  AddressBytes address{};
  uint16_t state = 0;  // NUD_*; 0 if it was deleted
  std::optional<MacAddress> mac;
};
// nullopt: truncated, another kind of message, or neither IPv4 nor IPv6.
std::optional<RouteMessage> read_route(const NetlinkMessage& message);
std::optional<LinkMessage> read_link(const NetlinkMessage& message);
std::optional<NeighbourMessage> read_neighbour(const NetlinkMessage& message);

// ---- requests ----

// Requests the route of a UDP datagram to `to`; `from`: its source address (same family) or
// nullptr.
void append_route_request(std::vector<uint8_t>& out, uint32_t sequence, const AddressBytes& to,
                          const AddressBytes* from);
// Requests all entries: RTM_GETLINK or RTM_GETNEIGH.
void append_dump_request(std::vector<uint8_t>& out, uint32_t sequence, uint16_t type);

}  // namespace shredway
