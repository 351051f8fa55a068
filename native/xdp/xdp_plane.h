// XDP plane: the AF_XDP sockets of a relay, on all of its interfaces.
//
// Opened once per relay, with privileges that are not needed afterwards. Where the driver reads and
// writes frames itself (zero-copy), it does so in the memory of the sockets; elsewhere the kernel
// copies each frame. Frames that are sent bypass the firewall's output rules and the queue
// discipline of their interface; received ones bypass the input rules. All of it ends with this
// process, even after kill -9.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xdp/xdp_interface.h"

namespace shredway {

inline constexpr size_t kXdpInterfacesMax = 8;

class XdpPlane {
 public:
  // Returns nullptr and fills `error` with the interface, the failed call, the reason and what
  // repairs it. Leaves nothing behind on failure.
  static std::unique_ptr<XdpPlane> open(const XdpPlaneOptions& options, std::string& error);

  // The worker's sockets. They live as long as the plane.
  std::vector<XdpSocket*> senders(uint32_t worker) const;    // one per interface, if it sends
  std::vector<XdpSocket*> receivers(uint32_t worker) const;  // one per interface and queue
  std::string description() const;                           // "eth1 (zero-copy), eth2 (copies)"
  // Follows the addresses of this machine. Returns a text "eth1: reason" for each interface that
  // does not receive by AF_XDP at present; its shreds then arrive by socket, if at all. Any thread,
  // one at a time.
  std::vector<std::string> update_endpoints();

 private:
  XdpPlane() = default;
  std::vector<std::unique_ptr<XdpInterface>> interfaces_;
};

}  // namespace shredway
