// Network of the transmit scenario: the null device and a veth pair with one end in a second
// namespace.
//
// Both devices reach every destination through its own permanent neighbour, so that nothing is
// resolved during a measurement. Behind the veth pair are destinations whose frames are for another
// MAC address (the receiver drops them at once, by the first check of its IP layer), and
// destinations that are addresses of the receiver, for a sink with kernel receive times. Everything
// belongs to this process and ends with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clone/clone.h"
#include "network.h"

namespace shredway::bench {

// The device to send through, and the destinations.
struct TransmitPath {
  std::string device;
  NextHop hop;  // next hop of every destination
  std::vector<Endpoint> destinations;
};

class TransmitNetwork {
 public:
  // Needs the isolated form of `network`. Returns nullptr and fills `error` if the system refuses
  // something.
  static std::unique_ptr<TransmitNetwork> make(const Network& network, uint32_t destinations,
                                               std::string& error);
  ~TransmitNetwork();
  TransmitNetwork(const TransmitNetwork&) = delete;
  TransmitNetwork& operator=(const TransmitNetwork&) = delete;

  // Routes to the first `count` destinations.
  TransmitPath null_path(uint32_t count) const;
  TransmitPath veth_path(uint32_t count) const;                 // the receiver drops
  TransmitPath sink_path(uint32_t count, uint16_t port) const;  // the receiver reads

  // Packets that arrived at the other end: by the null device's own counters, or at the receiver's
  // end of the pair.
  DeviceCounts delivered(const TransmitPath& path) const;
  // A socket of the receiver with kernel receive times, for all addresses of sink_path.
  int open_sink_socket() const;
  // A packet socket of the receiver that sends frames to this end, each after a virtio_net_hdr; -1
  // on failure.
  int open_frame_socket() const;
  // Selects the CPU of the receiver's work (-1: that of the sender, the kernel's default). Returns
  // false if the system refuses.
  bool receive_on(int cpu);

 private:
  TransmitNetwork() = default;
  std::string build(const Network& network, uint32_t destinations);
  std::string build_receiver();

  int own_namespace_ = -1, receiver_namespace_ = -1;
  int own_devices_ = -1, receiver_devices_ = -1;  // /proc/net/dev of each namespace
  int receive_cpus_ = -1;                         // rps_cpus of the receiver's device
  std::string null_device_;
  NextHop null_hop_, veth_hop_;
};

}  // namespace shredway::bench
