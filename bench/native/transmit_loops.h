// Transmit loops: send loops (send_loops.h) of the roads beside plain sockets.
//
// clone: the relay's CloneBatch on a clone plane. packet_ring: an AF_PACKET transmit ring past the
// queue discipline. xdp: an AF_XDP transmit ring in copy mode. The last two are here alone: they
// are what the project measured and did not keep.
#pragma once

#include <memory>
#include <string>

#include "clone/clone.h"
#include "send_loops.h"
#include "transmit_network.h"

namespace shredway::bench {

// Each returns nullptr and fills `error` when the system refuses; what they are given must outlive
// them.
std::unique_ptr<SendLoop> open_clone_loop(const ClonePlane& plane, const TransmitRoad& road,
                                          std::string& error);
// A frame of the ring is free again as soon as the device passed it on, and where that is another
// socket of this machine, it may not have been read by then: with `frames` for all that is on its
// way, nothing is overwritten. A power of two.
std::unique_ptr<SendLoop> open_ring_loop(const TransmitRoad& road, uint32_t frames,
                                         std::string& error);
std::unique_ptr<SendLoop> open_xdp_loop(const TransmitRoad& road, std::string& error);

}  // namespace shredway::bench
