#include "xdp/xdp_plane.h"

#include <net/if.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "clone/clone.h"
#include "xdp/xdp_program.h"

namespace shredway {
namespace {

uint32_t transmit_queues_of(const std::string& interface) {
  const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return device_transmit_queues(socket.fd(), interface);
}

}  // namespace

std::unique_ptr<XdpPlane> XdpPlane::open(const XdpPlaneOptions& options, std::string& error) {
  std::unique_ptr<XdpPlane> plane(new XdpPlane);
  error = options.interfaces.empty() ? "expected at least one interface for AF_XDP, got none" : "";
  if (options.interfaces.size() > kXdpInterfacesMax)
    error = "expected at most " + std::to_string(kXdpInterfacesMax) + " interfaces for AF_XDP";
  for (const std::string& name : options.interfaces) {
    if (!error.empty()) return nullptr;
    Interface& interface = plane->interfaces_.emplace_back();
    interface.name = name;
    error = interface.open(options);
    if (!error.empty()) error = "interface " + name + ": " + error;
  }
  return error.empty() ? std::move(plane) : nullptr;
}

// Zero-copy for all workers, or for none.
std::string XdpPlane::Interface::open(const XdpPlaneOptions& options) {
  const uint32_t index = if_nametoindex(name.c_str());
  if (index == 0) return xdp_error("if_nametoindex", errno);
  if (device_xdp_support(index) != XdpSupport::copy) {
    std::string ignored;
    program = attach_pass_program(index, ignored);
    if (program.valid() && open_sockets(options, index, true).empty()) return "";
    sockets.clear();
    program = UdpSocket();
  }
  return open_sockets(options, index, false);
}

// The kernel gives the queues of a socket back some milliseconds after its end.
std::string XdpPlane::Interface::open_sockets(const XdpPlaneOptions& options, uint32_t index,
                                              bool zero_copy) {
  constexpr int kTriesMax = 250;
  constexpr timespec kPause = {0, 20'000'000};
  std::string error;
  for (int tries = 0; tries < kTriesMax; tries++) {
    uint32_t busy = 0;
    error = take_queues(options, index, zero_copy, busy);
    if (error.empty() || busy == 0) break;
    nanosleep(&kPause, nullptr);
  }
  return error;
}

std::string XdpPlane::Interface::take_queues(const XdpPlaneOptions& options, uint32_t index,
                                             bool zero_copy, uint32_t& busy) {
  const uint32_t queues = transmit_queues_of(name);
  for (uint32_t queue = 0; queue < queues && sockets.size() < options.workers; queue++) {
    if (std::any_of(sockets.begin(), sockets.end(),
                    [&](const auto& socket) { return socket->queue() == queue; }))
      continue;
    std::string error;
    std::unique_ptr<XdpSocket> socket =
        XdpSocket::open({index, queue, zero_copy, options.send_buffer_bytes}, error);
    if (socket) sockets.push_back(std::move(socket));
    else if (errno != EBUSY) return error;
    else busy++;  // another program has it
  }
  if (sockets.size() == options.workers) return "";
  return "expected a free transmit queue for each of " + std::to_string(options.workers) +
         " workers, got " + std::to_string(queues) + " queues (other programs use " +
         std::to_string(busy) + "); reduce relay.workers or run ethtool -L";
}

std::vector<XdpSocket*> XdpPlane::sockets(uint32_t worker) const {
  std::vector<XdpSocket*> out;
  for (const Interface& interface : interfaces_) out.push_back(interface.sockets[worker].get());
  return out;
}

std::string XdpPlane::description() const {
  std::string text;
  for (const Interface& interface : interfaces_)
    text += (text.empty() ? "" : ", ") + interface.name +
            (interface.program.valid() ? " (zero-copy)" : " (copies)");
  return text;
}

}  // namespace shredway
