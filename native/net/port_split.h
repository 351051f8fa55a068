// One UDP port with two receive buffers: one for QUIC packets of connections, one for first
// packets.
//
// Anyone can flood a port with first packets from forged addresses. In one buffer they would
// displace the packets of connected clients. The kernel program looks at the first bit of a
// datagram, which is 1 in a long header (RFC 9000, 17.2), and selects the buffer.
#pragma once

#include "net/udp_socket.h"

namespace shredway {

// Opens a second socket at the port of `fd`, which open_bound_socket() opened. From then on it
// receives the datagrams whose first bit is 1, and `fd` all others, also empty ones. Both may send.
SocketResult split_port(int fd);

}  // namespace shredway
