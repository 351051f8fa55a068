// XDP program of an interface: it passes every packet to the network stack, or selects shreds for
// AF_XDP (xdp_receive_code.h).
//
// Drivers send by AF_XDP without a copy only while an interface has a program, and an interface has
// one program at most; this one serves both directions. The kernel removes it with its descriptor,
// even after kill -9.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/udp_socket.h"

namespace shredway {

// Attaches the program that passes everything, with CAP_NET_ADMIN and CAP_BPF. Returns an invalid
// descriptor and fills `error` if the kernel or the driver refuses, or if it has another program.
UdpSocket attach_pass_program(uint32_t interface, std::string& error);

struct XdpReceiveOptions {
  uint32_t interface = 0;
  std::array<uint8_t, 6> mac{};
  uint32_t queues = 1;  // receive queues of the interface
  uint32_t workers = 1;
};

class XdpReceiveProgram {
 public:
  static constexpr uint32_t kEndpointsMax = 4096;

  // Loads and attaches the program, without endpoints: everything passes. Returns nullptr and fills
  // `error` as above.
  static std::unique_ptr<XdpReceiveProgram> attach(const XdpReceiveOptions& options,
                                                   std::string& error);
  // Loads it, but attaches it to nothing. Returns an error text, empty on success.
  static std::string try_out();

  // The AF_XDP socket of this queue and worker gets the worker's shreds.
  std::string set_socket(uint32_t queue, uint32_t worker, int fd);
  // Replaces the endpoints under traffic. Needs no privilege since Linux 5.19. An endpoint that
  // the kernel refused is tried again by the next call.
  std::string set_endpoints(const std::vector<Endpoint>& endpoints);
  // False if the interface has disappeared, or if somebody has detached the program.
  bool is_attached() const;

 private:
  XdpReceiveProgram() = default;
  std::string load(const XdpReceiveOptions& options);
  std::string change(const Endpoint& endpoint, bool add);

  uint32_t workers_ = 1;
  std::vector<Endpoint> endpoints_;
  UdpSocket sockets_map_, endpoints_map_, program_, link_;
};

}  // namespace shredway
