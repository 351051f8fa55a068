#include "net/address.h"

#include <arpa/inet.h>

namespace shredway {
namespace {

constexpr std::array<uint8_t, kIpv4At> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kIpv4Bytes = 4;

}  // namespace

bool is_ipv4(const AddressBytes& address) {
  return std::memcmp(address.data(), kIpv4Prefix.data(), kIpv4Prefix.size()) == 0;
}

AddressBytes mapped_ipv4(const void* bytes) {
  AddressBytes address;
  std::memcpy(address.data(), kIpv4Prefix.data(), kIpv4Prefix.size());
  std::memcpy(address.data() + kIpv4At, bytes, kIpv4Bytes);
  return address;
}

Endpoint any_endpoint(bool ipv4) {
  constexpr std::array<uint8_t, kIpv4Bytes> kAnyIpv4{};
  Endpoint endpoint;
  if (ipv4) endpoint.address = mapped_ipv4(kAnyIpv4.data());
  return endpoint;
}

Endpoint endpoint_from_bytes(const uint8_t* bytes) {
  Endpoint endpoint;
  std::memcpy(endpoint.address.data(), bytes, endpoint.address.size());
  endpoint.port = static_cast<uint16_t>(bytes[16] | bytes[17] << 8);
  return endpoint;
}

Endpoint endpoint_from_sockaddr(const sockaddr* address) {
  Endpoint endpoint;
  if (address->sa_family == AF_INET) {
    sockaddr_in ipv4;
    std::memcpy(&ipv4, address, sizeof ipv4);
    endpoint.address = mapped_ipv4(&ipv4.sin_addr);
    endpoint.port = ntohs(ipv4.sin_port);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 ipv6;
    std::memcpy(&ipv6, address, sizeof ipv6);
    std::memcpy(endpoint.address.data(), &ipv6.sin6_addr, endpoint.address.size());
    endpoint.port = ntohs(ipv6.sin6_port);
  }
  return endpoint;
}

socklen_t to_sockaddr(const Endpoint& endpoint, sockaddr_storage& out) {
  std::memset(&out, 0, sizeof out);
  if (endpoint.is_ipv4()) {
    sockaddr_in ipv4{};
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(endpoint.port);
    std::memcpy(&ipv4.sin_addr, endpoint.address.data() + kIpv4At, kIpv4Bytes);
    std::memcpy(&out, &ipv4, sizeof ipv4);
    return sizeof ipv4;
  }
  sockaddr_in6 ipv6{};
  ipv6.sin6_family = AF_INET6;
  ipv6.sin6_port = htons(endpoint.port);
  std::memcpy(&ipv6.sin6_addr, endpoint.address.data(), endpoint.address.size());
  std::memcpy(&out, &ipv6, sizeof ipv6);
  return sizeof ipv6;
}

std::string host_text(const Endpoint& endpoint) {
  char text[INET6_ADDRSTRLEN];
  if (endpoint.is_ipv4())
    return inet_ntop(AF_INET, endpoint.address.data() + kIpv4At, text, sizeof text);
  return inet_ntop(AF_INET6, endpoint.address.data(), text, sizeof text);
}

std::string to_string(const Endpoint& endpoint) {
  const std::string host = host_text(endpoint);
  const std::string port = std::to_string(endpoint.port);
  return endpoint.is_ipv4() ? host + ":" + port : "[" + host + "]:" + port;
}

}  // namespace shredway
