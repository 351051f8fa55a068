// Addresses of sources, destinations and listeners: parsed bytes in tables, sockaddr in calls.
//
// One value type for IPv4 and IPv6, comparable and hashable byte by byte: 16 address bytes (IPv4 as
// ::ffff:a.b.c.d) and a port in host order.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace shredway {

using AddressBytes = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

inline constexpr size_t kIpv4At = 12;  // offset of an IPv4 address in AddressBytes
bool is_ipv4(const AddressBytes& address);
// `bytes`: the four bytes of an IPv4 address.
AddressBytes mapped_ipv4(const void* bytes);

struct Endpoint {
  AddressBytes address{};  // IPv4-mapped if is_ipv4()
  uint16_t port = 0;
  bool is_ipv4() const { return shredway::is_ipv4(address); }
  // fe80::/10.
  bool is_link_local() const { return address[0] == 0xfe && (address[1] & 0xc0) == 0x80; }
  bool operator==(const Endpoint& other) const = default;
};

inline constexpr size_t kEndpointBytes = 18;  // in tables: 16 address bytes, u16 port little-endian
// The unspecified address of a family, with port 0.
Endpoint any_endpoint(bool ipv4);
Endpoint endpoint_from_bytes(const uint8_t* bytes);
// For AF_INET or AF_INET6; other families give the unspecified endpoint.
Endpoint endpoint_from_sockaddr(const sockaddr* address);
// Returns the length of the sockaddr. IPv4 endpoints give sockaddr_in.
socklen_t to_sockaddr(const Endpoint& endpoint, sockaddr_storage& out);
std::string host_text(const Endpoint& endpoint);  // "192.0.2.1", "2001:db8::1"
std::string to_string(const Endpoint& endpoint);  // "192.0.2.1:9000", "[2001:db8::1]:9000"

}  // namespace shredway
