// Rate search: the highest rate of shreds that a relay passes on without loss and without falling
// behind.
//
// The relay has one CPU, the generator (whoever calls) another. A trial holds when every datagram
// has come out 10 ms after the last shred came (a full buffer that is worked off later is no
// sustained rate). Doubling until it breaks, then halving the interval.
#pragma once

#include <functional>

#include "drivers.h"

namespace shredway::bench {

// shreds/s; what one generator can send over loopback
inline constexpr double kRateMax = 400'000;

class RateSearch {
 public:
  struct Case {
    uint32_t destinations;
    uint32_t burst;
  };
  // `counts`: what came out of the device so far. `small`: shorter trials and fewer of them.
  RateSearch(ShredStream& stream, bool small, std::function<DeviceCounts()> counts)
      : stream_(stream),
        counts_(std::move(counts)),
        trial_ns_(small ? 60'000'000 : 150'000'000),
        steps_(small ? 2 : 5) {}
  // Warms the driver up, then searches. 0 when nothing held.
  double run(Driver& driver, const Case& which);

 private:
  bool holds(Driver& driver, const Case& which, double rate);
  bool trial(Driver& driver, const Case& which, double rate);
  void send_paced(const Case& which, double rate);

  ShredStream& stream_;
  const std::function<DeviceCounts()> counts_;
  const uint64_t trial_ns_;
  const int steps_;
  PacketList packets_;
  Generator generator_;
};

}  // namespace shredway::bench
