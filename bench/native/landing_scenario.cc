// Landings: the time from the last needed shred to the report of a watched transaction.
//
// A real relay on loopback receives 10,000 shreds a second, with ten destinations on the null
// device and watched transactions in every batch. The deshred thread measures the time: from the
// kernel's receive time of the shred that completed the transaction to the report, in a histogram
// with buckets of about 6 %, whose upper ends are reported. The worker is alone on its CPU and the
// generator on another; the system chooses the CPU of the deshred thread.
#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "drivers.h"
#include "report_line.h"
#include "timing.h"

namespace shredway::bench {
namespace {

constexpr uint64_t kShredEvery_ns = 100'000;
constexpr uint32_t kDestinations = 10;
constexpr size_t kWatchEvery = 4;  // every 4th non-vote transaction

struct Case {
  const char* name;
  uint32_t burst;
  bool half_lost;  // 32 of each set's 64 shreds, at random
};
constexpr Case kCases[] = {
    {"one by one, nothing lost", 1, false},
    {"one by one, half of each set lost", 1, true},
    {"bursts of 32, nothing lost", 32, false},
    {"bursts of 32, half of each set lost", 32, true},
};

using Buckets = std::array<uint64_t, kHistogramBuckets>;

Buckets operator-(Buckets later, const Buckets& earlier) {
  for (size_t i = 0; i < later.size(); i++) later[i] -= earlier[i];
  return later;
}

// Upper end of the bucket of this percentile.
uint64_t upper_percentile(const Buckets& buckets, double part) {
  uint64_t total = 0;
  for (const uint64_t count : buckets) total += count;
  const auto rank = static_cast<uint64_t>(part * static_cast<double>(total));
  uint64_t below = 0;
  for (size_t i = 0; i + 1 < buckets.size(); i++) {
    below += buckets[i];
    if (below > rank) return histogram_floor(i + 1);
  }
  return 0;
}

class LandingScenario {
 public:
  explicit LandingScenario(const Bench& bench) : bench_(bench) {}
  void run();

 private:
  void keep_half();
  void send(const Case& which);
  Buckets report_latency() const;
  size_t drain(size_t expected);
  void run_case(const Case& which, uint32_t round);

  const Bench& bench_;
  ShredStream stream_{1, 32, ShredContents::entries};
  PacketList packets_;
  Generator generator_;
  std::mt19937_64 random_{1};
  std::unique_ptr<OurRelay> relay_;
};

void LandingScenario::keep_half() {
  PacketList selected;
  for (size_t set = 0; set < packets_.size(); set += kFecSetLeaves) {
    std::array<size_t, kFecSetLeaves> leaves;
    for (size_t i = 0; i < leaves.size(); i++) leaves[i] = set + i;
    std::shuffle(leaves.begin(), leaves.end(), random_);
    std::sort(leaves.begin(), leaves.begin() + kFecSetShreds);
    for (size_t i = 0; i < kFecSetShreds; i++) {
      const uint8_t* packet = packets_.packet(leaves[i]);
      selected.bytes.insert(selected.bytes.end(), packet,
                            packet + packets_.packet_bytes(leaves[i]));
      selected.offsets.push_back(static_cast<uint32_t>(selected.bytes.size()));
    }
  }
  packets_ = std::move(selected);
}

void LandingScenario::send(const Case& which) {
  uint64_t next_ns = monotonic_ns();
  for (size_t i = 0; i < packets_.size(); i += which.burst) {
    (void)generator_.send_burst(packets_, i, std::min(i + which.burst, packets_.size()));
    next_ns += which.burst * kShredEvery_ns;
    sleep_until_ns(next_ns);
  }
}

Buckets LandingScenario::report_latency() const {
  const Histogram& histogram = relay_->relay().deshred()->counters().report_latency;
  Buckets out;
  for (size_t i = 0; i < out.size(); i++) out[i] = histogram.buckets[i].get();
  return out;
}

// Drains the reports until `expected` or 200 ms after the last shred.
size_t LandingScenario::drain(size_t expected) {
  std::vector<Landing> landings(kLandingsWaitingMax);
  size_t count = 0;
  for (int i = 0; i < 40 && count < expected; i++) {
    sleep_ns(5'000'000);
    count += relay_->relay().deshred()->drain(landings.data(), landings.size());
  }
  return count;
}

void LandingScenario::run_case(const Case& which, uint32_t round) {
  const size_t shreds = bench_.options.small ? 1024 : 6144;
  stream_.make(which.half_lost ? 2 * shreds : shreds, packets_);
  if (which.half_lost) keep_half();
  std::vector<TransactionSignature> watched;
  for (size_t i = 0; i < stream_.signatures().size(); i += kWatchEvery)
    watched.push_back(stream_.signatures()[i]);
  DeshredThread& thread = *relay_->relay().deshred();
  if (!thread.watch(watched).empty()) return;
  sleep_ns(5'000'000);  // the watch order is applied
  const Buckets before = report_latency();
  const uint64_t cpu_before_ns = relay_->deshred_count(DeshredCounter::cpu_ns);
  send(which);
  const size_t reported = drain(watched.size());
  const Buckets after = report_latency() - before;
  thread.unwatch(watched);
  if (round == 0) return;
  ReportLine line("landings");
  line.text("case", which.name).count("round", round).count("shreds", packets_.size());
  line.count("watched", watched.size()).count("reported", reported);
  line.count("deshred_cpu_ns", relay_->deshred_count(DeshredCounter::cpu_ns) - cpu_before_ns);
  line.count("p50_ns", upper_percentile(after, 0.5));
  line.count("p99_ns", upper_percentile(after, 0.99)).print();
}

void LandingScenario::run() {
  pin(0, bench_.helper_cpu);
  std::vector<Endpoint> destinations;
  for (uint32_t i = 0; i < kDestinations; i++)
    destinations.push_back(null_destination(bench_.network, i));
  relay_ = OurRelay::open({.destinations = destinations,
                           .cpu = bench_.tested_cpu,
                           .leader = stream_.leader(),
                           .other_cpus = bench_.cpus});
  if (!relay_) return;
  generator_.connect_to(relay_->port());
  for (uint32_t round = 0; round <= bench_.options.rounds; round++)
    for (const Case& which : kCases) run_case(which, round);
}

}  // namespace

void run_landings(const Bench& bench) { LandingScenario(bench).run(); }

}  // namespace shredway::bench
