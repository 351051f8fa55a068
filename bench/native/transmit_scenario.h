// Transmit: compares the transmit paths of a relay; the environment of the three parts.
//
// Called by transmit_scenario.cc in one run. A path that the system refuses is reported once with
// the reason and skipped.
#pragma once

#include "clone/clone.h"
#include "options.h"
#include "transmit_network.h"

namespace shredway::bench {

struct TransmitBench {
  const Bench& bench;
  TransmitNetwork& network;
  const ClonePlane* clone;  // nullptr: not available
};

// Processor time per datagram, by path, device, number of destinations and size of bursts.
void run_transmit_cost(const TransmitBench& bench);
// Time until the last destination of a burst has it.
void run_transmit_latency(const TransmitBench& bench);
// The highest rate that a whole relay forwards to 200 destinations.
void run_transmit_rate(const TransmitBench& bench);

// Prints what was skipped, and why.
void print_transmit_skipped(const std::string& what, const std::string& why);

}  // namespace shredway::bench
