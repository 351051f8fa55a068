#include "minimal_forwarder.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>

#include "clocks.h"
#include "network.h"

namespace shredway::bench {

int open_loopback_socket(const LoopbackSocketOptions& options) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int buffer_bytes = 64 << 20;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0)
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes);
  const timeval look_up{0, 100'000};
  (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look_up, sizeof look_up);
  const int on = 1;
  if (options.times) (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  // Accepts no packets from outside, whatever the address.
  (void)setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, options.device,
                   static_cast<socklen_t>(std::strlen(options.device) + 1));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(options.any_address ? INADDR_ANY : INADDR_LOOPBACK);
  (void)bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return fd;
}

MinimalForwarder::MinimalForwarder(std::vector<sockaddr_in> destinations, int cpu)
    : destinations_(std::move(destinations)),
      fd_(open_loopback_socket({})),
      port_(local_port(fd_)),
      thread_([this, cpu] {
        pin(0, cpu);
        thread_number_ = own_thread();
        run();
      }) {
  while (thread_number_ == 0) sleep_ns(100'000);
}

MinimalForwarder::~MinimalForwarder() {
  stopping_ = true;
  thread_.join();
  close(fd_);
}

void MinimalForwarder::run() {
  enum { RECEIVE_MAX = 64, SEND_MAX = 64, PACKET_BYTES = 1280 };
  static thread_local char buffers[RECEIVE_MAX][PACKET_BYTES];
  mmsghdr in[RECEIVE_MAX] = {}, out[SEND_MAX] = {};
  iovec parts[RECEIVE_MAX], payloads[RECEIVE_MAX];
  const int send_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (int i = 0; i < RECEIVE_MAX; i++) {
    parts[i] = {buffers[i], PACKET_BYTES};
    in[i].msg_hdr.msg_iov = &parts[i];
    in[i].msg_hdr.msg_iovlen = 1;
  }
  for (mmsghdr& message : out) {
    message.msg_hdr.msg_namelen = sizeof(sockaddr_in);
    message.msg_hdr.msg_iovlen = 1;
  }
  while (!stopping_) {
    const int received = recvmmsg(fd_, in, RECEIVE_MAX, MSG_WAITFORONE, nullptr);
    unsigned count = 0;
    for (int i = 0; i < received; i++) {
      payloads[i] = {buffers[i], in[i].msg_len};
      for (sockaddr_in& destination : destinations_) {
        out[count].msg_hdr.msg_name = &destination;
        out[count].msg_hdr.msg_iov = &payloads[i];
        if (++count < SEND_MAX) continue;
        (void)sendmmsg(send_fd, out, count, 0);
        count = 0;
      }
    }
    if (count) (void)sendmmsg(send_fd, out, count, 0);
  }
  close(send_fd);
}

}  // namespace shredway::bench
