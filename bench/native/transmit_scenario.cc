#include "transmit_scenario.h"

#include "report_line.h"

namespace shredway::bench {

void print_transmit_skipped(const std::string& what, const std::string& why) {
  ReportLine("transmit_skipped").text("what", what).text("why", why).print();
}

void run_transmit(const Bench& bench) {
  constexpr uint32_t kDestinationsMax = 1000;
  std::string error;
  const auto network = TransmitNetwork::make(bench.network, kDestinationsMax, error);
  if (!network) return print_transmit_skipped("everything", error);
  const auto clone = ClonePlane::open({}, error);
  if (!clone) print_transmit_skipped("clone", error);
  const TransmitBench transmit{bench, *network, clone.get()};
  run_transmit_cost(transmit);
  run_transmit_latency(transmit);
  run_transmit_rate(transmit);
}

}  // namespace shredway::bench
