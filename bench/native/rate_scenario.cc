// Rate: the highest rate of shreds that a relay forwards without loss and without falling behind.
//
// The relay has one CPU, the generator the other; datagrams go to the null device. rate_search.h
// finds the rate.
#include <memory>

#include "clocks.h"
#include "rate_search.h"
#include "report_line.h"

namespace shredway::bench {
namespace {

class RateScenario {
 public:
  explicit RateScenario(const Bench& bench)
      : bench_(bench),
        search_(stream_, bench.options.small, [&bench] { return device_counts(bench.network); }) {}
  void run();

 private:
  void measure(const char* name, Driver* driver, const RateSearch::Case& which);

  const Bench& bench_;
  ShredStream stream_;
  RateSearch search_;
};

void RateScenario::measure(const char* name, Driver* driver, const RateSearch::Case& which) {
  if (!driver) return;
  const double rate = search_.run(*driver, which);
  ReportLine("rate")
      .text("driver", name)
      .count("destinations", which.destinations)
      .count("burst", which.burst)
      .number("shreds_per_second", rate)
      .truth("generator_limit", rate >= kRateMax)
      .print();
}

void RateScenario::run() {
  // Without a counting device the number of sent datagrams is unknown.
  if (!bench_.network.isolated) return;
  pin(0, bench_.helper_cpu);
  const auto counts =
      bench_.options.small ? std::vector<uint32_t>{50} : std::vector<uint32_t>{10, 50, 200};
  for (const uint32_t count : counts) {
    std::vector<Endpoint> destinations;
    for (uint32_t i = 0; i < count; i++)
      destinations.push_back(null_destination(bench_.network, i));
    const int cpu = bench_.tested_cpu;
    const auto dgram = start_dgram(bench_, destinations);
    const auto samplicator = start_samplicator(bench_, destinations);
    ForwarderDriver forwarder(destinations, cpu);
    for (const uint32_t burst : {1u, 32u}) {
      const auto ours = OurRelay::open({.destinations = destinations,
                                        .cpu = cpu,
                                        .leader = stream_.leader(),
                                        .other_cpus = bench_.cpus});
      measure("shredway", ours.get(), {count, burst});
      if (set_device_segmentation(bench_.network, false)) {
        const auto other = OurRelay::open({.destinations = destinations,
                                           .cpu = cpu,
                                           .leader = stream_.leader(),
                                           .other_cpus = bench_.cpus});
        measure("shredway_kernel_segments", other.get(), {count, burst});
        (void)set_device_segmentation(bench_.network, true);
      }
      measure("forwarder", &forwarder, {count, burst});
      measure("dgram", dgram.get(), {count, burst});
      measure("samplicator", samplicator.get(), {count, burst});
    }
  }
}

}  // namespace

void run_rate(const Bench& bench) { RateScenario(bench).run(); }

}  // namespace shredway::bench
