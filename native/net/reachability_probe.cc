#include "net/reachability_probe.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "net/udp_batch.h"

namespace shredway {
namespace {

constexpr size_t kReadsMax = 64;  // per call

bool came_by_icmp(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control;
       control = CMSG_NXTHDR(&message, control)) {
    const bool ipv4 = control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR;
    const bool ipv6 = control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR;
    if ((!ipv4 && !ipv6) || control->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(control), sizeof error);
    return (error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6) &&
           error.ee_errno != EMSGSIZE && may_come_from_icmp(static_cast<int>(error.ee_errno));
  }
  return false;
}

bool is_without_route(int error_number) {
  return error_number == ENETUNREACH || error_number == EHOSTUNREACH || error_number == EHOSTDOWN ||
         error_number == ENETDOWN;
}

}  // namespace

std::unique_ptr<ReachabilityProbe> ReachabilityProbe::open(const Endpoint& to,
                                                           std::span<const uint8_t> datagram,
                                                           std::string& error) {
  const char* refused = nullptr;
  const bool ipv4 = to.is_ipv4();
  UdpSocket socket = open_udp_socket(ipv4, refused);
  const int on = 1;
  if (!refused && setsockopt(socket.fd(), ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
                             ipv4 ? IP_RECVERR : IPV6_RECVERR, &on, sizeof on) != 0)
    refused = ipv4 ? "IP_RECVERR" : "IPV6_RECVERR";
  if (refused) {
    error = std::string("cannot probe ") + to_string(to) + ": " + refused + ": " +
            std::generic_category().message(errno);
    return nullptr;
  }
  std::unique_ptr<ReachabilityProbe> probe(new ReachabilityProbe(std::move(socket), datagram));
  sockaddr_storage address{};
  const socklen_t bytes = to_sockaddr(to, address);
  const int fd = probe->socket_.fd();
  const bool sent = connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
                    send(fd, datagram.data(), datagram.size(), MSG_DONTWAIT) >= 0;
  if (sent) return probe;
  if (is_without_route(errno)) {
    probe->result_ = ProbeResult::unreachable;
    return probe;
  }
  error = "cannot probe " + to_string(to) + ": " + std::generic_category().message(errno);
  return nullptr;
}

// An answer decides, even if an error came as well.
ProbeResult ReachabilityProbe::check() {
  read_errors();
  read_answers();
  return result_;
}

void ReachabilityProbe::read_answers() {
  std::array<uint8_t, 256> bytes;
  for (size_t i = 0; i < kReadsMax; i++) {
    const ssize_t length = recv(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (length < 0) continue;  // a pending ICMP error, which this call has cleared
    const std::span answer(bytes.data(), static_cast<size_t>(length));
    if (answer.size() >= kSecretBytes &&
        std::equal(answer.begin(), answer.begin() + kSecretBytes, datagram_.begin()))
      result_ = ProbeResult::answered;
  }
}

void ReachabilityProbe::read_errors() {
  std::array<uint8_t, 512> quoted;
  alignas(cmsghdr) std::array<uint8_t, 256> control;
  for (size_t i = 0; i < kReadsMax; i++) {
    iovec part = {quoted.data(), quoted.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t length = recvmsg(socket_.fd(), &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (length < 0) return;
    const std::span payload(quoted.data(), std::min(static_cast<size_t>(length), quoted.size()));
    if (came_by_icmp(message) && is_quoted_in(payload) && result_ == ProbeResult::pending)
      result_ = ProbeResult::unreachable;
  }
}

bool ReachabilityProbe::is_quoted_in(std::span<const uint8_t> bytes) const {
  return bytes.size() >= kSecretBytes &&
         std::equal(bytes.begin(), bytes.begin() + kSecretBytes, datagram_.begin());
}

}  // namespace shredway
