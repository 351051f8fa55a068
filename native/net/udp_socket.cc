#include "net/udp_socket.h"

#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "net/multicast_socket.h"
#include "net/receive_filter.h"

namespace shredway {
namespace {

// How an operator can repair it; empty if there is no general advice.
const char* remedy(int error_number) {
  switch (error_number) {
    case EADDRINUSE:
      return "; another program has this port: stop it or choose another port";
    case EADDRNOTAVAIL:
      return "; no interface of this machine has this address: configure one of its addresses";
    case EACCES:
      return "; ports below 1024 need CAP_NET_BIND_SERVICE";
    case EAFNOSUPPORT:
      return "; this kernel has the address family disabled";
    case EMFILE:
      return "; raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

std::string describe(const char* call, const Endpoint& endpoint, int error_number) {
  return std::string(call) + " " + to_string(endpoint) + ": " +
         std::generic_category().message(error_number) + remedy(error_number);
}

SocketResult failed(const std::string& call, const Endpoint& endpoint) {
  const int error_number = errno;
  return {UdpSocket(), describe(call.c_str(), endpoint, error_number), error_number};
}

uint32_t int_option(int fd, int option) {
  int value = 0;
  socklen_t bytes = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, option, &value, &bytes) != 0 || value < 0) return 0;
  return static_cast<uint32_t>(value);
}

// With CAP_NET_ADMIN the size may exceed the system's limit. 0: the system's default.
void set_buffer(int fd, int forced_option, int option, uint32_t buffer_bytes) {
  if (buffer_bytes == 0) return;
  const int requested = static_cast<int>(std::min<uint32_t>(buffer_bytes, INT_MAX / 2));
  if (!set_socket_option(fd, SOL_SOCKET, forced_option, requested))
    set_socket_option(fd, SOL_SOCKET, option, requested);
}

// Makes the socket neither learn path MTUs from ICMP nor follow those that the kernel learned
// elsewhere. IP_PMTUDISC_INTERFACE does the same, but refuses a datagram that exceeds the
// interface's MTU, while OMIT fragments it. An IPv6 socket needs both options: without IPV6_V6ONLY
// it would also send IPv4. Returns the name of the refused option, or nullptr.
const char* ignore_path_mtu(int fd, bool ipv4) {
  if (!set_socket_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_OMIT))
    return "IP_MTU_DISCOVER";
  if (!ipv4 && !set_socket_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_OMIT))
    return "IPV6_MTU_DISCOVER";
  return nullptr;
}

// open_udp_socket() with the address in the error text.
SocketResult open_for(const Endpoint& address) {
  const char* refused = nullptr;
  UdpSocket socket = open_udp_socket(address.is_ipv4(), refused);
  if (!socket.valid()) return failed(std::string(refused) + " for", address);
  return {std::move(socket), ""};
}

bool bind_to(int fd, const Endpoint& endpoint) {
  sockaddr_storage address;
  const socklen_t bytes = to_sockaddr(endpoint, address);
  return bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
}

bool enable_timestamps(int fd) {
  if (set_socket_option(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1)) return true;
#ifdef SO_TIMESTAMPNS_NEW
  return set_socket_option(fd, SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1);
#else
  return false;
#endif
}

// Drops all incoming datagrams, for two reasons: they would wake up a program that only sends, and
// they would fill the buffer of queued ICMP errors. ICMP errors do not pass this filter.
bool refuse_datagrams(int fd) {
  std::array<sock_filter, 1> program = {{BPF_STMT(BPF_RET | BPF_K, 0)}};
  return attach_filter(fd, program);
}

// Sets the IP header fields of sent datagrams. Returns the name of the refused option, or nullptr.
const char* set_head(int fd, const SendSocketOptions& options) {
  const bool ipv4 = options.source.is_ipv4();
  const int level = ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
  if (options.ttl && !set_socket_option(fd, level, ipv4 ? IP_TTL : IPV6_UNICAST_HOPS, options.ttl))
    return ipv4 ? "IP_TTL for" : "IPV6_UNICAST_HOPS for";
  const int traffic_class = options.dscp << 2;
  if (traffic_class && !set_socket_option(fd, level, ipv4 ? IP_TOS : IPV6_TCLASS, traffic_class))
    return ipv4 ? "IP_TOS for" : "IPV6_TCLASS for";
  return nullptr;
}

}  // namespace

UdpSocket::UdpSocket(UdpSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

UdpSocket& UdpSocket::operator=(UdpSocket&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

UdpSocket::~UdpSocket() {
  if (fd_ >= 0) close(fd_);
}

int UdpSocket::release() { return std::exchange(fd_, -1); }

bool set_socket_option(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

UdpSocket open_udp_socket(bool ipv4, const char*& refused) {
  UdpSocket socket(
      ::socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  refused = "socket";
  if (!socket.valid()) return socket;
  refused = nullptr;
  if (!ipv4 && !set_socket_option(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1))
    refused = "IPV6_V6ONLY";
  if (!refused) refused = ignore_path_mtu(socket.fd(), ipv4);
  if (!refused) return socket;
  const int error_number = errno;
  socket = UdpSocket();
  errno = error_number;  // close() may have changed it
  return socket;
}

SocketResult open_receive_socket(const ReceiveSocketOptions& options) {
  SocketResult opened = open_for(options.address);
  if (!opened.socket.valid()) return opened;
  const int fd = opened.socket.fd();
  if (!enable_timestamps(fd)) return failed("SO_TIMESTAMPNS for", options.address);
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.buffer_bytes);
  // Optional: without CAP_NET_ADMIN, values above net.core.busy_read are refused, and preferred
  // busy polling too. With it the kernel leaves the interrupts of the queue off while the worker
  // polls, if the device defers them (napi_defer_hard_irqs, gro_flush_timeout).
  if (options.busy_poll_us > 0) {
    const auto busy_poll_us = std::min<uint32_t>(options.busy_poll_us, INT_MAX);
    set_socket_option(fd, SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(busy_poll_us));
    set_socket_option(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1);
  }
  if (options.multicast) {
    if (std::string refused = prepare_for_groups(fd, options.address.is_ipv4()); !refused.empty())
      return {UdpSocket(), std::move(refused), errno};
  }
  if (options.share_port && !set_socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1))
    return failed("SO_REUSEPORT for", options.address);
  if (options.filter) {
    if (std::string refused = attach_receive_filter(fd); !refused.empty())
      return {UdpSocket(), std::move(refused), errno};
  }
  // A Merkle proof needs no checksum: programs that send with XDP often leave it out.
  if (!options.address.is_ipv4() && !set_socket_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1))
    return failed("UDP_NO_CHECK6_RX for", options.address);
  if (!bind_to(fd, options.address)) return failed("bind", options.address);
  return opened;
}

SocketResult open_send_socket(const SendSocketOptions& options) {
  const bool ipv4 = options.source.is_ipv4();
  SocketResult opened = open_for(options.source);
  if (!opened.socket.valid()) return opened;
  const int fd = opened.socket.fd();
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.buffer_bytes);
  const bool queued = ipv4 ? set_socket_option(fd, IPPROTO_IP, IP_RECVERR, 1)
                           : set_socket_option(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
  if (!queued) return failed(ipv4 ? "IP_RECVERR for" : "IPV6_RECVERR for", options.source);
  if (!refuse_datagrams(fd)) return failed("SO_ATTACH_FILTER for", options.source);
  if (const char* refused = set_head(fd, options)) return failed(refused, options.source);
  if (!bind_to(fd, options.source)) return failed("bind", options.source);
  return opened;
}

SocketResult open_bound_socket(const Endpoint& address, bool receives) {
  SocketResult opened = open_for(address);
  if (!opened.socket.valid()) return opened;
  const int fd = opened.socket.fd();
  if (!receives && !refuse_datagrams(fd)) return failed("SO_ATTACH_FILTER for", address);
  if (!bind_to(fd, address)) return failed("bind", address);
  return opened;
}

bool refuse_port_sharing(int fd) { return set_socket_option(fd, SOL_SOCKET, SO_REUSEADDR, 0); }

std::string connect_socket(int fd, const Endpoint& to) {
  sockaddr_storage address;
  const socklen_t bytes = to_sockaddr(to, address);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return "";
  return describe("connect", to, errno);
}

Endpoint local_endpoint(int fd) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return Endpoint();
  return endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&address));
}

void set_buffers(int fd, uint32_t bytes) {
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, bytes);
}

uint32_t receive_buffer_bytes(int fd) { return int_option(fd, SO_RCVBUF); }

uint32_t send_buffer_bytes(int fd) { return int_option(fd, SO_SNDBUF); }

uint32_t receive_drops(int fd) {
  std::array<uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t bytes = sizeof values;
  if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values.data(), &bytes) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

bool attach_filter(int fd, std::span<sock_filter> program) {
  const sock_fprog filter = {static_cast<uint16_t>(program.size()), program.data()};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

void detach_filter(int fd) {
  const int unused = 0;
  // Fails if no filter is attached.
  (void)setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused);
}

int take_pending_error(int fd) { return static_cast<int>(int_option(fd, SO_ERROR)); }

bool udp_gso_supported(int fd) {
  int segment_bytes = 0;
  socklen_t bytes = sizeof segment_bytes;
  return getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment_bytes, &bytes) == 0;
}

bool ipv6_supported() {
  const char* refused = nullptr;
  return open_udp_socket(false, refused).valid();
}

}  // namespace shredway
