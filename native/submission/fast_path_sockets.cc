#include "submission/fast_path_sockets.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/thread.h"

namespace shredway {
namespace {

class SystemSockets final : public FastPathSockets {
 public:
  int duplicate(int fd) override { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }
  void close(int fd) override { ::close(fd); }
  bool watch(int epoll, int fd, uint32_t number) override {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = number;
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
  }
  void unwatch(int epoll, int fd) override { epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr); }
  ssize_t peek(int fd, void* into, size_t length) override {
    return recv(fd, into, length, MSG_PEEK | MSG_DONTWAIT);
  }
  // The number of waiting bytes is read before the number of received ones: bytes that arrive in
  // between make the difference larger, never smaller.
  bool count_read(int fd, uint32_t& bytes) override {
    int waiting = 0;
    tcp_info info{};
    socklen_t length = sizeof info;
    if (ioctl(fd, SIOCINQ, &waiting) != 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0)
      return false;
    bytes = static_cast<uint32_t>(info.tcpi_bytes_received) - static_cast<uint32_t>(waiting);
    return true;
  }
  ssize_t write(int fd, const void* bytes, size_t length) override {
    return ::send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void shut_down(int fd) override { shutdown(fd, SHUT_RDWR); }
  uint64_t now_ns() override { return clock_ns(CLOCK_MONOTONIC); }
};

}  // namespace

FastPathSockets& system_fast_path_sockets() {
  static SystemSockets sockets;
  return sockets;
}

}  // namespace shredway
