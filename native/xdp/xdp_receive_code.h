// XDP receive code: the BPF program that selects the shreds of an interface for AF_XDP.
//
// The kernel runs it for every frame that arrives. It redirects a frame to a socket if all of this
// holds; everything else goes on to the network stack, and thus to the sockets:
//   - it is addressed to the interface's own MAC address;
//   - IPv4 without options and not a fragment, or IPv6 without extension headers;
//   - UDP, to an address and port of the map of endpoints;
//   - 1203 to 1232 bytes with the variant byte of a shred, as for receive_filter.h.
// A frame with a VLAN tag has another Ethernet type, so it passes. Ownership challenges, traces and
// noise pass too, and the filter of the socket decides about them.
#pragma once

#include <linux/bpf.h>

#include <array>
#include <cstdint>
#include <vector>

#include "net/address.h"

namespace shredway {

// Key of the map of endpoints.
struct XdpEndpointKey {
  AddressBytes address;  // IPv4 as ::ffff:a.b.c.d
  uint16_t port;         // network order
  uint16_t zero = 0;
};
static_assert(sizeof(XdpEndpointKey) == 20);

// In front of a redirected frame, if the driver allows it: CLOCK_MONOTONIC in ns.
inline constexpr uint32_t kReceiveTimeBytes = sizeof(uint64_t);

struct XdpReceiveCode {
  std::array<uint8_t, 6> mac;  // of the interface
  int endpoints_fd;            // hash map with XdpEndpointKey
  int sockets_fd;              // XSKMAP: row queue * workers + worker
  uint32_t workers;            // FEC sets are steered as by steering.h
};
std::vector<bpf_insn> xdp_receive_code(const XdpReceiveCode& options);

}  // namespace shredway
