// Device features: what a network device does itself, as `ethtool -k` shows it.
#pragma once

#include <string>

namespace shredway {

// Index of the feature in the device's bits, or -1. `fd`: any socket of the device's namespace.
int feature_bit(int fd, const std::string& interface, const char* feature);
// True if the device segments UDP bursts, or passes them on whole (tx-udp-segmentation).
bool device_segments_udp(int fd, const std::string& interface);

}  // namespace shredway
