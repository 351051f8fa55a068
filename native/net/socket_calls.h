// The system calls of the data plane, as values: tests replace one to see it fail.
//
// Read by udp_batch and paced_sender, which move all of their datagrams through such a table.
// Signatures, results and errno are the system's own.
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
