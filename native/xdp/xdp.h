// XDP: sends and receives whole frames by AF_XDP. The only header of this folder that other folders
// include.
//
//   relay opens an XdpPlane: AF_XDP sockets on the interfaces that the operator names;
//   a worker sends by its XdpBatch, which writes frames from the lists that clones use too;
//   a worker receives by its XdpReceiver, in addition to its receive sockets.
#pragma once

#include "xdp/xdp_batch.h"
#include "xdp/xdp_plane.h"
#include "xdp/xdp_receiver.h"
