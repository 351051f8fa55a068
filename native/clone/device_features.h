// Device features: what a network device does itself, as `ethtool -k` shows it.
#pragma once

#include <cstdint>
#include <string>

#include "system/named_enum.h"

namespace shredway {

// Index of the feature in the device's bits, or -1. `fd`: any socket of the device's namespace.
int feature_bit(int fd, const std::string& interface, const char* feature);
// True if the device segments UDP bursts, or passes them on whole (tx-udp-segmentation).
bool device_segments_udp(int fd, const std::string& interface);
// Queues in use; 1 of each if the driver does not say.
struct DeviceQueues {
  uint32_t transmit = 1;
  uint32_t receive = 1;
};
DeviceQueues device_queues(int fd, const std::string& interface);

// How a device sends by AF_XDP. X(name, meaning)
#define SHREDWAY_XDP_SUPPORTS(X)                 \
  X(unknown, "a kernel before 6.3 does not say") \
  X(copy, "the kernel copies each frame")        \
  X(zero_copy, "the driver reads the frames itself")
SHREDWAY_NAMED_ENUM(XdpSupport, uint8_t, kXdpSupportCount, xdp_support_name, SHREDWAY_XDP_SUPPORTS)
// `index`: an interface of the calling thread's namespace.
XdpSupport device_xdp_support(uint32_t index);

}  // namespace shredway
