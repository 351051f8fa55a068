// Rate: the highest rate of shreds that a relay passes on without loss and without falling behind.
//
// The relay has one CPU, the generator the other; what is sent goes to the null device. A trial
// holds when every datagram has left 10 ms after the last shred came (a full buffer that is worked
// off later is no sustained rate). Doubling until it breaks, then halving the interval.
#include <algorithm>
#include <memory>

#include "clocks.h"
#include "drivers.h"
#include "report_line.h"

namespace shredway::bench {
namespace {

constexpr double kRateMax = 400'000;  // shreds/s; what one generator can send over loopback

class RateScenario {
 public:
  explicit RateScenario(const Bench& bench)
      : bench_(bench), trial_ns_(bench.options.small ? 60'000'000 : 150'000'000) {}
  void run();

 private:
  struct Case {
    uint32_t destinations;
    uint32_t burst;
  };
  void measure(const char* name, Driver* driver, const Case& which);
  double search(Driver& driver, const Case& which);
  bool holds(Driver& driver, const Case& which, double rate);
  bool trial(Driver& driver, const Case& which, double rate);
  void send_paced(const Case& which, double rate);

  const Bench& bench_;
  const uint64_t trial_ns_;
  ShredStream stream_;
  PacketList packets_;
  Generator generator_;
};

void RateScenario::send_paced(const Case& which, double rate) {
  const double burst_ns = 1e9 * which.burst / rate;
  const uint64_t start_ns = monotonic_ns();
  for (size_t sent = 0; sent + which.burst <= packets_.size(); sent += which.burst) {
    const auto due_ns =
        start_ns + static_cast<uint64_t>(burst_ns * static_cast<double>(sent / which.burst));
    uint64_t now_ns = monotonic_ns();
    if (due_ns > now_ns + 200'000) sleep_until_ns(due_ns - 100'000);
    while (now_ns < due_ns) now_ns = monotonic_ns();
    (void)generator_.send_burst(packets_, sent, sent + which.burst);
  }
}

// True when everything had been passed on in time, at the rate that was asked for.
bool RateScenario::trial(Driver& driver, const Case& which, double rate) {
  constexpr uint64_t kGrace_ns = 10'000'000;
  const size_t shreds = std::max<size_t>(
      static_cast<size_t>(rate * static_cast<double>(trial_ns_) / 1e9), 2 * which.burst);
  stream_.make(shreds, packets_);
  packets_.offsets.resize(shreds / which.burst * which.burst + 1);
  const uint64_t expected_bytes = uint64_t{packets_.offsets.back()} * which.destinations;
  generator_.connect_to(driver.port());
  const DeviceCounts before = device_counts(bench_.network);
  const uint64_t start_ns = monotonic_ns();
  send_paced(which, rate);
  const double took_ns = static_cast<double>(monotonic_ns() - start_ns);
  if (took_ns > 1.1 * 1e9 * static_cast<double>(packets_.size()) / rate + 1e6) return false;

  const auto payload_bytes = [&] {
    const DeviceCounts now = device_counts(bench_.network);
    return now.bytes - before.bytes - (now.packets - before.packets) * kFrameHeaderBytes;
  };
  sleep_ns(kGrace_ns);
  const bool in_time = payload_bytes() >= expected_bytes;
  uint64_t last = 0;
  for (int i = 0; i < 200 && payload_bytes() != last; i++) {  // the next trial starts empty
    last = payload_bytes();
    sleep_ns(kGrace_ns);
  }
  return in_time;
}

// Once more when it failed: somebody else may have had the CPU.
bool RateScenario::holds(Driver& driver, const Case& which, double rate) {
  return trial(driver, which, rate) || trial(driver, which, rate);
}

double RateScenario::search(Driver& driver, const Case& which) {
  double good = 0, bad = 400;
  while (bad < kRateMax && holds(driver, which, bad)) {
    good = bad;
    bad *= 2;
  }
  if (bad >= kRateMax) {
    if (holds(driver, which, kRateMax)) return kRateMax;
    bad = kRateMax;
  }
  const int steps = bench_.options.small ? 2 : 5;
  for (int i = 0; i < steps; i++) {
    const double middle = (good + bad) / 2;
    if (holds(driver, which, middle)) good = middle;
    else bad = middle;
  }
  return good;
}

void RateScenario::measure(const char* name, Driver* driver, const Case& which) {
  if (!driver) return;
  stream_.make(512, packets_);  // warms it up
  send_paced({which.destinations, 1}, 2000);
  const double rate = search(*driver, which);
  ReportLine("rate")
      .text("driver", name)
      .count("destinations", which.destinations)
      .count("burst", which.burst)
      .number("shreds_per_second", rate)
      .truth("generator_limit", rate >= kRateMax)
      .print();
}

void RateScenario::run() {
  if (!bench_.network.isolated) return;  // without a device that counts nobody knows what left
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
                                        .deshred_cpus = bench_.cpus});
      measure("shredway", ours.get(), {count, burst});
      if (set_device_segmentation(bench_.network, false)) {
        const auto other = OurRelay::open({.destinations = destinations,
                                           .cpu = cpu,
                                           .leader = stream_.leader(),
                                           .deshred_cpus = bench_.cpus});
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
