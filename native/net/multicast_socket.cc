#include "net/multicast_socket.h"

#include <linux/filter.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "net/shred_filter.h"
#include "net/steering.h"
#include "net/udp_socket.h"

namespace shredway {
namespace {

using filter::kShredBytesMin, filter::kPacketBytesMax, filter::kUdpHeaderBytes;
using filter::kVariantAt, filter::kVariantMin, filter::kVariantMax;
constexpr int kIpv6MulticastAll = 29;  // IPV6_MULTICAST_ALL, Linux 4.20
// Negative offsets count from the IP header instead of the UDP header.
constexpr uint32_t kIpHeader = static_cast<uint32_t>(SKF_NET_OFF);
constexpr uint32_t kIpv4DestinationAt = 16, kIpv6DestinationAt = 24;
constexpr uint32_t kHeartbeat = 0x445a0001, kHeartbeatBytes = 4;

std::string refused(const std::string& call, const char* remedy = "") {
  return call + ": " + std::generic_category().message(errno) + remedy;
}

// Instructions with jumps to the end of the program, which drops the datagram.
class DroppingProgram {
 public:
  void add(uint16_t code, uint32_t value) { steps_.push_back(BPF_STMT(code, value)); }
  void add(const SteeringSteps& steps) { steps_.insert(steps_.end(), steps.begin(), steps.end()); }
  // Continues if the comparison is true (or false), otherwise drops.
  void require(uint16_t comparison, uint32_t value, bool wanted = true) {
    jumps_.push_back({steps_.size(), wanted});
    steps_.push_back(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | comparison | BPF_K), value, 0, 0));
  }
  // Skips `steps` instructions if the comparison is true.
  void skip_if(uint16_t comparison, uint32_t value, uint8_t steps) {
    steps_.push_back(
        BPF_JUMP(static_cast<uint16_t>(BPF_JMP | comparison | BPF_K), value, steps, 0));
  }
  void pass() { add(BPF_RET | BPF_K, 0xffffffff); }
  bool attach(int fd) {
    const size_t end = steps_.size();
    add(BPF_RET | BPF_K, 0);
    for (const Jump& jump : jumps_) {
      const auto distance = static_cast<uint8_t>(end - jump.at - 1);
      (jump.wanted ? steps_[jump.at].jf : steps_[jump.at].jt) = distance;
    }
    return attach_filter(fd, steps_);
  }

 private:
  struct Jump {
    size_t at;
    bool wanted;
  };
  std::vector<sock_filter> steps_;
  std::vector<Jump> jumps_;
};

std::string change_membership(int fd, const GroupMembership& membership, bool join) {
  const char* name = join ? "cannot join " : "cannot leave ";
  int result = 0;
  if (is_ipv4(membership.group)) {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, membership.group.data() + kIpv4At, 4);
    std::memcpy(&request.imr_address, membership.interface_address.data() + kIpv4At, 4);
    request.imr_ifindex = static_cast<int>(membership.interface);
    result = setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &request,
                        sizeof request);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, membership.group.data(), membership.group.size());
    request.ipv6mr_interface = membership.interface;
    result = setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &request,
                        sizeof request);
  }
  if (result == 0 || (join ? errno == EADDRINUSE : errno == EADDRNOTAVAIL)) return "";
  return refused(name + to_string({membership.group, 0}) + " on interface " +
                     std::to_string(membership.interface),
                 errno == ENOBUFS ? "; raise net.ipv4.igmp_max_memberships" : "");
}

}  // namespace

std::string prepare_for_groups(int fd, bool ipv4) {
  if (!set_socket_option(fd, SOL_SOCKET, SO_REUSEADDR, 1)) return refused("SO_REUSEADDR");
  if (ipv4) {
    if (!set_socket_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0)) return refused("IP_MULTICAST_ALL");
    return set_socket_option(fd, IPPROTO_IP, IP_PKTINFO, 1) ? "" : refused("IP_PKTINFO");
  }
  if (!set_socket_option(fd, IPPROTO_IPV6, kIpv6MulticastAll, 0))
    return refused("IPV6_MULTICAST_ALL");
  return set_socket_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) ? ""
                                                                  : refused("IPV6_RECVPKTINFO");
}

std::string attach_group_steering(int fd, bool ipv4, uint32_t worker, uint32_t workers) {
  if (worker >= workers)
    return "expected a worker below " + std::to_string(workers) + ", got " + std::to_string(worker);
  DroppingProgram program;
  program.add(BPF_LD | BPF_B | BPF_ABS,
              kIpHeader + (ipv4 ? kIpv4DestinationAt : kIpv6DestinationAt));
  if (ipv4) program.add(BPF_ALU | BPF_RSH | BPF_K, 4);
  program.require(BPF_JEQ, ipv4 ? 0xe : 0xff);
  program.add(BPF_LD | BPF_W | BPF_LEN, 0);
  program.require(BPF_JGT, kUdpHeaderBytes + kPacketBytesMax, false);
  program.skip_if(BPF_JGE, kUdpHeaderBytes + kShredBytesMin, worker == 0 ? 4 : 1);
  // Shorter datagrams: heartbeats at worker 0.
  program.require(BPF_JGE, worker == 0 ? kUdpHeaderBytes + kHeartbeatBytes : ~uint32_t{0});
  if (worker == 0) {
    program.add(BPF_LD | BPF_W | BPF_ABS, kUdpHeaderBytes);
    program.require(BPF_JEQ, kHeartbeat);
    program.pass();
  }
  program.add(BPF_LD | BPF_B | BPF_ABS, kUdpHeaderBytes + kVariantAt);
  program.require(BPF_JGE, kVariantMin);
  program.require(BPF_JGT, kVariantMax, false);
  program.add(steering_steps(kUdpHeaderBytes, workers));
  program.require(BPF_JEQ, worker);
  program.pass();
  if (program.attach(fd)) return "";
  return refused("cannot steer the shreds of multicast groups (SO_ATTACH_FILTER)");
}

bool is_multicast(const AddressBytes& address) {
  return is_ipv4(address) ? address[kIpv4At] >> 4 == 0xe : address[0] == 0xff;
}

std::string join_group(int fd, const GroupMembership& membership) {
  return change_membership(fd, membership, true);
}

std::string leave_group(int fd, const GroupMembership& membership) {
  return change_membership(fd, membership, false);
}

bool is_group_heartbeat(const ReceivedPacket& packet) {
  constexpr std::array<uint8_t, kHeartbeatBytes> kBytes = {0x44, 0x5a, 0x00, 0x01};
  return packet.length >= kBytes.size() && std::equal(kBytes.begin(), kBytes.end(), packet.bytes);
}

}  // namespace shredway
