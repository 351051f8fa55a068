#include "transmit_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "minimal_forwarder.h"

namespace shredway::bench {
namespace {

constexpr const char* kOut = "out0";
constexpr const char* kIn = "in0";  // in the receiver's namespace
constexpr MacAddress kOutMac{0x02, 0x53, 0x57, 0, 0, 1};
constexpr MacAddress kInMac{0x02, 0x53, 0x57, 0, 0, 2};
constexpr MacAddress kNobodysMac{0x02, 0x53, 0x57, 0, 0, 3};
constexpr uint32_t kDropNetwork = 0x0a4f0000;  // 10.79.0.0/16
constexpr uint32_t kSinkNetwork = 0x0a500000;  // 10.80.0.0/16
constexpr uint8_t kNetworkBits = 16;
// Addresses of the two ends; neither is a destination.
constexpr uint32_t kSenderAddress = kDropNetwork + 1, kReceiverAddress = kDropNetwork + 0xfffe;
constexpr uint16_t kDropPort = 9000;

std::string failure(const std::string& what) { return what + ": " + std::strerror(errno); }

AddressBytes address_bytes(uint32_t address) { return ipv4_endpoint(address, 0).address; }

// One request to the kernel's routing tables, and its answer.
class Request {
 public:
  template <typename Body>
  Request(uint16_t type, uint16_t flags, const Body& body) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&header_, sizeof header_);
    append(&body, sizeof body);
  }
  Request& add(uint16_t type, const void* value, size_t length) {
    const rtattr attribute{static_cast<uint16_t>(RTA_LENGTH(length)), type};
    append(&attribute, sizeof attribute);
    if (length) append(value, length);
    return *this;
  }
  Request& add_text(uint16_t type, const char* text) {
    return add(type, text, std::strlen(text) + 1);
  }
  template <typename Value>
  Request& add_value(uint16_t type, const Value& value) {
    return add(type, &value, sizeof value);
  }
  Request& add_address(uint16_t type, uint32_t address) { return add_value(type, htonl(address)); }
  template <typename Inside>
  Request& nest(uint16_t type, Inside inside) {
    const size_t begin = bytes_.size();
    add(type, nullptr, 0);
    inside();
    const auto length = static_cast<uint16_t>(bytes_.size() - begin);
    std::memcpy(bytes_.data() + begin, &length, sizeof length);
    return *this;
  }
  template <typename Value>
  Request& plain(const Value& value) {
    append(&value, sizeof value);
    return *this;
  }
  // Sends the request; returns false with errno set if the kernel refuses.
  bool ask() {
    const auto length = static_cast<uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &length, sizeof length);
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return false;
    struct {
      nlmsghdr header;
      nlmsgerr error;
      uint8_t rest[1024];
    } answer{};
    const bool answered =
        send(fd, bytes_.data(), bytes_.size(), 0) > 0 && recv(fd, &answer, sizeof answer, 0) > 0;
    close(fd);
    if (answered) errno = answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
    return answered && errno == 0;
  }

 private:
  void append(const void* value, size_t length) {
    const auto* from = static_cast<const uint8_t*>(value);
    bytes_.insert(bytes_.end(), from, from + length);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  nlmsghdr header_{};
  std::vector<uint8_t> bytes_;
};

// A pair of devices, one of them in its own namespace.
bool add_pair(int receiver_namespace) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, ifinfomsg{});
  request.add_text(IFLA_IFNAME, kOut).add_value(IFLA_ADDRESS, kOutMac);
  request.nest(IFLA_LINKINFO, [&] {
    request.add_text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, [&] {
      request.nest(VETH_INFO_PEER, [&] {
        request.plain(ifinfomsg{}).add_text(IFLA_IFNAME, kIn).add_value(IFLA_ADDRESS, kInMac);
        request.add_value(IFLA_NET_NS_FD, receiver_namespace);
      });
    });
  });
  return request.ask();
}

bool bring_up(const char* device) {
  // IPv6 sends packets on a new device by itself, which would be counted in the measurement.
  const std::string switch_path =
      std::string("/proc/sys/net/ipv6/conf/") + device + "/disable_ipv6";
  const int fd = open(switch_path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    (void)!write(fd, "1", 1);
    close(fd);
  }
  ifinfomsg body{};
  body.ifi_index = static_cast<int>(if_nametoindex(device));
  body.ifi_flags = body.ifi_change = IFF_UP;
  return Request(RTM_NEWLINK, 0, body).ask();
}

bool add_address(uint32_t interface, uint32_t address) {
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = kNetworkBits;
  body.ifa_index = interface;
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, body);
  return request.add_address(IFA_LOCAL, address).add_address(IFA_ADDRESS, address).ask();
}

bool add_neighbour(uint32_t interface, uint32_t address, const MacAddress& mac) {
  ndmsg body{};
  body.ndm_family = AF_INET;
  body.ndm_ifindex = static_cast<int>(interface);
  body.ndm_state = NUD_PERMANENT;
  Request request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, body);
  return request.add_address(NDA_DST, address).add_value(NDA_LLADDR, mac).ask();
}

// A whole network: this machine's own (RTN_LOCAL), or on the link of the interface (RTN_UNICAST).
bool add_route(uint32_t network, uint8_t type, uint32_t interface) {
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_dst_len = kNetworkBits;
  body.rtm_table = type == RTN_LOCAL ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK;
  body.rtm_type = type;
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, body);
  return request.add_address(RTA_DST, network).add_value(RTA_OIF, interface).ask();
}

MacAddress mac_of(const std::string& device) {
  MacAddress mac{};
  ifreq request{};
  std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (ioctl(fd, SIOCGIFHWADDR, &request) == 0)
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  close(fd);
  return mac;
}

int open_own(const char* path) { return open(path, O_RDONLY | O_CLOEXEC); }

// The CPU mask of the receiver's device, through a sysfs of the receiver's namespace that only this
// process sees. Returns -1 if the system refuses.
int open_receive_cpus() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return -1;
  if (mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) return -1;
  const std::string path = std::string("/sys/class/net/") + kIn + "/queues/rx-0/rps_cpus";
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  (void)umount2("/sys", MNT_DETACH);
  return fd;
}

TransmitPath path(const std::string& device, const NextHop& hop) { return {device, hop, {}}; }

}  // namespace

std::unique_ptr<TransmitNetwork> TransmitNetwork::make(const Network& network,
                                                       uint32_t destinations, std::string& error) {
  if (!network.isolated) {
    error = "no private network namespace";
    return nullptr;
  }
  std::unique_ptr<TransmitNetwork> made(new TransmitNetwork);
  error = made->build(network, destinations);
  return error.empty() ? std::move(made) : nullptr;
}

TransmitNetwork::~TransmitNetwork() {
  for (const int fd :
       {own_namespace_, receiver_namespace_, own_devices_, receiver_devices_, receive_cpus_})
    if (fd >= 0) close(fd);
}

std::string TransmitNetwork::build(const Network& network, uint32_t destinations) {
  null_device_ = network.null_device;
  own_namespace_ = open_own("/proc/thread-self/ns/net");
  own_devices_ = open_own("/proc/thread-self/net/dev");
  if (unshare(CLONE_NEWNET) != 0) return failure("a second network namespace");
  receiver_namespace_ = open_own("/proc/thread-self/ns/net");
  receiver_devices_ = open_own("/proc/thread-self/net/dev");
  if (setns(own_namespace_, CLONE_NEWNET) != 0) return failure("setns");
  if (!add_pair(receiver_namespace_)) return failure("a veth pair");
  if (setns(receiver_namespace_, CLONE_NEWNET) != 0) return failure("setns");
  const std::string error = build_receiver();
  if (setns(own_namespace_, CLONE_NEWNET) != 0) return failure("setns");
  if (!error.empty()) return error;

  const uint32_t out = if_nametoindex(kOut), null = if_nametoindex(null_device_.c_str());
  if (!bring_up(kOut) || !add_address(out, kSenderAddress) ||
      !add_route(kSinkNetwork, RTN_UNICAST, out))
    return failure("the sender's end of the pair");
  // A device without ARP puts its own address into every frame.
  const MacAddress null_mac = mac_of(null_device_);
  for (uint32_t i = 0; i < destinations; i++) {
    if (!add_neighbour(out, kDropNetwork + place_in_network(i), kNobodysMac) ||
        !add_neighbour(out, kSinkNetwork + place_in_network(i), kInMac) ||
        !add_neighbour(null, kNullNetwork + place_in_network(i), null_mac))
      return failure("a permanent neighbour");
  }
  null_hop_ = {null, null_mac, null_mac, address_bytes(kNullNetwork + 1)};
  veth_hop_ = {out, kOutMac, kNobodysMac, address_bytes(kSenderAddress)};
  return "";
}

// Runs in the receiver's namespace.
std::string TransmitNetwork::build_receiver() {
  // The sender must be a neighbour, and its address must not be one of the receiver's, which would
  // be refused.
  if (!bring_up("lo") || !bring_up(kIn) || !add_address(if_nametoindex(kIn), kReceiverAddress))
    return failure("the receiver's end of the pair");
  if (!add_route(kSinkNetwork, RTN_LOCAL, if_nametoindex("lo")))
    return failure("the receiver's addresses");
  receive_cpus_ = open_receive_cpus();
  return "";
}

TransmitPath TransmitNetwork::null_path(uint32_t count) const {
  TransmitPath made = path(null_device_, null_hop_);
  for (uint32_t i = 0; i < count; i++)
    made.destinations.push_back(ipv4_endpoint(kNullNetwork + place_in_network(i), kDropPort));
  return made;
}

TransmitPath TransmitNetwork::veth_path(uint32_t count) const {
  TransmitPath made = path(kOut, veth_hop_);
  for (uint32_t i = 0; i < count; i++)
    made.destinations.push_back(ipv4_endpoint(kDropNetwork + place_in_network(i), kDropPort));
  return made;
}

TransmitPath TransmitNetwork::sink_path(uint32_t count, uint16_t port) const {
  TransmitPath made = path(kOut, veth_hop_);
  made.hop.to = kInMac;
  for (uint32_t i = 0; i < count; i++)
    made.destinations.push_back(ipv4_endpoint(kSinkNetwork + place_in_network(i), port));
  return made;
}

DeviceCounts TransmitNetwork::delivered(const TransmitPath& path) const {
  return path.device == kOut ? read_device_counts(receiver_devices_, kIn)
                             : read_device_counts(own_devices_, path.device.c_str());
}

int TransmitNetwork::open_sink_socket() const {
  if (setns(receiver_namespace_, CLONE_NEWNET) != 0) return -1;
  const int fd = open_loopback_socket({.times = true, .any_address = true, .device = kIn});
  return setns(own_namespace_, CLONE_NEWNET) == 0 ? fd : -1;
}

int TransmitNetwork::open_frame_socket() const {
  if (setns(receiver_namespace_, CLONE_NEWNET) != 0) return -1;
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_ifindex = static_cast<int>(if_nametoindex(kIn));
  const int on = 1;
  const bool ready = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on) == 0 &&
                     setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) == 0;
  if (setns(own_namespace_, CLONE_NEWNET) == 0 && ready) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

bool TransmitNetwork::receive_on(int cpu) {
  if (receive_cpus_ < 0) return false;
  char mask[160];
  // Words of 32 bits, the highest first.
  int length = std::snprintf(mask, sizeof mask, "%x", cpu < 0 ? 0u : 1u << (cpu % 32));
  for (int word = 0; cpu >= 0 && word < cpu / 32; word++)
    length += std::snprintf(mask + length, sizeof mask - static_cast<size_t>(length), ",00000000");
  return pwrite(receive_cpus_, mask, static_cast<size_t>(length), 0) == length;
}

}  // namespace shredway::bench
