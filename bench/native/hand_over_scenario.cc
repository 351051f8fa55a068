// Hand-over: the worker's cost of passing shreds to the deshred thread.
//
// Two real relays, one with the deshred thread and one without, are alternately fed the same kind
// of list from memory (feed.h) without destinations. The difference is the copy that the worker
// writes to the ring, while the deshred thread reads on another CPU. A list fits into the ring, so
// every shred is really copied (the worker's own counter is reported as proof). The worker's
// allocations are counted in both.
#include <memory>
#include <string>

#include "crypto/ed25519.h"
#include "drivers.h"
#include "feed.h"
#include "report_line.h"
#include "timing.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kSource = 0x7f000001;  // 127.0.0.1, see source_table()
constexpr size_t kShreds = kQueuedShredsMax;

class HandOverScenario {
 public:
  explicit HandOverScenario(const Bench& bench)
      : bench_(bench), repetitions_(bench.options.small ? 1 : 4) {}
  void run();

 private:
  std::unique_ptr<OurRelay> open(bool deshred) const;
  void run_relay(OurRelay& relay, const char* name, uint32_t round);

  const Bench& bench_;
  const size_t repetitions_;
  ShredStream stream_{1, 32, ShredContents::entries};
  PacketList packets_;
  std::vector<FedPacket> list_;
};

std::unique_ptr<OurRelay> HandOverScenario::open(bool deshred) const {
  return OurRelay::open({.destinations = {},
                         .cpu = bench_.tested_cpu,
                         .leader = stream_.leader(),
                         .wait = WaitMode::busy,
                         .deshred = deshred,
                         .other_cpus = {bench_.helper_cpu}});
}

// Small batches, as at moderate load, and full ones.
constexpr size_t kBatches[] = {4, 64};

void HandOverScenario::run_relay(OurRelay& relay, const char* name, uint32_t round) {
  adopt_fed_thread(relay.thread());
  for (const size_t batch : kBatches) {
    FeedResult sum{0, 0, true};
    const uint64_t first = relay.verdict_count(Verdict::first);
    const uint64_t lost = relay.worker_count(WorkerCounter::deshred_lost);
    for (size_t i = 0; i < repetitions_; i++) {
      stream_.make(kShreds, packets_);
      list_.clear();
      for (size_t shred = 0; shred < packets_.size(); shred++)
        list_.push_back(
            {packets_.packet(shred), static_cast<uint32_t>(packets_.packet_bytes(shred)), kSource});
      sleep_ns(10'000'000);  // the ring is empty again
      const FeedResult result = play(list_, batch);
      sum.cpu_ns += result.cpu_ns;
      sum.allocations += result.allocations;
      sum.finished &= result.finished;
    }
    if (!sum.finished || round == 0) continue;
    ReportLine line("hand_over");
    line.text("driver", name).count("batch", batch).count("round", round);
    line.count("packets", repetitions_ * kShreds).count("cpu_ns", sum.cpu_ns);
    line.count("first", relay.verdict_count(Verdict::first) - first);
    line.count("lost", relay.worker_count(WorkerCounter::deshred_lost) - lost);
    line.truth("counted", counts_allocations()).count("allocations", sum.allocations);
    line.text("library", ed25519_library_name()).print();
  }
}

void HandOverScenario::run() {
  pin(0, bench_.helper_cpu);
  const auto with = open(true);
  const auto without = open(false);
  if (!with || !without) return;
  for (uint32_t round = 0; round <= bench_.options.rounds; round++) {
    run_relay(*without, "without", round);
    run_relay(*with, "with", round);
  }
}

}  // namespace

void run_hand_over(const Bench& bench) { HandOverScenario(bench).run(); }

}  // namespace shredway::bench
