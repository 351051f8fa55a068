#include "clone_support.h"

#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "device_feature.h"

namespace shredway::test {
namespace {

constexpr int kPatienceMs = 3000;

std::string text_of_number(const char* format, int number) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

}  // namespace

// ---- cables ---------------------------------------------------------------------------------

Endpoint behind_cable(bool is_ipv4, uint32_t number, uint16_t port) {
  const auto high = static_cast<uint8_t>(number >> 8), low = static_cast<uint8_t>(number);
  if (is_ipv4) return ipv4(10, 77, high, low, port);
  Endpoint endpoint;
  endpoint.address = {0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low};
  endpoint.port = port;
  return endpoint;
}

CloneCable::CloneCable(const Lab& lab, const std::string& name_of_it, int number_of_it)
    : name(name_of_it), number(number_of_it) {
  lab.cable(name, number);
  interface = lab.interface(name);
  lab.ip(text_of_number("addr add 10.%d.0.1/16 dev ", number) + name + "\n" +
         text_of_number("addr add fd00:%d::1/64 nodad dev ", number) + name + "\n");
  lab.ip_theirs(text_of_number("addr add 10.%d.0.2/16 dev ", number) + name + "\n" +
                text_of_number("addr add fd00:%d::2/64 nodad dev ", number) + name + "\n" +
                "route replace local 10.77.0.0/16 dev lo\n" +
                "route replace local fd77::/64 dev lo\n");
}

NextHop CloneCable::hop(bool is_ipv4) const {
  NextHop hop;
  hop.interface = interface;
  hop.from = {2, 0, 0, 0, 0, static_cast<uint8_t>(number)};
  hop.to = {2, 0, 0, 0, 1, static_cast<uint8_t>(number)};
  hop.source = address_of(text_of_number(is_ipv4 ? "10.%d.0.1" : "fd00:%d::1", number));
  return hop;
}

std::vector<CloneTarget> CloneCable::targets(bool is_ipv4, uint32_t count, uint16_t port,
                                             uint32_t first) const {
  std::vector<CloneTarget> out;
  for (uint32_t i = first; i < first + count; i++)
    out.push_back(target(i, behind_cable(is_ipv4, i, port)));
  return out;
}

void CloneCable::set_offload(bool segmentation, bool checksums) const {
  CHECK(set_device_feature(name, "tx-checksum-ip-generic", checksums));
  CHECK(set_device_feature(name, "tx-udp-segmentation", segmentation));
}

// ---- receivers ------------------------------------------------------------------------------

void lead_behind_cable(const Lab& lab) {
  lab.ip(
      "route add 10.77.0.0/16 via 10.1.0.2\n"
      "neigh replace 10.1.0.2 lladdr 02:00:00:00:01:01 dev cable nud permanent\n");
}

CloneReceiver::CloneReceiver(const Lab& lab, bool is_ipv4) {
  lab.in_theirs([&] {
    Endpoint any = is_ipv4 ? ipv4(0, 0, 0, 0) : Endpoint{};
    SocketResult result = open_receive_socket({any, 256u << 20, false, 0});
    CHECK_EQ(result.error, std::string());
    socket_ = std::move(result.socket);
  });
  port_ = local_endpoint(socket_.fd()).port;
  const int on = 1;
  for (const auto& [level, option] :
       is_ipv4 ? std::vector<std::pair<int, int>>{{IPPROTO_IP, IP_PKTINFO},
                                                  {IPPROTO_IP, IP_RECVTTL},
                                                  {IPPROTO_IP, IP_RECVTOS}}
               : std::vector<std::pair<int, int>>{{IPPROTO_IPV6, IPV6_RECVPKTINFO},
                                                  {IPPROTO_IPV6, IPV6_RECVHOPLIMIT},
                                                  {IPPROTO_IPV6, IPV6_RECVTCLASS}})
    CHECK_EQ(setsockopt(socket_.fd(), level, option, &on, sizeof on), 0);
}

namespace {

template <typename T>
T data_of(const cmsghdr* control) {
  T value;
  std::memcpy(&value, CMSG_DATA(control), sizeof value);
  return value;
}

void read_controls(msghdr& message, CloneArrival& arrival) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control;
       control = CMSG_NXTHDR(&message, control)) {
    const int type = control->cmsg_type;
    if (control->cmsg_level == IPPROTO_IP) {
      if (type == IP_TTL) arrival.ttl = data_of<int>(control);
      if (type == IP_TOS) arrival.traffic_class = data_of<uint8_t>(control);
      if (type == IP_PKTINFO) {
        const auto to = data_of<in_pktinfo>(control).ipi_addr;
        arrival.to.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        std::memcpy(&arrival.to.address[12], &to, sizeof to);
      }
    } else if (control->cmsg_level == IPPROTO_IPV6) {
      if (type == IPV6_HOPLIMIT) arrival.ttl = data_of<int>(control);
      if (type == IPV6_TCLASS) arrival.traffic_class = data_of<int>(control);
      if (type == IPV6_PKTINFO) {
        const auto to = data_of<in6_pktinfo>(control).ipi6_addr;
        std::memcpy(arrival.to.address.data(), &to, sizeof to);
      }
    }
  }
}

}  // namespace

std::vector<CloneArrival> CloneReceiver::read(size_t expected) {
  std::vector<CloneArrival> out;
  std::array<uint8_t, 65536> bytes;
  for (;;) {
    pollfd entry = {socket_.fd(), POLLIN, 0};
    if (poll(&entry, 1, out.size() < expected ? kPatienceMs : 0) <= 0) return out;
    alignas(cmsghdr) std::array<uint8_t, 512> control;
    sockaddr_storage from{};
    iovec part = {bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t length = recvmsg(socket_.fd(), &message, MSG_DONTWAIT);
    if (length < 0) return out;
    CloneArrival arrival{Bytes(bytes.begin(), bytes.begin() + length),
                         endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&from)),
                         {},
                         -1,
                         -1};
    read_controls(message, arrival);
    arrival.to.port = port_;
    out.push_back(std::move(arrival));
  }
}

// ---- planes and labs ------------------------------------------------------------------------

Burst::Burst(Random& random, uint32_t count, uint16_t bytes) : payload_bytes(bytes) {
  for (uint32_t i = 0; i < count; i++) payloads.push_back(random_bytes(random, bytes));
  for (Bytes& payload : payloads) parts.push_back({payload.data(), payload.size()});
}

std::unique_ptr<ClonePlane> open_plane(uint32_t workers) {
  std::string error;
  auto plane = ClonePlane::open({.workers = workers, .interface = "shwtest%d"}, error);
  if (!plane) report_failure(__FILE__, __LINE__, error);
  return plane;
}

void in_clone_lab(const std::function<void(Lab&)>& body) {
  if (access("/dev/net/tun", R_OK | W_OK) != 0 || !Lab::run(body)) skip_test(kNeedsClone);
}

}  // namespace shredway::test
