#include "net/interface_view.h"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "net/multicast_socket.h"
#include "net/udp_socket.h"

namespace shredway {
namespace {

constexpr int kNetlinkGetStrictCheck = 12;  // NETLINK_GET_STRICT_CHK, Linux 4.20
constexpr timeval kAnswerTime = {2, 0};
constexpr size_t kBufferBytes = 64u << 10;

std::string failed(const char* call) {
  return std::string(call) + ": " + std::generic_category().message(errno);
}

AddressBytes address_of(int family, const void* bytes) {
  if (family == AF_INET) return mapped_ipv4(bytes);
  AddressBytes out;
  std::memcpy(out.data(), bytes, out.size());
  return out;
}

std::string read_addresses(const std::string& name, InterfaceView& view) {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return failed("getifaddrs");
  for (const ifaddrs* entry = first; entry; entry = entry->ifa_next) {
    if (name != entry->ifa_name || !entry->ifa_addr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const AddressBytes address = endpoint_from_sockaddr(entry->ifa_addr).address;
    view.addresses.insert(family == AF_INET ? view.addresses.begin() : view.addresses.end(),
                          address);
  }
  freeifaddrs(first);
  return "";
}

std::string read_state(const std::string& name, InterfaceView& view) {
  const char* call = nullptr;
  const UdpSocket socket = open_udp_socket(true, call);
  if (!socket.valid()) return failed(call);
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  if (ioctl(socket.fd(), SIOCGIFFLAGS, &request) != 0)
    return errno == ENODEV ? "" : failed("SIOCGIFFLAGS");
  view.up = (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
  return "";
}

// Requests the routes of the main table that leave by the interface. Kernels before 4.20 ignore the
// conditions; the answers are checked again.
struct RouteRequest {
  nlmsghdr header;
  rtmsg route;
  rtattr interface_header;
  uint32_t interface;
};

bool request_routes(int fd, uint8_t family, uint32_t interface) {
  RouteRequest request{};
  request.header = {sizeof request, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, family, 0};
  request.route.rtm_family = family;
  request.route.rtm_table = RT_TABLE_MAIN;
  request.interface_header = {RTA_LENGTH(sizeof request.interface), RTA_OIF};
  request.interface = interface;
  return send(fd, &request, sizeof request, 0) == static_cast<ssize_t>(sizeof request);
}

void take_route(const nlmsghdr* message, InterfaceView& view) {
  if (message->nlmsg_type != RTM_NEWROUTE || message->nlmsg_len < NLMSG_LENGTH(sizeof(rtmsg)))
    return;
  const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(message));
  const bool ipv4 = route->rtm_family == AF_INET;
  const size_t bytes = ipv4 ? 4 : 16;
  if (route->rtm_table != RT_TABLE_MAIN || route->rtm_dst_len != bytes * 8) return;
  const void* destination = nullptr;
  uint32_t interface = 0;
  size_t left = message->nlmsg_len - NLMSG_LENGTH(sizeof(rtmsg));
  for (const rtattr* attribute = RTM_RTA(route); RTA_OK(attribute, left);
       attribute = RTA_NEXT(attribute, left)) {
    if (attribute->rta_type == RTA_DST && RTA_PAYLOAD(attribute) == bytes)
      destination = RTA_DATA(attribute);
    if (attribute->rta_type == RTA_OIF && RTA_PAYLOAD(attribute) == sizeof interface)
      std::memcpy(&interface, RTA_DATA(attribute), sizeof interface);
  }
  if (!destination || interface != view.index) return;
  const AddressBytes group = address_of(route->rtm_family, destination);
  if (is_multicast(group)) view.groups.push_back(group);
}

// Returns false at the end of the answer; then errno is 0 if the answer is complete.
bool take_answer(int fd, std::vector<uint8_t>& buffer, InterfaceView& view) {
  const ssize_t length = recv(fd, buffer.data(), buffer.size(), 0);
  if (length <= 0) return false;
  size_t left = static_cast<size_t>(length);
  for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data());
       NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
    errno = 0;
    if (message->nlmsg_type == NLMSG_DONE) return false;
    if (message->nlmsg_type == NLMSG_ERROR) {
      errno = -static_cast<const nlmsgerr*>(NLMSG_DATA(message))->error;
      return false;
    }
    take_route(message, view);
  }
  return true;
}

std::string read_groups(InterfaceView& view) {
  const UdpSocket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return failed("routing netlink");
  const int strict = 1;
  (void)setsockopt(socket.fd(), SOL_NETLINK, kNetlinkGetStrictCheck, &strict, sizeof strict);
  (void)setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime, sizeof kAnswerTime);
  std::vector<uint8_t> buffer(kBufferBytes);
  for (const uint8_t family : {uint8_t{AF_INET}, uint8_t{AF_INET6}}) {
    if (!request_routes(socket.fd(), family, view.index)) return failed("RTM_GETROUTE");
    while (take_answer(socket.fd(), buffer, view)) {
    }
    // Without IPv6, or without a route, the kernel reports that nothing exists.
    const bool refused = errno != 0 && errno != ENOENT && errno != EOPNOTSUPP && errno != ESRCH;
    if (refused) return failed("RTM_GETROUTE");
  }
  std::sort(view.groups.begin(), view.groups.end());
  view.groups.erase(std::unique(view.groups.begin(), view.groups.end()), view.groups.end());
  return "";
}

}  // namespace

InterfaceView read_interface(const std::string& name, std::string& error) {
  InterfaceView view;
  view.index = if_nametoindex(name.c_str());
  if (view.index == 0) {
    if (errno != ENODEV && errno != ENXIO) error = failed("if_nametoindex");
    return view;
  }
  error = read_state(name, view);
  if (error.empty()) error = read_addresses(name, view);
  if (error.empty()) error = read_groups(view);
  return view;
}

}  // namespace shredway
