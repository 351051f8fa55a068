// XDP interface: a network interface with its program, and the AF_XDP sockets of all workers on it.
//
// To send, each worker gets a transmit queue for itself. To receive, every receive queue has one
// socket for each worker, and the program selects the worker by the FEC set. The sockets of a queue
// share its memory of frames, because the kernel allows one for each queue. A socket that sends
// does not receive: in copy mode, poll() on it would send what is left in its ring. A part of
// XdpPlane.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
#include "xdp/xdp_program.h"
#include "xdp/xdp_socket.h"

namespace shredway {

struct XdpPlaneOptions {
  std::vector<std::string> interfaces;  // 1 .. kXdpInterfacesMax names
  uint32_t workers = 1;
  uint32_t send_buffer_bytes = 16u << 20;
  bool sends = true;
  std::vector<Endpoint> listen{};  // addresses whose shreds are received; empty: only sends
};

// Receive queues of an interface; 1 if the driver does not say.
uint32_t xdp_receive_queues(const std::string& interface);

class XdpInterface {
 public:
  // Returns nullptr and fills `error`: the failed call, the reason and what repairs it.
  static std::unique_ptr<XdpInterface> open(const std::string& name, const XdpPlaneOptions& options,
                                            std::string& error);

  const std::string& name() const { return name_; }
  bool is_zero_copy() const { return zero_copy_; }
  // nullptr: the interface only receives.
  XdpSocket* sender(uint32_t worker) const;
  // One per receive queue; none: the interface only sends.
  std::vector<XdpSocket*> receivers(uint32_t worker) const;
  // Follows the addresses of this machine. Returns why the interface does not receive by AF_XDP at
  // present; empty: it does, or only sends.
  std::string update_endpoints();

 private:
  struct Queue {
    std::unique_ptr<XdpSocket> owner;                // of the frames
    std::vector<std::unique_ptr<XdpSocket>> others;  // end before the owner
    XdpSocket* sender = nullptr;                     // nullptr: no worker sends by this queue
    uint32_t sending_worker = 0;
    std::vector<XdpSocket*> receivers;  // by worker
  };
  XdpInterface() = default;
  std::string open_all();
  std::string attach();
  std::string open_sockets(bool zero_copy);
  std::string open_queues(bool zero_copy, uint32_t& busy);
  std::string open_queue(uint32_t number, bool sends, bool zero_copy, Queue& queue) const;
  std::string connect_receivers();
  bool receives() const { return !options_.listen.empty(); }

  std::string name_;
  XdpPlaneOptions options_;
  uint32_t index_ = 0;
  uint32_t receive_queues_ = 0;
  std::array<uint8_t, 6> mac_{};
  bool zero_copy_ = false;
  UdpSocket pass_program_;                              // zero-copy without receiving
  std::unique_ptr<XdpReceiveProgram> receive_program_;  // the sockets end before both
  std::vector<Queue> queues_;
};

}  // namespace shredway
