// Interface view: addresses and state of one network interface, and its multicast routes, which the
// kernel reports by netlink.
//
// Used by the control plane, about once a second. A routing daemon adds one route for each group,
// to this one address. A route to a range of multicast addresses is not a group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

namespace shredway {

struct InterfaceView {
  uint32_t index = 0;                   // 0: the interface does not exist
  bool up = false;                      // up, and its link too
  std::vector<AddressBytes> addresses;  // IPv4 first
  std::vector<AddressBytes> groups;     // sorted
};

// Reads the network namespace of the calling thread. Fills `error` if the kernel refuses.
InterfaceView read_interface(const std::string& name, std::string& error);

}  // namespace shredway
