// Network of a run: a private namespace with a device that drops packets, or plain loopback.
//
// The namespace belongs to this process alone and ends with it. In it, lo is up, and a "null
// device" (dummy, or ifb if the kernel has no dummy) drops everything for 10.77.0.0/16, so that
// only sending costs. Without the privilege, datagrams go to a loopback socket that is never read:
// behaviour is the same, but costs are not comparable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

namespace shredway::bench {

struct Network {
  bool isolated = false;    // true: private namespace with a null device
  std::string null_device;  // its name, or empty
  std::string null_kind;    // "dummy" or "ifb"
  std::string label;        // one sentence for the report
  int unread_socket = -1;   // without a namespace: receives and drops what is sent
  uint16_t unread_port = 0;
};
uint16_t local_port(int fd);
// Address in host order.
Endpoint ipv4_endpoint(uint32_t address, uint16_t port);
// Must be called while the process has only one thread.
Network prepare_network(bool isolate);

inline constexpr uint32_t kNullNetwork = 0x0a4d0000;  // 10.77.0.0/16
// Offset of destination address `number` in a /16 network.
uint32_t place_in_network(uint32_t number);
// Address of destination `number` (0..9999): on the null device, or on loopback.
Endpoint null_destination(const Network& network, uint32_t number);
// Address on loopback, 127.<net>.x.y, for destinations that are read.
Endpoint loopback_destination(uint32_t number, uint16_t port);

// Selects whether the null device accepts whole GSO messages (a NIC with UDP segmentation) or the
// kernel segments them (virtual and older NICs). Returns false if the system refuses.
bool set_device_segmentation(const Network& network, bool device_segments);
bool set_segmentation_of(const char* device, bool device_segments);  // any device, by name

// Packets and bytes that the null device accepted since it was created. One packet is one frame; a
// GSO message that the device segments counts as one.
struct DeviceCounts {
  uint64_t packets, bytes;
};
DeviceCounts device_counts(const Network& network);
// Counts of any device, by name; `fd` is an open /proc/net/dev of any namespace.
DeviceCounts read_device_counts(int fd, const char* device);
inline constexpr uint64_t kFrameHeaderBytes = 14 + 20 + 8;  // Ethernet, IPv4, UDP

}  // namespace shredway::bench
