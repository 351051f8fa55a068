#include "net/socket_calls.h"

#include "net/thread.h"

namespace shredway {

uint64_t system_clock_ns(clockid_t clock) { return clock_ns(clock); }

const SocketCalls& system_socket_calls() {
  static constexpr SocketCalls kSystem = {&::recvmmsg, &::sendmmsg, &::recvmsg, &::poll};
  return kSystem;
}

}  // namespace shredway
