// Network of the transmit scenario: the null device and a veth pair whose other end is in a second
// namespace.
//
// Both devices reach every destination through a permanent neighbour of its own, so that nothing is
// asked while something is measured. Behind the veth pair there are destinations whose frames are
// for another MAC address (the receiver drops them at once, by the first check of its IP layer) and
// destinations that are addresses of the receiver, for a sink with kernel receive times. Everything
// belongs to this process and is gone with it, however it ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "clone/clone.h"
#include "network.h"

namespace shredway::bench {

// What is sent through: one of the devices, and where to.
struct TransmitRoad {
  std::string device;
  NextHop hop;  // of every destination
  std::vector<Endpoint> destinations;
};

class TransmitNetwork {
 public:
  // Needs the isolated form of `network`. Returns nullptr and fills `error` when something is
  // refused.
  static std::unique_ptr<TransmitNetwork> make(const Network& network, uint32_t destinations,
                                               std::string& error);
  ~TransmitNetwork();
  TransmitNetwork(const TransmitNetwork&) = delete;
  TransmitNetwork& operator=(const TransmitNetwork&) = delete;

  // Roads to the first `count` destinations.
  TransmitRoad null_road(uint32_t count) const;
  TransmitRoad veth_road(uint32_t count) const;                 // the receiver drops
  TransmitRoad sink_road(uint32_t count, uint16_t port) const;  // the receiver reads

  // What came out at the other end of a road: of the null device's own counters, or of the
  // receiver's end of the pair.
  DeviceCounts delivered(const TransmitRoad& road) const;
  // A socket of the receiver with kernel receive times, for all addresses of the sink's road.
  int open_sink_socket() const;
  // Whether the receiver's work is done on this CPU (-1: on that of the sender, as the kernel does
  // by itself). False when the system refuses.
  bool receive_on(int cpu);

 private:
  TransmitNetwork() = default;
  std::string build(const Network& network, uint32_t destinations);
  std::string build_receiver();

  int own_namespace_ = -1, receiver_namespace_ = -1;
  int own_devices_ = -1, receiver_devices_ = -1;  // /proc/net/dev of each
  int receive_cpus_ = -1;                         // rps_cpus of the receiver's device
  std::string null_device_;
  NextHop null_hop_, veth_hop_;
};

}  // namespace shredway::bench
