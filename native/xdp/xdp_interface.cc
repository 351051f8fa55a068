#include "xdp/xdp_interface.h"

#include <net/if.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "clone/clone.h"
#include "xdp/xdp_listeners.h"

namespace shredway {
namespace {

DeviceQueues queues_of(const std::string& interface) {
  const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return device_queues(socket.fd(), interface);
}

}  // namespace

uint32_t xdp_receive_queues(const std::string& interface) { return queues_of(interface).receive; }

std::unique_ptr<XdpInterface> XdpInterface::open(const std::string& name,
                                                 const XdpPlaneOptions& options,
                                                 std::string& error) {
  std::unique_ptr<XdpInterface> interface(new XdpInterface);
  interface->name_ = name;
  interface->options_ = options;
  error = interface->open_all();
  return error.empty() ? std::move(interface) : nullptr;
}

// Zero-copy for all workers, or for none.
std::string XdpInterface::open_all() {
  const XdpInterfaceState state = read_interface_state(name_);
  index_ = state.index;
  mac_ = state.mac;
  if (index_ == 0) return xdp_error("if_nametoindex", ENODEV);
  if (receives() && !state.ethernet) return "expected an Ethernet interface to receive by AF_XDP";
  if (receives()) {
    if (std::string error = attach(); !error.empty()) return error;
  }
  if (device_xdp_support(index_) != XdpSupport::copy) {
    std::string ignored;
    if (!receives()) pass_program_ = attach_pass_program(index_, ignored);
    zero_copy_ = ignored.empty() && open_sockets(true).empty();
  }
  if (!zero_copy_) {
    queues_.clear();
    pass_program_ = UdpSocket();
    if (std::string error = open_sockets(false); !error.empty()) return error;
  }
  return receives() ? connect_receivers() : "";
}

std::string XdpInterface::attach() {
  receive_queues_ = xdp_receive_queues(name_);
  std::string error;
  receive_program_ =
      XdpReceiveProgram::attach({index_, mac_, receive_queues_, options_.workers}, error);
  return error;
}

// The kernel gives the queues of a socket back some milliseconds after its end.
std::string XdpInterface::open_sockets(bool zero_copy) {
  constexpr int kTriesMax = 250;
  constexpr timespec kPause = {0, 20'000'000};
  std::string error;
  for (int tries = 0; tries < kTriesMax; tries++) {
    uint32_t busy = 0;
    error = open_queues(zero_copy, busy);
    if (error.empty() || busy == 0) break;
    nanosleep(&kPause, nullptr);
  }
  return error;
}

// Any free queues are good enough to send. To receive, it must be all of them.
std::string XdpInterface::open_queues(bool zero_copy, uint32_t& busy) {
  const uint32_t transmit_queues = queues_of(name_).transmit;
  uint32_t senders = 0;
  for (const Queue& queue : queues_) senders += queue.sender != nullptr;
  queues_.resize(std::max(transmit_queues, receive_queues_));
  for (uint32_t number = 0; number < queues_.size(); number++) {
    if (queues_[number].owner) continue;
    const bool sends = options_.sends && number < transmit_queues && senders < options_.workers;
    if (!sends && number >= receive_queues_) continue;
    Queue queue;
    queue.sending_worker = senders;
    std::string error = open_queue(number, sends, zero_copy, queue);
    if (!error.empty() && errno != EBUSY) return error;
    busy += !error.empty();  // another program has it
    if (!error.empty()) continue;
    queues_[number] = std::move(queue);
    senders += sends;
  }
  if (receives() && busy > 0)
    return "expected all " + std::to_string(receive_queues_) +
           " receive queues to be free, but other programs use " + std::to_string(busy) +
           " of them for AF_XDP; end these programs";
  if (!options_.sends || senders == options_.workers) return "";
  return "expected a free transmit queue for each of " + std::to_string(options_.workers) +
         " workers, got " + std::to_string(transmit_queues) + " queues (other programs use " +
         std::to_string(busy) + "); reduce relay.workers or run ethtool -L";
}

// errno is that of the failed call.
std::string XdpInterface::open_queue(uint32_t number, bool sends, bool zero_copy,
                                     Queue& queue) const {
  const bool has_receivers = number < receive_queues_;
  XdpSocketOptions options = {.interface = index_,
                              .queue = number,
                              .zero_copy = zero_copy,
                              .send_buffer_bytes = options_.send_buffer_bytes,
                              .sends = sends,
                              .receives = has_receivers && !sends,
                              .has_receive_frames = has_receivers,
                              .counts_for_queue = !sends};
  std::string error;
  queue.owner = XdpSocket::open(options, error);
  if (!queue.owner) return error;
  if (sends) queue.sender = queue.owner.get();
  else queue.receivers.push_back(queue.owner.get());
  options.owner = queue.owner.get();
  options.sends = false;
  options.receives = true;
  while (has_receivers && queue.receivers.size() < options_.workers) {
    options.counts_for_queue = queue.receivers.empty();
    queue.others.push_back(XdpSocket::open(options, error));
    if (!queue.others.back()) return error;
    queue.receivers.push_back(queue.others.back().get());
  }
  return "";
}

// The addresses come last: from then on, shreds arrive by AF_XDP.
std::string XdpInterface::connect_receivers() {
  for (uint32_t number = 0; number < receive_queues_; number++) {
    for (uint32_t worker = 0; worker < options_.workers; worker++) {
      const int fd = queues_[number].receivers[worker]->fd();
      std::string error = receive_program_->set_socket(number, worker, fd);
      if (!error.empty()) return error;
    }
  }
  std::string error;
  const std::vector<Endpoint> endpoints = endpoints_behind(name_, options_.listen, error);
  const bool any_address =
      std::any_of(options_.listen.begin(), options_.listen.end(), [](const Endpoint& listener) {
        return listener.address == any_endpoint(listener.is_ipv4()).address;
      });
  // An interface may get its first address later.
  if (error.empty() && endpoints.empty() && !any_address)
    error = "no address of relay.listen can be reached through it";
  return error.empty() ? receive_program_->set_endpoints(endpoints) : error;
}

XdpSocket* XdpInterface::sender(uint32_t worker) const {
  for (const Queue& queue : queues_)
    if (queue.sender && queue.sending_worker == worker) return queue.sender;
  return nullptr;
}

std::vector<XdpSocket*> XdpInterface::receivers(uint32_t worker) const {
  std::vector<XdpSocket*> out;
  for (uint32_t number = 0; number < receive_queues_; number++)
    out.push_back(queues_[number].receivers[worker]);
  return out;
}

std::string XdpInterface::update_endpoints() {
  if (!receives()) return "";
  const XdpInterfaceState state = read_interface_state(name_);
  if (state.index != index_) return "it was removed; restart the service if it is back";
  if (!receive_program_->is_attached())
    return "its XDP program was detached; restart the service to attach it again";
  if (state.mac != mac_) return "its hardware address has changed; restart the service";
  if (!state.up) return "it is down; AF_XDP continues when it is up";
  std::string error;
  const std::vector<Endpoint> endpoints = endpoints_behind(name_, options_.listen, error);
  if (error.empty()) error = receive_program_->set_endpoints(endpoints);
  if (error.empty() && endpoints.empty())
    error = "the machine has no address at which it receives for relay.listen";
  return error;
}

}  // namespace shredway
