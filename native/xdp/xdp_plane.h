// XDP plane: the AF_XDP sockets of a relay, one for each worker and interface.
//
// Opened once per relay, with privileges that are not needed afterwards. Each worker gets a
// transmit queue of each interface for itself. Where the driver reads frames itself (zero-copy),
// the interface also gets a program that passes every packet; elsewhere the kernel copies each
// frame. Frames bypass the firewall's output rules and the queue discipline of their interface. All
// of it ends with this process, even after kill -9.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xdp/xdp_socket.h"

namespace shredway {

inline constexpr size_t kXdpInterfacesMax = 8;

struct XdpPlaneOptions {
  std::vector<std::string> interfaces;  // 1 .. kXdpInterfacesMax names
  uint32_t workers = 1;
  uint32_t send_buffer_bytes = 16u << 20;
};

class XdpPlane {
 public:
  // Returns nullptr and fills `error` with the interface, the failed call, the reason and what
  // repairs it. Leaves nothing behind on failure.
  static std::unique_ptr<XdpPlane> open(const XdpPlaneOptions& options, std::string& error);

  // The worker's sockets, one per interface. They live as long as the plane.
  std::vector<XdpSocket*> sockets(uint32_t worker) const;
  std::string description() const;  // "eth1 (zero-copy), eth2 (copies)"

 private:
  struct Interface {
    std::string name;
    UdpSocket program;
    std::vector<std::unique_ptr<XdpSocket>> sockets;  // by worker; end before the program

    std::string open(const XdpPlaneOptions& options);
    std::string open_sockets(const XdpPlaneOptions& options, uint32_t index, bool zero_copy);
    std::string take_queues(const XdpPlaneOptions& options, uint32_t index, bool zero_copy,
                            uint32_t& busy);
  };
  XdpPlane() = default;
  std::vector<Interface> interfaces_;
};

}  // namespace shredway
