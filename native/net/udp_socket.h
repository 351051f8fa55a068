// UDP sockets of the whole product, the control plane's included: opened, sized, steered and closed
// here, and nowhere else.
//
// Called when something opens (never on the packet path). Each failure names the call, the address
// and the errno in words, and says what would help.
//
// No socket believes ICMP about the MTU of a path (IP_PMTUDISC_OMIT, for IPv6 too): anybody can
// forge such a message, and one would cut every datagram to a destination into fragments for ten
// minutes. Datagrams leave whole whenever the interface takes them, IPv4 ones without DF.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

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
  // The descriptor, which the caller owns from now on.
  int release();

 private:
  int fd_ = -1;
};

struct SocketResult {
  UdpSocket socket;
  std::string error;     // empty on success
  int error_number = 0;  // errno of what failed
};

// A socket without an address, non-blocking, with the options that every UDP socket has. An IPv6
// socket is IPv6-only. Invalid on failure: errno says why, `refused` which call.
UdpSocket open_udp_socket(bool ipv4, const char*& refused);

struct ReceiveSocketOptions {
  Endpoint address;           // port 0: the kernel chooses
  uint32_t buffer_bytes;      // wish, 0: the system's default; see receive_buffer_bytes()
  bool share_port;            // SO_REUSEPORT, for several workers
  uint32_t busy_poll_us = 0;  // SO_BUSY_POLL, 0: off
};
// Non-blocking, with kernel receive timestamps (SO_TIMESTAMPNS). An IPv6 address is IPv6-only.
SocketResult open_receive_socket(const ReceiveSocketOptions& options);

struct SendSocketOptions {
  Endpoint source;        // unspecified address and port 0: the kernel chooses
  uint32_t buffer_bytes;  // wish, 0: the system's default; see send_buffer_bytes()
  uint8_t ttl = 0;        // or hop limit; 0: the system's default
  uint8_t dscp = 0;       // 0 .. 63
};
// Non-blocking, with ICMP errors queued (IP_RECVERR / IPV6_RECVERR). Receives nothing: whatever
// strangers send to its port is dropped, so that it cannot crowd out the queued errors.
SocketResult open_send_socket(const SendSocketOptions& options);
// For sockets that Node.js reads and writes (its UV_UDP handles take a descriptor). Bound, with
// nothing else set. Node.js sets SO_REUSEADDR on a descriptor that it takes, which lets any local
// user bind the same port: refuse_port_sharing() takes that back, and returns false on failure.
SocketResult open_bound_socket(const Endpoint& address);
bool refuse_port_sharing(int fd);
// For a socket that sends to one address only. Returns an error text, empty on success.
std::string connect_socket(int fd, const Endpoint& to);

Endpoint local_endpoint(int fd);
// What the kernel granted (half of it is book-keeping, as the kernel counts).
uint32_t receive_buffer_bytes(int fd);
uint32_t send_buffer_bytes(int fd);
// Datagrams that the kernel dropped because the buffer was full (SO_MEMINFO), since the socket was
// opened.
uint32_t receive_drops(int fd);
// Takes the pending error of the socket (SO_ERROR), 0 when there is none.
int take_pending_error(int fd);
// True when this kernel segments UDP (UDP_SEGMENT, Linux 4.18).
bool udp_gso_supported(int fd);
// True when the machine can open an IPv6 socket.
bool ipv6_supported();

}  // namespace shredway
