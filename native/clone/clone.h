// Clone: one send that the kernel clones for every destination. The only header of this folder that
// other folders include.
//
//   relay opens a ClonePlane (a TAP interface with a BPF program) and a NextHopWatch (netlink);
//   NextHopWatch publishes NextHops tables: interface, source and MAC address of each destination;
//   a worker sends by its CloneBatch, which fills its region of the plane and triggers the program.
#pragma once

#include "clone/clone_batch.h"
#include "clone/clone_plane.h"
#include "clone/device_features.h"
#include "clone/list_batch.h"
#include "clone/next_hop_watch.h"
#include "clone/next_hops.h"
#include "clone/output_rules.h"
