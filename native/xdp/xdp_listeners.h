// XDP listeners: the addresses and ports at which an interface may receive what is for a listener.
//
// A receive socket gets what is sent to any address of this machine that it is bound to, by any
// interface. The program of AF_XDP needs each address, because a machine may also forward datagrams
// to the same port of another one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

namespace shredway {

// The endpoints of `listen` behind the interface, sorted. An unspecified address stands for all
// addresses of its family that this machine has now. Loopback and multicast addresses are left out,
// and link-local ones of other interfaces. Fills `error` if the kernel does not list the addresses.
std::vector<Endpoint> endpoints_behind(const std::string& interface,
                                       const std::vector<Endpoint>& listen, std::string& error);

struct XdpInterfaceState {
  uint32_t index = 0;  // 0: it does not exist
  bool up = false;
  bool ethernet = false;
  std::array<uint8_t, 6> mac{};
};
XdpInterfaceState read_interface_state(const std::string& interface);

}  // namespace shredway
