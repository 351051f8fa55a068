#include "net/socket_calls.h"

namespace shredway {

const SocketCalls& system_socket_calls() {
  static constexpr SocketCalls kSystem = {&::recvmmsg, &::sendmmsg, &::recvmsg, &::poll};
  return kSystem;
}

}  // namespace shredway
