// Transmit: the ways out of a relay beside each other, and what each of the three parts is given.
//
// Called by transmit_scenario.cc in one run; a way that the system refuses is named once with the
// reason and left out.
#pragma once

#include "clone/clone.h"
#include "options.h"
#include "transmit_network.h"

namespace shredway::bench {

struct TransmitBench {
  const Bench& bench;
  TransmitNetwork& network;
  const ClonePlane* clone;  // nullptr: cannot be had
};

// Processor time per datagram, by way, device, number of destinations and size of bursts.
void run_transmit_cost(const TransmitBench& bench);
// When the last destination of a burst has it.
void run_transmit_latency(const TransmitBench& bench);
// The highest rate that a whole relay passes on to 200 destinations.
void run_transmit_rate(const TransmitBench& bench);

// Names what was left out, and why.
void print_transmit_skipped(const std::string& what, const std::string& why);

}  // namespace shredway::bench
