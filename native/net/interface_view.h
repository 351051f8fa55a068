// Interface view: addresses and state of one network interface, and its multicast routes, which the
// kernel reports by netlink.
//
// Used by the control plane, about once a second. A routing daemon adds one route for each group,
// to this one address. A route to a range of multicast addresses is not a group.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace shredway {

struct InterfaceView {
  uint32_t index = 0;  // 0: the interface does not exist
  bool up = false;     // up, and its link too
  uint32_t mtu = 0;
  std::vector<std::array<uint8_t, 16>> addresses;  // as in an Endpoint; IPv4 first
  std::vector<std::array<uint8_t, 16>> groups;     // sorted
};

// Reads the network namespace of the calling thread. Fills `error` if the kernel refuses.
InterfaceView read_interface(const std::string& name, std::string& error);

}  // namespace shredway
