// Network of a run: a namespace of our own with a device that drops, or plain loopback.
//
// The namespace belongs to this process alone and is gone with it, however it ends. In it lo is up,
// and a "null device" (dummy, or ifb where the kernel has no dummy) takes everything for
// 10.77.0.0/16 and drops it, so that only sending costs. Without the right to make one, datagrams
// go to a socket on loopback that nobody reads: behaviour is the same, costs are not comparable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

namespace shredway::bench {

struct Network {
  bool isolated = false;    // own namespace with a null device
  std::string null_device;  // its name, empty without
  std::string null_kind;    // "dummy" or "ifb"
  std::string label;        // one sentence for the report
  int unread_socket = -1;   // loopback form: takes and drops what is sent
  uint16_t unread_port = 0;
};
uint16_t local_port(int fd);
// Address in host order.
Endpoint ipv4_endpoint(uint32_t address, uint16_t port);
// Must be called while the process has one thread.
Network prepare_network(bool isolate);

inline constexpr uint32_t kNullNetwork = 0x0a4d0000;  // 10.77.0.0/16
// Where address `number` of destinations lies in a network of 16 bits.
uint32_t place_in_network(uint32_t number);
// Address of destination `number` (0..9999): on the null device, or on loopback.
Endpoint null_destination(const Network& network, uint32_t number);
// Address on loopback, 127.<net>.x.y, for destinations that are read.
Endpoint loopback_destination(uint32_t number, uint16_t port);

// Whether the null device takes GSO messages whole (a NIC with UDP segmentation) or the kernel cuts
// them before (virtual and older NICs). False when the system refuses.
bool set_device_segmentation(const Network& network, bool device_segments);
bool set_segmentation_of(const char* device, bool device_segments);  // any, by its name

// What the null device took since it was made. One packet is one frame; GSO messages that the
// device segments itself are one.
struct DeviceCounts {
  uint64_t packets, bytes;
};
DeviceCounts device_counts(const Network& network);
// Of any device, by its name; `fd` is an open /proc/net/dev, of whichever namespace.
DeviceCounts read_device_counts(int fd, const char* device);
inline constexpr uint64_t kFrameHeaderBytes = 14 + 20 + 8;  // Ethernet, IPv4, UDP

}  // namespace shredway::bench
