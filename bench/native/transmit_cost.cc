// Cost of each transmit path: processor time per delivered datagram, without work around the
// sending.
//
// One thread on one CPU, in slots that are interleaved round by round. The time of the kernel
// thread for deferred interrupts on this CPU is added to the thread's own processor time: on veth
// it does the receiver's work when there is much of it. The packets that left the device are
// compared with those requested and with the path's own count.
#include <sys/types.h>

#include <string>
#include <vector>

#include "clocks.h"
#include "report_line.h"
#include "traffic.h"
#include "transmit_loops.h"
#include "transmit_scenario.h"

namespace shredway::bench {
namespace {

constexpr size_t kListShreds = 512;

struct Way {
  const char* name;
  std::unique_ptr<SendLoop> loop;
};

struct CostCase {
  const char* device;
  uint32_t destinations;
  uint32_t burst;
  bool device_segments;
};

class TransmitCost {
 public:
  explicit TransmitCost(const TransmitBench& transmit)
      : transmit_(transmit),
        slot_ns_(transmit.bench.options.small ? 8'000'000 : 60'000'000),
        interrupt_thread_(process_named("ksoftirqd/" + std::to_string(transmit.bench.tested_cpu))) {
  }
  void run();

 private:
  void run_device(const char* device, const TransmitPath& path);
  void open_ways(const char* device);
  void run_case(const CostCase& which);
  void run_slot(Way& way, const CostCase& which, uint32_t round);
  void wait_until_delivered(uint64_t bytes) const;
  uint64_t delivered_bytes() const;

  const TransmitBench& transmit_;
  const uint64_t slot_ns_;
  // The kernel thread that runs long interrupt work of this CPU; 0: not visible.
  const pid_t interrupt_thread_;
  ShredStream stream_;
  PacketList packets_;
  TransmitPath path_;
  std::vector<Way> ways_;
};

void TransmitCost::open_ways(const char* device) {
  ways_.clear();  // before the new ones are opened: there is only one clone plane
  ways_.push_back({"bare_sendmmsg", std::make_unique<BareLoop>(path_.destinations, false)});
  ways_.push_back({"socket", std::make_unique<BatchLoop>(path_.destinations, true)});
  std::string error;
  const auto add = [&](const char* name, std::unique_ptr<SendLoop> loop) {
    if (loop) ways_.push_back({name, std::move(loop)});
    else print_transmit_skipped(std::string(name) + ", " + device, error);
  };
  if (transmit_.clone) add("clone", open_clone_loop(*transmit_.clone, path_, error));
  add("packet_ring", open_ring_loop(path_, 1024, error));
  add("xdp", open_xdp_loop(path_, error));
}

// Payload bytes that left the device.
uint64_t TransmitCost::delivered_bytes() const {
  const DeviceCounts counts = transmit_.network.delivered(path_);
  return counts.bytes - counts.packets * kFrameHeaderBytes;
}

// Waits for this many bytes, or until no more arrive.
void TransmitCost::wait_until_delivered(uint64_t bytes) const {
  for (uint64_t last = ~uint64_t{0}, now = 0; (now = delivered_bytes()) < bytes && now != last;) {
    last = now;
    sleep_ns(2'000'000);
  }
}

void TransmitCost::run_slot(Way& way, const CostCase& which, uint32_t round) {
  const auto interrupts_ns = [&] {
    return interrupt_thread_ ? process_cpu_ns(interrupt_thread_) : 0;
  };
  const uint64_t bytes_before = delivered_bytes();
  const uint64_t sent_before = way.loop->sent_count();
  const uint64_t interrupts_before = interrupts_ns();
  const uint64_t until_ns = monotonic_ns() + slot_ns_;
  const uint64_t cpu_before = own_cpu_ns();
  uint64_t shreds = 0, payload_bytes = 0;
  while (shreds == 0 || monotonic_ns() < until_ns) {
    const size_t begin = shreds % kListShreds, end = begin + which.burst;
    way.loop->send(packets_, begin, end);
    shreds += which.burst;
    payload_bytes += packets_.offsets[end] - packets_.offsets[begin];
  }
  uint64_t cpu_ns = own_cpu_ns() - cpu_before;
  const uint64_t expected_bytes = payload_bytes * which.destinations;
  wait_until_delivered(bytes_before + expected_bytes);
  cpu_ns += interrupts_ns() - interrupts_before;
  if (round == 0) return;  // warms up
  const auto delivered = static_cast<double>(delivered_bytes() - bytes_before);
  const auto reported = static_cast<double>(way.loop->sent_count() - sent_before);
  ReportLine("transmit")
      .text("way", way.name)
      .text("device", which.device)
      .count("destinations", which.destinations)
      .count("burst", which.burst)
      .text("segmentation", which.device_segments ? "device" : "kernel")
      .count("round", round)
      .count("cpu_ns", cpu_ns)
      .count("shreds", shreds)
      .number("delivered", delivered / static_cast<double>(expected_bytes))
      .number("told", reported / static_cast<double>(shreds * which.destinations))
      .print();
}

void TransmitCost::run_case(const CostCase& which) {
  (void)set_segmentation_of(path_.device.c_str(), which.device_segments);
  for (uint32_t round = 0; round <= transmit_.bench.options.rounds; round++) {
    stream_.make(kListShreds, packets_);
    for (size_t i = 0; i < ways_.size(); i++)
      run_slot(ways_[(i + round) % ways_.size()], which, round);
  }
  (void)set_segmentation_of(path_.device.c_str(), true);
}

void TransmitCost::run_device(const char* device, const TransmitPath& path) {
  path_ = path;
  open_ways(device);
  const auto destinations = static_cast<uint32_t>(path.destinations.size());
  const std::vector<uint32_t> bursts =
      transmit_.bench.options.small ? std::vector<uint32_t>{1, 8} : std::vector<uint32_t>{1, 8, 32};
  for (const uint32_t burst : bursts) {
    run_case({device, destinations, burst, true});
    if (burst > 1) run_case({device, destinations, burst, false});
  }
  ways_.clear();
}

void TransmitCost::run() {
  pin(0, transmit_.bench.tested_cpu);
  const std::vector<uint32_t> counts = transmit_.bench.options.small
                                           ? std::vector<uint32_t>{50}
                                           : std::vector<uint32_t>{10, 50, 200, 1000};
  for (const uint32_t count : counts) {
    run_device("null", transmit_.network.null_path(count));
    run_device("veth", transmit_.network.veth_path(count));
  }
}

}  // namespace

void run_transmit_cost(const TransmitBench& bench) { TransmitCost(bench).run(); }

}  // namespace shredway::bench
