#include "network.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "test/device_feature.h"

namespace shredway::bench {
namespace {

constexpr const char* kNullDevice = "null0";
constexpr uint32_t kLoopbackNetwork = 0x7f4d0000;  // 127.77.0.0/16

class ControlSocket {
 public:
  ControlSocket() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~ControlSocket() { close(fd_); }
  bool call(unsigned long request, void* argument) const {
    return ioctl(fd_, request, argument) == 0;
  }

 private:
  int fd_;
};

ifreq request_for(const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

bool bring_up(const ControlSocket& control, const char* device) {
  ifreq request = request_for(device);
  if (!control.call(SIOCGIFFLAGS, &request)) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return control.call(SIOCSIFFLAGS, &request);
}

bool set_address(const ControlSocket& control, unsigned long call, uint32_t address) {
  ifreq request = request_for(kNullDevice);
  sockaddr_in value{};
  value.sin_family = AF_INET;
  value.sin_addr.s_addr = htonl(address);
  std::memcpy(&request.ifr_addr, &value, sizeof value);
  return control.call(call, &request);
}

struct LinkRequest {
  nlmsghdr header{};
  ifinfomsg info{};
  alignas(4) uint8_t attributes[128]{};
  size_t used = 0;

  rtattr* add(uint16_t type, const void* bytes, size_t length) {
    const rtattr attribute{static_cast<uint16_t>(RTA_LENGTH(length)), type};
    uint8_t* at = attributes + used;
    std::memcpy(at, &attribute, sizeof attribute);
    if (length) std::memcpy(at + sizeof attribute, bytes, length);
    used += RTA_ALIGN(RTA_LENGTH(length));
    return reinterpret_cast<rtattr*>(at);
  }
};

// RTM_NEWLINK for a device of this kind. Returns false if the kernel refuses.
bool add_device(const char* kind) {
  LinkRequest request;
  request.add(IFLA_IFNAME, kNullDevice, std::strlen(kNullDevice) + 1);
  const size_t nest_begin = request.used;
  rtattr* nest = request.add(IFLA_LINKINFO, nullptr, 0);
  request.add(IFLA_INFO_KIND, kind, std::strlen(kind) + 1);
  nest->rta_len = static_cast<uint16_t>(request.used - nest_begin);
  request.header.nlmsg_len =
      static_cast<uint32_t>(sizeof request.header + sizeof request.info + request.used);
  request.header.nlmsg_type = RTM_NEWLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;

  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  struct {
    nlmsghdr header;
    nlmsgerr error;
    uint8_t rest[512];
  } answer{};
  const bool made = send(fd, &request, request.header.nlmsg_len, 0) > 0 &&
                    recv(fd, &answer, sizeof answer, 0) > 0 &&
                    answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error == 0;
  close(fd);
  return made;
}

bool enter_namespace() {
  if (unshare(CLONE_NEWNET) == 0) return true;
  return errno == EPERM && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

bool make_null_device(Network& network) {
  const ControlSocket control;
  if (!bring_up(control, "lo")) return false;
  for (const char* kind : {"dummy", "ifb"}) {
    if (!add_device(kind)) continue;
    network.null_device = kNullDevice;
    network.null_kind = kind;
    return set_address(control, SIOCSIFADDR, kNullNetwork + 1) &&
           set_address(control, SIOCSIFNETMASK, 0xffff0000) && bring_up(control, kNullDevice);
  }
  return false;
}

void open_unread_socket(Network& network) {
  network.unread_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int least = 1;
  (void)setsockopt(network.unread_socket, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  (void)setsockopt(network.unread_socket, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  (void)bind(network.unread_socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  network.unread_port = local_port(network.unread_socket);
}

}  // namespace

Endpoint ipv4_endpoint(uint32_t address, uint16_t port) {
  sockaddr_in value{};
  value.sin_family = AF_INET;
  value.sin_port = htons(port);
  value.sin_addr.s_addr = htonl(address);
  return endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&value));
}

uint32_t place_in_network(uint32_t number) { return (number / 250 + 1) * 256 + number % 250 + 1; }

uint16_t local_port(int fd) {
  sockaddr_in address{};
  socklen_t bytes = sizeof address;
  (void)getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes);
  return ntohs(address.sin_port);
}

Network prepare_network(bool isolate) {
  Network network;
  if (isolate && enter_namespace()) {
    network.isolated = make_null_device(network);
    network.label =
        network.isolated
            ? "private network namespace; relays are fed over its loopback and send to a " +
                  network.null_kind + " device that drops everything"
            : "private network namespace, but no null device: destinations are an "
              "unread loopback socket; costs are not comparable";
    if (!network.isolated) (void)bring_up(ControlSocket(), "lo");
  } else {
    network.label =
        std::string(isolate ? "missing privilege to create a network namespace" : "as asked") +
        ": destinations are an unread loopback socket; costs are not "
        "comparable";
  }
  if (!network.isolated) open_unread_socket(network);
  return network;
}

Endpoint null_destination(const Network& network, uint32_t number) {
  if (network.isolated) return ipv4_endpoint(kNullNetwork + place_in_network(number), 9000);
  return ipv4_endpoint(kLoopbackNetwork + place_in_network(number), network.unread_port);
}

Endpoint loopback_destination(uint32_t number, uint16_t port) {
  return ipv4_endpoint(kLoopbackNetwork + place_in_network(number), port);
}

bool set_device_segmentation(const Network& network, bool device_segments) {
  return network.isolated && set_segmentation_of(kNullDevice, device_segments);
}

bool set_segmentation_of(const char* device, bool device_segments) {
  return test::set_device_feature(device, "tx-udp-segmentation", device_segments);
}

DeviceCounts device_counts(const Network& network) {
  if (!network.isolated) return {};
  FILE* file = std::fopen("/proc/thread-self/net/dev", "re");
  if (!file) return {};
  const DeviceCounts counts = read_device_counts(fileno(file), kNullDevice);
  std::fclose(file);
  return counts;
}

DeviceCounts read_device_counts(int fd, const char* device) {
  std::array<char, 16384> text;
  size_t length = 0;
  while (length + 1 < text.size()) {
    const ssize_t got =
        pread(fd, text.data() + length, text.size() - 1 - length, static_cast<off_t>(length));
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  text[length] = 0;
  const char* at = std::strstr(text.data(), (std::string(device) + ':').c_str());
  if (!at) return {};
  unsigned long long in_bytes = 0, in_packets = 0, out_bytes = 0, out_packets = 0;
  std::sscanf(at + std::strlen(device) + 1, "%llu %llu %*u %*u %*u %*u %*u %*u %llu %llu",
              &in_bytes, &in_packets, &out_bytes, &out_packets);
  return {in_packets + out_packets, in_bytes + out_bytes};  // ifb counts sent packets as received
}

}  // namespace shredway::bench
