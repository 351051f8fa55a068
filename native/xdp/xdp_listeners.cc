#include "xdp/xdp_listeners.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "net/multicast_socket.h"
#include "net/udp_socket.h"
#include "xdp/xdp_socket.h"

namespace shredway {
namespace {

bool is_loopback(const AddressBytes& address) {
  if (is_ipv4(address)) return address[kIpv4At] == 127;
  AddressBytes loopback{};
  loopback.back() = 1;
  return address == loopback;
}

bool is_link_local(const AddressBytes& address) {
  return !is_ipv4(address) && address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

// Addresses of this machine that a datagram from `interface` may have as its destination.
std::vector<AddressBytes> own_addresses(const std::string& interface, std::string& error) {
  std::vector<AddressBytes> addresses;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    error = xdp_error("getifaddrs", errno);
    return addresses;
  }
  for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const AddressBytes address = endpoint_from_sockaddr(entry->ifa_addr).address;
    if (is_loopback(address) || (is_link_local(address) && interface != entry->ifa_name)) continue;
    addresses.push_back(address);
  }
  freeifaddrs(first);
  return addresses;
}

bool before(const Endpoint& a, const Endpoint& b) {
  return a.address != b.address ? a.address < b.address : a.port < b.port;
}

}  // namespace

std::vector<Endpoint> endpoints_behind(const std::string& interface,
                                       const std::vector<Endpoint>& listen, std::string& error) {
  const std::vector<AddressBytes> own = own_addresses(interface, error);
  std::vector<Endpoint> endpoints;
  for (const Endpoint& listener : listen) {
    const bool ipv4 = listener.is_ipv4();
    if (listener.address == any_endpoint(ipv4).address) {
      for (const AddressBytes& address : own)
        if (is_ipv4(address) == ipv4) endpoints.push_back({address, listener.port});
    } else if (!is_loopback(listener.address) && !is_multicast(listener.address)) {
      endpoints.push_back(listener);
    }
  }
  std::sort(endpoints.begin(), endpoints.end(), before);
  endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
  return endpoints;
}

XdpInterfaceState read_interface_state(const std::string& interface) {
  XdpInterfaceState state;
  state.index = if_nametoindex(interface.c_str());
  const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (ioctl(socket.fd(), SIOCGIFFLAGS, &request) == 0) state.up = request.ifr_flags & IFF_UP;
  if (ioctl(socket.fd(), SIOCGIFHWADDR, &request) == 0) {
    state.ethernet = request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
    std::memcpy(state.mac.data(), request.ifr_hwaddr.sa_data, state.mac.size());
  }
  return state;
}

}  // namespace shredway
