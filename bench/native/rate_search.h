// Rate search: the highest rate of shreds that a relay forwards without loss and without falling
// behind.
//
// The relay has one CPU, the generator (the caller) another. A trial succeeds if every datagram was
// sent within 10 ms after the last shred arrived (a full buffer that is emptied later is not a
// sustained rate). The rate doubles until a trial fails; then the interval is halved.
#pragma once

#include <functional>

#include "drivers.h"

namespace shredway::bench {

// shreds/s; the limit of one generator over loopback
inline constexpr double kRateMax = 400'000;

class RateSearch {
 public:
  struct Case {
    uint32_t destinations;
    uint32_t burst;
  };
  // `counts`: packets that left the device so far. `small`: shorter and fewer trials.
  RateSearch(ShredStream& stream, bool small, std::function<DeviceCounts()> counts)
      : stream_(stream),
        counts_(std::move(counts)),
        trial_ns_(small ? 60'000'000 : 150'000'000),
        steps_(small ? 2 : 5) {}
  // Warms the driver up, then searches. Returns 0 if no trial succeeded.
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
