// Clone interface: the private TAP device that triggers leave by, with a program at its egress
// hook.
//
// Opened by clone_plane, with CAP_NET_ADMIN. The device belongs to this descriptor: it is gone with
// it, hook and program too, however the process ends. Nothing is ever read from it and nobody
// answers on it; it has no IPv4 address and no route, so that only sockets bound to it send there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

// "call: why", and what to grant or change where that is known.
std::string clone_error(const std::string& call, int error_number);

class CloneInterface {
 public:
  // `name` may hold a %d for the kernel to count. The interface is up, and whatever leaves by it
  // goes to the program. Returns nullptr and fills `error` when something is missing.
  static std::unique_ptr<CloneInterface> open(const std::string& name, int program_fd,
                                              std::string& error);
  const std::string& name() const { return name_; }
  uint32_t index() const { return index_; }
  bool ipv6() const { return ipv6_; }  // has the address that IPv6 triggers leave from

 private:
  CloneInterface() = default;
  std::string create(const std::string& name);
  std::string configure(int program_fd);

  UdpSocket tap_;
  std::string name_;
  uint32_t index_ = 0;
  bool ipv6_ = false;
};

}  // namespace shredway
