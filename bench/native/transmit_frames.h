// Transmit frames: complete Ethernet frames with UDP datagrams, for transmit paths without a
// network stack.
//
// Every byte is valid, checksums included: the sum of a payload is computed once and shared by all
// destinations. Used by the ring loop; no I/O.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "transmit_network.h"

namespace shredway::bench {

class FrameHeads {
 public:
  FrameHeads(const TransmitPath& path, uint16_t source_port);
  size_t size() const { return heads_.size(); }
  // Writes the frame for destination `i`; `to` needs kFrameHeaderBytes more than the payload.
  // Returns its length.
  uint32_t write(uint8_t* to, size_t i, const uint8_t* payload, size_t payload_bytes,
                 uint32_t payload_sum) const;

 private:
  struct Head {
    std::array<uint8_t, kFrameHeaderBytes> bytes{};  // lengths and checksums 0
    uint32_t ip_sum = 0;                             // of the IP header
    uint32_t udp_sum = 0;                            // of pseudo-header and UDP header
  };
  std::vector<Head> heads_;
};

// Internet checksum, folded, in host byte order.
uint32_t sum_of(const uint8_t* bytes, size_t count);

}  // namespace shredway::bench
