// Beside: the effect of the deshred thread on the latency of packets.
//
// Two real relays, with and without the deshred thread, alternate in slots of 60 ms, in both orders
// within a round. The shreds hold entries and arrive in random order within their FEC set, so that
// every set is recovered, read and reported while packets pass. The worker is alone on its CPU,
// generator and sink are on another; the system chooses the CPU of the deshred thread.
#include <algorithm>
#include <memory>
#include <numeric>
#include <random>

#include "drivers.h"
#include "report_line.h"
#include "sink.h"
#include "timing.h"

namespace shredway::bench {
namespace {

struct Contestant {
  const char* name;
  std::unique_ptr<OurRelay> relay;
  std::vector<uint64_t> last_ns{};  // of this round
  uint64_t lost = 0, recovered_before = 0;
};

struct Case {
  uint32_t destinations;
  uint32_t burst;
  // 10,000 shreds a second, or a fifth of what the worker can send over loopback: 5 us for a single
  // datagram, 1.5 us in a GSO message.
  uint64_t interval_ns() const {
    const uint64_t datagram_ns = burst == 1 ? 5'000 : 1'500;
    return std::max<uint64_t>(100'000 * burst, 5 * burst * destinations * datagram_ns);
  }
};

class BesideScenario {
 public:
  explicit BesideScenario(const Bench& bench) : bench_(bench), sink_(stream_, bench.helper_cpu) {}
  void run();

 private:
  bool enter(uint32_t destinations);
  void run_case(const Case& which);
  void run_slot(Contestant& contestant, const Case& which);
  void print(Contestant& contestant, const Case& which, uint32_t round);
  std::vector<size_t> shuffled_within_sets(size_t count);

  const Bench& bench_;
  ShredStream stream_{1, 32, ShredContents::entries};
  PacketList packets_, in_order_;
  Generator generator_;
  Sink sink_;
  std::mt19937_64 random_{1};
  std::vector<Contestant> contestants_;
};

bool BesideScenario::enter(uint32_t count) {
  contestants_.clear();
  std::vector<Endpoint> destinations;
  for (uint32_t i = 0; i < count; i++)
    destinations.push_back(loopback_destination(i, sink_.port()));
  for (const bool deshred : {false, true}) {
    auto relay = OurRelay::open({.destinations = destinations,
                                 .cpu = bench_.tested_cpu,
                                 .leader = stream_.leader(),
                                 .deshred = deshred,
                                 .other_cpus = bench_.cpus});
    if (!relay) return false;
    contestants_.push_back({deshred ? "with" : "without", std::move(relay)});
  }
  return true;
}

// Indexes of the first `count` shreds (whole sets) of a list.
std::vector<size_t> BesideScenario::shuffled_within_sets(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  for (auto set = order.begin(); set != order.end(); set += kFecSetLeaves)
    std::shuffle(set, set + kFecSetLeaves, random_);
  return order;
}

void BesideScenario::run_slot(Contestant& contestant, const Case& which) {
  const uint64_t slot_ns = bench_.options.small ? 20'000'000 : 60'000'000;
  const size_t wanted = std::max<size_t>(slot_ns / which.interval_ns(), 1) * which.burst;
  stream_.make(wanted, in_order_);
  const size_t count = in_order_.size();
  const std::vector<size_t> order = shuffled_within_sets(count);
  packets_.bytes.clear();
  packets_.offsets.assign(1, 0);
  for (const size_t place : order) {
    const uint8_t* packet = in_order_.packet(place);
    packets_.bytes.insert(packets_.bytes.end(), packet, packet + in_order_.packet_bytes(place));
    packets_.offsets.push_back(static_cast<uint32_t>(packets_.bytes.size()));
  }
  generator_.connect_to(contestant.relay->port());
  sink_.expect(stream_.number_of(in_order_.packet(0)), count);
  std::vector<uint64_t> sent_ns(count);  // by index
  uint64_t next_ns = monotonic_ns();
  for (size_t i = 0; i < count; i += which.burst) {
    const size_t end = std::min(i + which.burst, count);
    const uint64_t now_ns = realtime_ns();
    for (size_t k = i; k < end; k++) sent_ns[order[k]] = now_ns;
    (void)generator_.send_burst(packets_, i, end);
    next_ns += which.interval_ns();
    sleep_until_ns(next_ns);
  }
  const std::vector<SinkArrival> arrivals = sink_.wait_for_arrivals(which.destinations);
  for (size_t i = 0; i < count; i++) {
    if (arrivals[i].copies < which.destinations) contestant.lost++;
    else contestant.last_ns.push_back(arrivals[i].last_ns - sent_ns[i]);
  }
}

void BesideScenario::print(Contestant& contestant, const Case& which, uint32_t round) {
  const uint64_t recovered = contestant.relay->deshred_count(DeshredCounter::sets_recovered);
  std::vector<uint64_t>& last = contestant.last_ns;
  std::sort(last.begin(), last.end());
  if (round > 0) {
    ReportLine line("beside");
    line.text("driver", contestant.name).count("destinations", which.destinations);
    line.count("burst", which.burst).count("round", round).count("samples", last.size());
    line.count("lost", contestant.lost);
    line.count("recovered", recovered - contestant.recovered_before);
    line.count("p50_ns", percentile(last, 0.5)).count("p99_ns", percentile(last, 0.99)).print();
  }
  contestant.recovered_before = recovered;
  contestant.lost = 0;
  last.clear();
}

void BesideScenario::run_case(const Case& which) {
  Contestant& without = contestants_.front();
  Contestant& with = contestants_.back();
  const int pairs = bench_.options.small ? 1 : 4;
  for (uint32_t round = 0; round <= bench_.options.rounds; round++) {
    for (int i = 0; i < pairs; i++) {
      run_slot(i % 2 ? with : without, which);
      run_slot(i % 2 ? without : with, which);
    }
    for (Contestant& contestant : contestants_) print(contestant, which, round);
  }
}

void BesideScenario::run() {
  pin(0, bench_.helper_cpu);
  for (const uint32_t destinations :
       bench_.options.small ? std::vector<uint32_t>{10} : std::vector<uint32_t>{1, 50}) {
    if (!enter(destinations)) return;
    for (const uint32_t burst : {1u, 32u}) run_case({destinations, burst});
  }
}

}  // namespace

void run_beside(const Bench& bench) { BesideScenario(bench).run(); }

}  // namespace shredway::bench
