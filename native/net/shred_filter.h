// Shred filter: what the kernel programs on receive sockets know about datagrams.
//
// Shared by the programs of receive_filter.h, multicast_socket.h and steering.h. This layer does
// not include shred/wire.h; net_receive_filter_test.cc compares the values with it.
#pragma once

#include <cstdint>

namespace shredway::filter {

// A program on a socket sees the UDP header first.
inline constexpr uint32_t kUdpHeaderBytes = 8;

// Lengths of a shred: the shortest one, and the longest packet that contains one.
inline constexpr uint32_t kShredBytesMin = 1203, kPacketBytesMax = 1232;
// Offsets of fields in a shred.
inline constexpr uint32_t kVariantAt = 64, kSlotAt = 65, kFecSetIndexAt = 79;
// Range of the variant byte, with the variants that the relay refuses.
inline constexpr uint32_t kVariantMin = 0x40, kVariantMax = 0xbf;

}  // namespace shredway::filter
