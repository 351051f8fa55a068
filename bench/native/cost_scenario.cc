// Cost: processor time per delivered datagram, by number of destinations and size of bursts.
//
// Everything runs on one CPU, in slots that are interleaved round by round: the send loops without
// pause (bare_paced: with the relays' pauses, so that caches are as cold as theirs), the relays fed
// with bursts and enough time to finish each. Relays run as SCHED_BATCH, so a burst is complete
// before it is read (the relay's own batch counter is reported as proof). The null device's counts
// are compared with the programs' own.
#include <algorithm>
#include <memory>
#include <string>

#include "clocks.h"
#include "drivers.h"
#include "report_line.h"
#include "send_loops.h"

namespace shredway::bench {
namespace {

constexpr const char* kToNobody = "shredway_to_nobody";
constexpr const char* kDuplicates = "shredway_duplicates";

struct Contestant {
  std::string name;
  std::unique_ptr<Driver> driver;  // either this
  std::unique_ptr<SendLoop> loop;  // or this
  uint32_t destinations;           // number that the program really serves
  bool bursts_only = false;
  bool paced = false;  // the loop pauses like the relays
};

struct Case {
  uint32_t destinations;
  uint32_t burst;
  bool device_segments;
};

// Measurement of one slot.
struct Slot {
  uint64_t cpu_ns = 0;
  size_t shreds = 0;
  double delivered = 1;  // fraction of the datagrams that reached the device
  Driver::Batches batches;
};

class CostScenario {
 public:
  explicit CostScenario(const Bench& bench)
      : bench_(bench),
        slot_ns_(bench.options.small ? 20'000'000 : 60'000'000),
        rounds_(bench.options.rounds) {}
  void run();

 private:
  void enter(uint32_t destinations);
  void run_case(const Case& which);
  void run_slot(Contestant& contestant, const Case& which, uint32_t round);
  void print(const Contestant& contestant, const Case& which, uint32_t round, const Slot& slot);
  uint64_t send_without_pause(SendLoop& loop, const Case& which, uint64_t& repeats);
  uint64_t send_paced(SendLoop& loop, const Case& which);
  void feed(Driver& driver, const Case& which);
  void wait_until_done(const Driver& driver, uint64_t expected_frame_bytes);
  bool takes_part(const Contestant& contestant, const Case& which) const;
  double delivered_part(const DeviceCounts& before, uint64_t expected_bytes) const;
  size_t bursts(const Case& which) const;

  const Bench& bench_;
  const uint64_t slot_ns_;
  const uint32_t rounds_;
  ShredStream stream_;
  PacketList packets_;
  Generator generator_;
  std::vector<Contestant> contestants_;
};

// Time that the slowest relay needs for a burst, with reserve.
uint64_t gap_ns(const Case& which) {
  constexpr uint64_t kWakeUp_ns = 60'000, kShred_ns = 4'000, kDatagram_ns = 5'000;
  return kWakeUp_ns + which.burst * (kShred_ns + which.destinations * kDatagram_ns);
}

size_t CostScenario::bursts(const Case& which) const {
  return std::clamp<size_t>(slot_ns_ / gap_ns(which), 3, 4096 / which.burst);
}

void CostScenario::enter(uint32_t count) {
  contestants_.clear();
  std::vector<Endpoint> destinations;
  for (uint32_t i = 0; i < count; i++) destinations.push_back(null_destination(bench_.network, i));
  const int cpu = bench_.tested_cpu;
  const auto add = [&](const char* name, std::unique_ptr<Driver> driver, uint32_t receiving) {
    if (!driver) return;
    if (driver->thread()) let_batches_form(driver->thread());
    contestants_.push_back({name, std::move(driver), nullptr, receiving});
  };
  const auto add_loop = [&](const char* name, std::unique_ptr<SendLoop> loop, bool bursts_only) {
    contestants_.push_back({name, nullptr, std::move(loop), count, bursts_only});
  };
  add_loop("bare_sendmmsg", std::make_unique<BareLoop>(destinations, false), false);
  add_loop("bare_gso", std::make_unique<BareLoop>(destinations, true), true);
  add_loop("bare_paced", std::make_unique<BareLoop>(destinations, true), false);
  contestants_.back().paced = true;
  add_loop("send_batch", std::make_unique<BatchLoop>(destinations, true), false);
  add("receive", std::make_unique<ReceiveOnly>(cpu), 0);
  const auto ours = [&](const std::vector<Endpoint>& to) {
    return OurRelay::open({.destinations = to,
                           .cpu = cpu,
                           .leader = stream_.leader(),
                           .other_cpus = {bench_.helper_cpu}});
  };
  add("shredway", ours(destinations), count);
  add(kToNobody, ours({}), 0);
  add("forwarder", std::make_unique<ForwarderDriver>(destinations, cpu), count);
  add("dgram", start_dgram(bench_, destinations), count);
  add("samplicator", start_samplicator(bench_, destinations), count);
}

bool CostScenario::takes_part(const Contestant& contestant, const Case& which) const {
  if (contestant.bursts_only && which.burst == 1) return false;
  if (which.device_segments) return true;
  return contestant.name != "forwarder" && contestant.name != "dgram" &&
         contestant.name != "samplicator";  // these never send GSO messages
}

void CostScenario::feed(Driver& driver, const Case& which) {
  generator_.connect_to(driver.port());
  uint64_t next_ns = monotonic_ns();
  for (size_t i = 0; i < bursts(which); i++) {
    (void)generator_.send_burst(packets_, i * which.burst, (i + 1) * which.burst);
    next_ns += gap_ns(which);
    sleep_until_ns(next_ns);
  }
}

// Waits until neither the driver's processor time nor the device's counters change.
void CostScenario::wait_until_done(const Driver& driver, uint64_t expected_frame_bytes) {
  constexpr uint64_t kQuiet_ns = 3'000'000;
  for (uint64_t last = 0, i = 0; i < 200; i++) {
    const uint64_t now = driver.cpu_ns();
    const bool quiet = now - last < 20'000;
    if (quiet && (i > 2 || device_counts(bench_.network).bytes >= expected_frame_bytes)) return;
    last = now;
    sleep_ns(kQuiet_ns);
  }
}

double CostScenario::delivered_part(const DeviceCounts& before, uint64_t expected_bytes) const {
  if (!bench_.network.isolated || expected_bytes == 0) return 1;
  const DeviceCounts now = device_counts(bench_.network);
  const uint64_t payload_bytes =
      now.bytes - before.bytes - (now.packets - before.packets) * kFrameHeaderBytes;
  return static_cast<double>(payload_bytes) / static_cast<double>(expected_bytes);
}

// Own processor time for the list, repeated as often as fits the slot.
uint64_t CostScenario::send_without_pause(SendLoop& loop, const Case& which, uint64_t& repeats) {
  const uint64_t cpu_before = own_cpu_ns();
  const uint64_t until_ns = monotonic_ns() + slot_ns_;
  for (repeats = 0; repeats == 0 || monotonic_ns() < until_ns; repeats++)
    for (size_t i = 0; i < bursts(which); i++)
      loop.send(packets_, i * which.burst, (i + 1) * which.burst);
  return own_cpu_ns() - cpu_before;
}

// Own processor time for the list with the relays' pauses, without the sleeping.
uint64_t CostScenario::send_paced(SendLoop& loop, const Case& which) {
  uint64_t cpu_ns = 0, next_ns = monotonic_ns();
  for (size_t i = 0; i < bursts(which); i++) {
    const uint64_t reading_before = own_cpu_ns();
    const uint64_t cpu_before = own_cpu_ns();
    loop.send(packets_, i * which.burst, (i + 1) * which.burst);
    const uint64_t reading_ns = cpu_before - reading_before;  // cost of reading the clock
    cpu_ns += own_cpu_ns() - cpu_before - reading_ns;
    next_ns += gap_ns(which);
    sleep_until_ns(next_ns);
  }
  return cpu_ns;
}

void CostScenario::run_slot(Contestant& contestant, const Case& which, uint32_t round) {
  const DeviceCounts device_before = device_counts(bench_.network);
  const size_t shreds = bursts(which) * which.burst;
  const uint64_t payload_bytes = uint64_t{packets_.offsets[shreds]} * contestant.destinations;
  Slot slot;
  uint64_t repeats = 1;
  if (contestant.loop) {
    repeats = contestant.paced ? 1 : 0;
    slot.cpu_ns = contestant.paced ? send_paced(*contestant.loop, which)
                                   : send_without_pause(*contestant.loop, which, repeats);
  } else {
    Driver& driver = *contestant.driver;
    const uint64_t cpu_before = driver.cpu_ns();
    const Driver::Batches before = driver.batches();
    feed(driver, which);
    wait_until_done(driver, device_before.bytes + payload_bytes);
    slot.cpu_ns = driver.cpu_ns() - cpu_before;
    slot.batches = driver.batches();
    slot.batches.received -= before.received;
    slot.batches.batches -= before.batches;
  }
  slot.shreds = shreds * repeats;
  slot.delivered = delivered_part(device_before, payload_bytes * repeats);
  if (round > 0) print(contestant, which, round, slot);  // round 0 warms up
}

void CostScenario::print(const Contestant& contestant, const Case& which, uint32_t round,
                         const Slot& slot) {
  ReportLine line("cost");
  line.text("driver", contestant.name).count("destinations", which.destinations);
  line.count("burst", which.burst)
      .text("segmentation", which.device_segments ? "device" : "kernel");
  line.count("round", round).count("cpu_ns", slot.cpu_ns).count("shreds", slot.shreds);
  line.number("delivered", slot.delivered);
  if (slot.batches.batches)
    line.number("batch", static_cast<double>(slot.batches.received) /
                             static_cast<double>(slot.batches.batches));
  line.print();
}

void CostScenario::run_case(const Case& which) {
  (void)set_device_segmentation(bench_.network, which.device_segments);
  for (uint32_t round = 0; round <= rounds_; round++) {
    stream_.make(bursts(which) * which.burst, packets_);
    for (size_t i = 0; i < contestants_.size(); i++) {
      Contestant& contestant = contestants_[(i + round) % contestants_.size()];
      if (!takes_part(contestant, which)) continue;
      run_slot(contestant, which, round);
      if (contestant.name != kToNobody) continue;
      contestant.name = kDuplicates;  // the same packets again
      run_slot(contestant, which, round);
      contestant.name = kToNobody;
    }
  }
}

void CostScenario::run() {
  pin(0, bench_.tested_cpu);
  const std::vector<uint32_t> counts =
      bench_.options.small ? std::vector<uint32_t>{1, 50} : std::vector<uint32_t>{1, 10, 50, 200};
  const std::vector<uint32_t> bursts =
      bench_.options.small ? std::vector<uint32_t>{1, 32} : std::vector<uint32_t>{1, 8, 32};
  for (const uint32_t count : counts) {
    enter(count);
    for (const uint32_t burst : bursts) {
      run_case({count, burst, true});
      if (burst > 1 && bench_.network.isolated && !bench_.options.small)
        run_case({count, burst, false});
    }
  }
}

}  // namespace

void run_cost(const Bench& bench) { CostScenario(bench).run(); }

}  // namespace shredway::bench
