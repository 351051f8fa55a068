// Packet message: one packet of a recvmmsg or sendmmsg call, with its address.
//
// Used by the sockets of the QUIC ingress. No I/O.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

namespace shredway {

// The bytes, the address, `part` and `message` must remain valid until the call.
inline void set_packet_message(mmsghdr& message, iovec& part, uint8_t* bytes, size_t length,
                               sockaddr_storage& address, socklen_t address_bytes) {
  part = {bytes, length};
  msghdr& header = message.msg_hdr;
  header = {};
  header.msg_name = &address;
  header.msg_namelen = address_bytes;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
}

}  // namespace shredway
