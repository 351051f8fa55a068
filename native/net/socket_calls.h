// The data plane's system calls as a table, so that tests can replace a call and make it fail.
//
// udp_batch and paced_sender send and receive all datagrams through such a table. Signatures,
// results and errno are those of the system calls.
#pragma once

#include <poll.h>
#include <sys/socket.h>

namespace shredway {

struct SocketCalls {
  int (*recvmmsg)(int, mmsghdr*, unsigned, int, timespec*);
  int (*sendmmsg)(int, mmsghdr*, unsigned, int);
  ssize_t (*recvmsg)(int, msghdr*, int);
  int (*poll)(pollfd*, nfds_t, int);
};

const SocketCalls& system_socket_calls();

}  // namespace shredway
