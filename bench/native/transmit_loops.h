// Transmit loops: send loops (send_loops.h) of the transmit paths other than plain sockets.
//
// clone: the relay's CloneBatch on a clone plane. xdp: the relay's XdpBatch, in copy mode on these
// devices. packet_ring: an AF_PACKET transmit ring that bypasses the queue discipline. It exists
// only here: the project measured and rejected it.
#pragma once

#include <memory>
#include <string>

#include "clone/clone.h"
#include "send_loops.h"
#include "transmit_network.h"

namespace shredway::bench {

// Each returns nullptr and fills `error` if the system refuses; the arguments must outlive the
// loop.
std::unique_ptr<SendLoop> open_clone_loop(const ClonePlane& plane, const TransmitPath& path,
                                          std::string& error);
// A frame of the ring is free as soon as the device passed it on. If the receiver is a socket of
// this machine, the frame may not have been read by then; with `frames` for all datagrams in
// flight, none is overwritten. A power of two.
std::unique_ptr<SendLoop> open_ring_loop(const TransmitPath& path, uint32_t frames,
                                         std::string& error);
std::unique_ptr<SendLoop> open_xdp_loop(const TransmitPath& path, std::string& error);

}  // namespace shredway::bench
