// Rate of the whole relay: new authentic shreds a second to 200 destinations without loss, by
// socket and by clone.
//
// One worker on one CPU; generator and deshred thread have the other. rate_search.h finds the rate;
// the device counts the sent packets.
#include "clocks.h"
#include "rate_search.h"
#include "report_line.h"
#include "transmit_scenario.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kDestinations = 200;

struct RateCase {
  const char* device;
  uint32_t burst;
  bool device_segments;
};

class TransmitRate {
 public:
  explicit TransmitRate(const TransmitBench& transmit) : transmit_(transmit) {}
  void run_case(const RateCase& which);

 private:
  void measure(const RateCase& which, const TransmitPath& path, TransmitMode way);

  const TransmitBench& transmit_;
  ShredStream stream_;
};

void TransmitRate::measure(const RateCase& which, const TransmitPath& path, TransmitMode way) {
  const Bench& bench = transmit_.bench;
  const bool clone = way == TransmitMode::clone;
  const auto relay = OurRelay::open({.destinations = path.destinations,
                                     .cpu = bench.tested_cpu,
                                     .leader = stream_.leader(),
                                     .other_cpus = {bench.helper_cpu},
                                     .transmit = way});
  if (!relay) return print_transmit_skipped("rate", "cannot open the relay");
  if (clone && !relay->wait_until_cloned(kDestinations))
    return print_transmit_skipped("rate by clone", "not all destinations go by clone");
  RateSearch search(stream_, bench.options.small,
                    [&] { return transmit_.network.delivered(path); });
  const double rate = search.run(*relay, {kDestinations, which.burst});
  ReportLine("transmit_rate")
      .text("way", clone ? "clone" : "socket")
      .text("device", which.device)
      .count("destinations", kDestinations)
      .count("burst", which.burst)
      .text("segmentation", which.device_segments ? "device" : "kernel")
      .number("shreds_per_second", rate)
      .count("triggers", relay->worker_count(WorkerCounter::clone_triggers))
      .count("fallbacks", relay->worker_count(WorkerCounter::clone_fallbacks))
      .truth("generator_limit", rate >= kRateMax)
      .print();
}

void TransmitRate::run_case(const RateCase& which) {
  const TransmitPath path = which.device == std::string("veth")
                                ? transmit_.network.veth_path(kDestinations)
                                : transmit_.network.null_path(kDestinations);
  (void)set_segmentation_of(path.device.c_str(), which.device_segments);
  measure(which, path, TransmitMode::socket);
  if (transmit_.clone) measure(which, path, TransmitMode::clone);
  (void)set_segmentation_of(path.device.c_str(), true);
}

}  // namespace

void run_transmit_rate(const TransmitBench& transmit) {
  pin(0, transmit.bench.helper_cpu);
  TransmitRate rate(transmit);
  rate.run_case({"null", 32, true});
  if (transmit.bench.options.small) return;
  rate.run_case({"null", 1, true});
  rate.run_case({"null", 32, false});
  rate.run_case({"veth", 1, true});
  rate.run_case({"veth", 32, true});
}

}  // namespace shredway::bench
