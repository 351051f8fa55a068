// Trace packets of a block engine (TraceShred of Jito's ShredStream), for the control plane.
//
// They arrive on the same port as shreds. The worker recognises their form, counts them under a
// verdict of their own and copies them to a ring; the control plane decodes them. Nobody signs
// them, so nothing but statistics may depend on them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "net/receive_filter.h"
#include "system/spsc_ring.h"

namespace shredway {

struct Trace {
  uint64_t received_ns;  // CLOCK_REALTIME
  uint16_t source;       // counter number
  uint16_t length;
  std::array<uint8_t, kTraceBytesMax> packet;
};
static_assert(sizeof(Trace) == 128 && std::is_trivially_copyable_v<Trace>);

// One per worker. An engine sends a few trace packets a second; the rest of a flood is dropped.
using TraceRing = SpscRing<Trace, 64>;

// Protocol Buffers: field 1 is the name of a region, field 2 a timestamp, field 3 a number.
inline bool is_trace(const uint8_t* packet, size_t length) {
  constexpr uint8_t kRegion = 0x0a, kCreatedAt = 0x12;
  constexpr size_t kRegionBytesMax = 64;
  if (length < kTraceBytesMin || length > kTraceBytesMax || packet[0] != kRegion) return false;
  const size_t region_bytes = packet[1];
  if (region_bytes == 0 || region_bytes > kRegionBytesMax || 2 + region_bytes >= length)
    return false;
  const uint8_t* region = packet + 2;
  const auto is_printable = [](uint8_t byte) { return byte > 0x20 && byte < 0x7f; };
  return std::all_of(region, region + region_bytes, is_printable) &&
         region[region_bytes] == kCreatedAt;
}

}  // namespace shredway
