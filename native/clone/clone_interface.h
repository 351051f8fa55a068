// Clone interface: the private TAP device for triggers, with a BPF program at its egress hook.
//
// The clone plane opens it with CAP_NET_ADMIN. The device ends with this descriptor, together with
// the hook and the program, however the process ends. Nothing is read from it and no host answers
// on it. It has no IPv4 address and no route, so that only sockets bound to it send there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "net/udp_socket.h"

namespace shredway {

// Error text "call: reason", with the privilege or setting that repairs it if known.
std::string clone_error(const std::string& call, int error_number);

class CloneInterface {
 public:
  // `name` may contain a %d for a number that the kernel chooses. The interface is up, and the
  // program gets every packet that leaves by it. Returns nullptr and fills `error` on failure.
  static std::unique_ptr<CloneInterface> open(const std::string& name, int program_fd,
                                              std::string& error);
  const std::string& name() const { return name_; }
  uint32_t index() const { return index_; }
  bool ipv6() const { return ipv6_; }  // true if it has the source address of IPv6 triggers

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
