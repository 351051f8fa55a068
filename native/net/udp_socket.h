// UDP sockets: the only place where sockets of the whole product, also those of the control plane,
// are opened, sized, steered and closed.
//
// Used at start-up, never on the packet path. Each error names the call, the address and the errno
// in words, and says how to repair it.
//
// No socket follows ICMP messages about the path MTU (IP_PMTUDISC_OMIT, also for IPv6). Anyone can
// forge such a message, and one would fragment every datagram to a destination for ten minutes.
// Datagrams that fit the interface's MTU leave unfragmented, IPv4 ones without DF.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/address.h"

struct sock_filter;

namespace shredway {

// Owns a file descriptor.
class UdpSocket {
 public:
  UdpSocket() = default;
  explicit UdpSocket(int fd) : fd_(fd) {}
  UdpSocket(UdpSocket&& other) noexcept;
  UdpSocket& operator=(UdpSocket&& other) noexcept;
  ~UdpSocket();
  int fd() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  // Releases the descriptor to the caller.
  int release();

 private:
  int fd_ = -1;
};

// setsockopt() with an integer. False: errno has the reason.
bool set_socket_option(int fd, int level, int option, int value);

struct SocketResult {
  UdpSocket socket;
  std::string error;     // empty on success
  int error_number = 0;  // errno of the failed call
};

// A non-blocking socket without an address, with the options that every UDP socket has. An IPv6
// socket is IPv6-only. Invalid on failure: errno has the reason, `refused` the call.
UdpSocket open_udp_socket(bool ipv4, const char*& refused);

struct ReceiveSocketOptions {
  Endpoint address;           // port 0: the kernel chooses
  uint32_t buffer_bytes = 0;  // requested size, 0: the system's default; see receive_buffer_bytes()
  bool share_port = false;    // SO_REUSEPORT, for several workers
  uint32_t busy_poll_us = 0;  // SO_BUSY_POLL and SO_PREFER_BUSY_POLL, 0: off
  bool filter = false;        // only what can be a shred; see receive_filter.h
  bool multicast = false;     // joins groups, and reports destinations; see multicast_socket.h
};
// Non-blocking, with kernel receive timestamps (SO_TIMESTAMPNS). An IPv6 address is IPv6-only.
SocketResult open_receive_socket(const ReceiveSocketOptions& options);

struct SendSocketOptions {
  Endpoint source;        // unspecified address and port 0: the kernel chooses
  uint32_t buffer_bytes;  // requested size, 0: the system's default; see send_buffer_bytes()
  uint8_t ttl = 0;        // or IPv6 hop limit; 0: the system's default
  uint8_t dscp = 0;       // 0 .. 63
};
// Non-blocking, with ICMP errors queued (IP_RECVERR / IPV6_RECVERR). It drops all datagrams that
// arrive at its port, so that they cannot displace the queued errors.
SocketResult open_send_socket(const SendSocketOptions& options);
// A bound socket without other options, for Node.js (its UV_UDP handles accept a descriptor).
// Node.js sets SO_REUSEADDR on the descriptor, which lets any local user bind the same port.
// refuse_port_sharing() undoes that and returns false on failure.
// `receives`: false for a socket that only sends; the kernel drops what arrives at its port.
SocketResult open_bound_socket(const Endpoint& address, bool receives = true);
bool refuse_port_sharing(int fd);
// For a socket that sends to one address only. Returns an error text, empty on success.
std::string connect_socket(int fd, const Endpoint& to);

Endpoint local_endpoint(int fd);
// Requests a size of both buffers.
void set_buffers(int fd, uint32_t bytes);
// Size that the kernel granted (the kernel uses half of it for bookkeeping).
uint32_t receive_buffer_bytes(int fd);
uint32_t send_buffer_bytes(int fd);
// Datagrams that the kernel dropped because the buffer was full (SO_MEMINFO), since the socket was
// opened.
uint32_t receive_drops(int fd);
// Replaces the filter of incoming datagrams (classic BPF, relative to the UDP header). False: the
// kernel refuses, and errno has the reason.
bool attach_filter(int fd, std::span<sock_filter> program);
void detach_filter(int fd);
// Returns and clears the pending error of the socket (SO_ERROR), or 0.
int take_pending_error(int fd);
// True if this kernel segments UDP (UDP_SEGMENT, Linux 4.18).
bool udp_gso_supported(int fd);
// True if the machine can open an IPv6 socket.
bool ipv6_supported();

}  // namespace shredway
