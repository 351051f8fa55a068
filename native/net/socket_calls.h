// The data plane's system calls as a table, so that tests can replace a call and make it fail, and
// that a simulation can replace the network and the clock (memory_network.h).
//
// udp_batch and paced_sender send and receive all datagrams through such a table. Signatures,
// results and errno are those of the system calls.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <cstdint>

namespace shredway {

uint64_t system_clock_ns(clockid_t clock);

struct SocketCalls {
  int (*recvmmsg)(int, mmsghdr*, unsigned, int, timespec*);
  int (*sendmmsg)(int, mmsghdr*, unsigned, int);
  ssize_t (*recvmsg)(int, msghdr*, int);
  int (*poll)(pollfd*, nfds_t, int);
  uint64_t (*clock_ns)(clockid_t) = &system_clock_ns;
  ssize_t (*send)(int, const void*, size_t, int) = &::send;  // for AF_XDP
};

const SocketCalls& system_socket_calls();

}  // namespace shredway
