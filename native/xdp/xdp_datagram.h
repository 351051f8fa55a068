// XDP datagram: the UDP datagram in an Ethernet frame, with the checks that the network stack would
// have made before a socket got it.
//
// XdpReceiver reads every frame of AF_XDP with it. A frame may have any bytes and any length. No
// I/O, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/address.h"
#include "system/named_enum.h"

namespace shredway {

// Why a frame contains no datagram for the relay. X(name, meaning)
#define SHREDWAY_FRAME_FAULTS(X)                                                         \
  X(none, "the frame contains a datagram")                                               \
  X(not_udp, "not UDP over IPv4 or IPv6, or a fragment, options or an extension header") \
  X(length, "the lengths of the headers contradict each other or exceed the frame")      \
  X(checksum, "wrong checksum of the IPv4 header or of the datagram")                    \
  X(sender, "an address that no other machine may send from: loopback, multicast and others")
SHREDWAY_NAMED_ENUM(FrameFault, uint8_t, kFrameFaultCount, frame_fault_name, SHREDWAY_FRAME_FAULTS)

struct XdpDatagram {
  const uint8_t* payload = nullptr;  // inside the frame
  uint16_t length = 0;               // of the payload, without the padding of the frame
  Endpoint from, to;
};

// Reads the frame and fills `out`; on a fault, `out` is incomplete.
//
// The checksum of a datagram may be
//   - correct;
//   - 0: the sender computed none. This is accepted for IPv6 too, as the receive sockets do;
//   - the sum of the pseudo-header alone. The frame then has never left this machine: a sender
//     behind a virtual interface (veth) leaves the rest to a network card, which it does not have.
FrameFault read_xdp_frame(const uint8_t* frame, size_t bytes, XdpDatagram& out);

}  // namespace shredway
