// XDP: sends whole frames by AF_XDP. The only header of this folder that other folders include.
//
//   relay opens an XdpPlane: AF_XDP sockets on the interfaces that the operator names;
//   a worker sends by its XdpBatch, which writes frames from the lists that clones use too.
#pragma once

#include "xdp/xdp_batch.h"
#include "xdp/xdp_plane.h"
