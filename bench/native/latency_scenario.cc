// Latency: the time from the generator's send call to the first and the last destination, at
// moderate load.
//
// The relay runs alone on one CPU, generator and sink on the other. All destinations are loopback
// addresses that one socket receives, with the kernel's receive time for each datagram; the sink
// polls every millisecond, so that waking it costs the relay nothing. Interleaved, round by round.
#include <algorithm>
#include <functional>
#include <memory>

#include "drivers.h"
#include "report_line.h"
#include "sink.h"
#include "timing.h"

namespace shredway::bench {
namespace {

struct Contestant {
  const char* name;
  std::unique_ptr<Driver> driver;
  // Set: open only during its own slots, because it would take the CPU from the others.
  std::function<std::unique_ptr<Driver>()> open{};
  std::vector<uint64_t> first_ns{}, last_ns{};  // of all rounds
  uint64_t lost = 0;
};

struct Case {
  uint32_t destinations;
  uint32_t burst;
  // A fifth of sendmmsg's maximum rate, at most 2,000 bursts a second.
  uint64_t interval_ns() const {
    return std::max<uint64_t>(500'000, 5 * burst * (4'000 + uint64_t{destinations} * 5'000));
  }
};

void print(const char* kind, const Case& which, const Contestant& contestant, uint32_t round,
           std::vector<uint64_t> first, std::vector<uint64_t> last) {
  std::sort(first.begin(), first.end());
  std::sort(last.begin(), last.end());
  ReportLine line(kind);
  line.text("driver", contestant.name).count("destinations", which.destinations);
  line.count("burst", which.burst).count("round", round).count("samples", first.size());
  line.count("lost", contestant.lost);
  line.count("first_p50_ns", percentile(first, 0.5)).count("last_p50_ns", percentile(last, 0.5));
  line.count("first_p99_ns", percentile(first, 0.99)).count("last_p99_ns", percentile(last, 0.99));
  line.count("first_p999_ns", percentile(first, 0.999));
  line.count("last_p999_ns", percentile(last, 0.999)).print();
}

class LatencyScenario {
 public:
  explicit LatencyScenario(const Bench& bench)
      : bench_(bench), sink_(std::make_unique<Sink>(stream_, bench.helper_cpu)) {}

  void run() {
    pin(0, bench_.helper_cpu);
    each_case(
        bench_.options.small, [this](uint32_t destinations) { enter(destinations); },
        [this](uint32_t destinations, uint32_t burst) {
          run_case({destinations, burst});
        });
  }

 private:
  void enter(uint32_t count);
  void run_case(const Case& which);
  void run_slot(Contestant& contestant, const Case& which, uint32_t round);
  size_t bursts(const Case& which) const {
    const uint64_t slot_ns = bench_.options.small ? 60'000'000 : 250'000'000;
    return std::max<size_t>(4, slot_ns / which.interval_ns());
  }

  const Bench& bench_;
  ShredStream stream_;
  PacketList packets_;
  Generator generator_;
  std::unique_ptr<Sink> sink_;
  std::vector<Contestant> contestants_;
};

void LatencyScenario::enter(uint32_t count) {
  contestants_.clear();
  std::vector<Endpoint> destinations;
  for (uint32_t i = 0; i < count; i++)
    destinations.push_back(loopback_destination(i, sink_->port()));
  const int cpu = bench_.tested_cpu;
  const auto add = [&](const char* name, std::unique_ptr<Driver> driver) {
    if (driver) contestants_.push_back({name, std::move(driver)});
  };
  const auto ours = [this, cpu, destinations](WaitMode wait) {
    return OurRelay::open({.destinations = destinations,
                           .cpu = cpu,
                           .leader = stream_.leader(),
                           .wait = wait,
                           .other_cpus = bench_.cpus});
  };
  add("forwarder", std::make_unique<ForwarderDriver>(destinations, cpu));
  add("shredway", ours(WaitMode::block));
  add("shredway_spin", ours(WaitMode::spin));
  contestants_.push_back({"shredway_busy", nullptr,
                          [ours]() -> std::unique_ptr<Driver> { return ours(WaitMode::busy); }});
  add("dgram", start_dgram(bench_, destinations));
  add("samplicator", start_samplicator(bench_, destinations));
}

void LatencyScenario::run_slot(Contestant& contestant, const Case& which, uint32_t round) {
  // New shreds for each slot, so that late datagrams of an overloaded relay are not counted.
  stream_.make(bursts(which) * which.burst, packets_);
  if (contestant.open) contestant.driver = contestant.open();
  if (!contestant.driver) return;
  generator_.connect_to(contestant.driver->port());
  const size_t count = bursts(which);
  std::vector<uint64_t> sent_ns(count);
  sink_->expect(stream_.number_of(packets_.packet(0)), count * which.burst);
  uint64_t next_ns = monotonic_ns();
  for (size_t i = 0; i < count; i++) {
    sent_ns[i] = realtime_ns();
    (void)generator_.send_burst(packets_, i * which.burst, (i + 1) * which.burst);
    next_ns += which.interval_ns();
    sleep_until_ns(next_ns);
  }
  const std::vector<SinkArrival> arrivals = sink_->wait_for_arrivals(which.destinations);
  if (contestant.open) contestant.driver = nullptr;
  if (round == 0) return;
  std::vector<uint64_t> first, last;
  for (size_t i = 0; i < arrivals.size(); i++) {
    const SinkArrival& arrival = arrivals[i];
    if (arrival.copies < which.destinations) {
      contestant.lost++;
      continue;
    }
    first.push_back(arrival.first_ns - sent_ns[i / which.burst]);
    last.push_back(arrival.last_ns - sent_ns[i / which.burst]);
  }
  contestant.first_ns.insert(contestant.first_ns.end(), first.begin(), first.end());
  contestant.last_ns.insert(contestant.last_ns.end(), last.begin(), last.end());
  print("latency", which, contestant, round, std::move(first), std::move(last));
}

void LatencyScenario::run_case(const Case& which) {
  for (uint32_t round = 0; round <= bench_.options.rounds; round++) {
    for (size_t i = 0; i < contestants_.size(); i++)
      run_slot(contestants_[(i + round) % contestants_.size()], which, round);
  }
  for (Contestant& contestant : contestants_) {
    print("latency_total", which, contestant, 0, std::move(contestant.first_ns),
          std::move(contestant.last_ns));
    contestant.first_ns = {};
    contestant.last_ns = {};
    contestant.lost = 0;
  }
}

}  // namespace

void run_latency(const Bench& bench) { LatencyScenario(bench).run(); }

}  // namespace shredway::bench
