// XDP frame: a whole Ethernet frame with one UDP datagram, for AF_XDP.
//
// XdpBatch writes it from a target's complete headers (clone_lists.h), which lack only the lengths,
// the identification and the checksums. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clone/clone.h"

namespace shredway {

inline constexpr uint32_t kXdpHeaderBytesMax = 14 + 40 + 8;  // Ethernet, IPv6, UDP

// Ones' complement: adds the carries, until 16 bits remain.
uint16_t xdp_fold_sum(uint64_t sum);

// Ones' complement sum of the payload in memory order, folded to 16 bits: computed once for all
// targets of a payload.
uint16_t xdp_payload_sum(const uint8_t* payload, size_t bytes);

// Writes the frame and returns its length. `out` has space for kXdpHeaderBytesMax + bytes.
// `identification`: of the IPv4 header; unused for IPv6.
uint32_t write_xdp_frame(uint8_t* out, const CloneTargetRow& row, bool ipv4, const uint8_t* payload,
                         uint16_t bytes, uint16_t payload_sum, uint16_t identification);

}  // namespace shredway
