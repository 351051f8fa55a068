#include "clone/netlink_socket.h"

#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace shredway {
namespace {

// The kernel limits dumps to 32 KiB; the message of a link with many virtual functions is longer.
constexpr size_t kBufferBytes = 128u << 10;

}  // namespace

NetlinkSocket::NetlinkSocket(int fd) : fd_(fd), buffer_(kBufferBytes) {}

NetlinkSocket::~NetlinkSocket() { close(fd_); }

std::unique_ptr<NetlinkSocket> NetlinkSocket::open(int protocol, std::span<const unsigned> groups,
                                                   uint32_t receive_buffer_bytes,
                                                   std::string& error) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
  const auto refused = [&](const char* call) -> std::unique_ptr<NetlinkSocket> {
    const int error_number = errno;
    error = "netlink " + std::to_string(protocol) + ": " + call + ": " + std::strerror(errno);
    if (fd >= 0) close(fd);
    errno = error_number;
    return nullptr;
  };
  if (fd < 0) return refused("socket");
  const int bytes = static_cast<int>(receive_buffer_bytes);
  // Exceeding the system's limit needs a privilege; the size that the kernel grants is sufficient.
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  sockaddr_nl any{};
  any.nl_family = AF_NETLINK;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0) return refused("bind");
  for (const unsigned group : groups)
    if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0)
      return refused("NETLINK_ADD_MEMBERSHIP");
  return std::unique_ptr<NetlinkSocket>(new NetlinkSocket(fd));
}

NetlinkSocket::Read NetlinkSocket::read(std::span<const uint8_t>& datagram) {
  for (;;) {
    sockaddr_nl sender{};
    iovec part = {buffer_.data(), buffer_.size()};
    msghdr message{};
    message.msg_name = &sender;
    message.msg_namelen = sizeof sender;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t length = recvmsg(fd_, &message, MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return errno == ENOBUFS ? Read::lost : Read::nothing;
    if (sender.nl_pid != 0) continue;  // 0 is the kernel
    if (message.msg_flags & MSG_TRUNC) return Read::lost;
    datagram = {buffer_.data(), static_cast<size_t>(length)};
    return Read::datagram;
  }
}

bool NetlinkSocket::send(std::span<const uint8_t> datagram) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  for (;;) {
    const ssize_t sent = sendto(fd_, datagram.data(), datagram.size(), MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel);
    if (sent >= 0) return static_cast<size_t>(sent) == datagram.size();
    if (errno != EINTR) return false;
  }
}

}  // namespace shredway
