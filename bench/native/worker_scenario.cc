// Worker: the relay's own cost per packet, by the kind of packet, and the number of its
// allocations.
//
// A real relay whose worker is fed from memory (feed.h) and has no destinations, so that there are
// no system calls. The same list into a loop that only receives is the baseline; the difference is
// parsing, checks, authentication and recording (without the deshred thread, which
// hand_over_scenario.cc measures). Lists: copies from a second source, forged ones from a third.
#include <algorithm>
#include <memory>
#include <string>

#include "clocks.h"
#include "drivers.h"
#include "feed.h"
#include "report_line.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kFirstSource = 0x7f000001;  // 127.0.0.1, see source_table()
constexpr uint32_t kSources = 3;
constexpr size_t kBatch = 64;  // packets per receive call
constexpr uint32_t kUnknownSender = 0x0a000001;

enum class Forgery { none, signature, body };

struct Mix {
  const char* name;
  uint32_t copies = 1;  // copies of each authentic shred: 1, 2 or 5 give 0, 50 or 80 % duplicates
  Forgery forgery = Forgery::none;  // one forged packet per authentic one
  bool budget_used_up = false;
  bool all_known = false;      // the list was played before
  uint32_t sender_offset = 0;  // added to every sender
  size_t copy_distance = 48;   // number of shreds between an original and its copy; 0: none
};
constexpr Mix kMixes[] = {
    {.name = "all new"},
    {.name = "50 % duplicates", .copies = 2},
    {.name = "80 % duplicates", .copies = 5},
    {.name = "50 % duplicates, right behind", .copies = 2, .copy_distance = 0},
    {.name = "all duplicates", .all_known = true},
    {.name = "50 % forged signatures", .forgery = Forgery::signature},
    {.name = "50 % forged signatures, budget used up",
     .forgery = Forgery::signature,
     .budget_used_up = true},
    {.name = "50 % altered bodies", .forgery = Forgery::body},
    {.name = "50 % forged, of the rest 50 % duplicates",
     .copies = 2,
     .forgery = Forgery::signature,
     .budget_used_up = true},
    {.name = "50 % forged, of the rest 80 % duplicates",
     .copies = 5,
     .forgery = Forgery::signature,
     .budget_used_up = true},
    {.name = "unknown sender", .sender_offset = kUnknownSender - kFirstSource},
};

class WorkerScenario {
 public:
  explicit WorkerScenario(const Bench& bench)
      : bench_(bench), receiver_(bench.tested_cpu), shreds_(bench.options.small ? 2048 : 8192) {}
  void run();
  void count_allocations(const char* library);

 private:
  std::unique_ptr<OurRelay> open(uint32_t failed_checks_per_second, std::vector<Endpoint> to,
                                 bool deshred) const;
  FedPacket authentic(const Mix& mix, size_t shred, uint32_t source) const;
  FedPacket forged(const Mix& mix, size_t shred);
  void build(const Mix& mix, size_t shreds);
  void run_mix(const Mix& mix, uint32_t round);
  void print_baseline(const Mix& mix, uint32_t round, const FeedResult& result) const;
  void print_relay(const Mix& mix, uint32_t round, OurRelay& relay);

  const Bench& bench_;
  FedReceiver receiver_;
  const size_t shreds_;
  ShredStream stream_;
  PacketList packets_;
  std::vector<uint8_t> forged_;
  std::vector<FedPacket> list_;
  std::unique_ptr<OurRelay> patient_, strict_;
};

std::unique_ptr<OurRelay> WorkerScenario::open(uint32_t failed_checks_per_second,
                                               std::vector<Endpoint> to, bool deshred) const {
  return OurRelay::open({.destinations = std::move(to),
                         .cpu = bench_.tested_cpu,
                         .leader = stream_.leader(),
                         .wait = WaitMode::busy,
                         .sources = kSources,
                         .failed_checks_per_second = failed_checks_per_second,
                         .deshred = deshred});
}

FedPacket WorkerScenario::authentic(const Mix& mix, size_t shred, uint32_t source) const {
  return {packets_.packet(shred), static_cast<uint32_t>(packets_.packet_bytes(shred)),
          kFirstSource + mix.sender_offset + source};
}

// A copy with another signature or another body, sent before the authentic one.
FedPacket WorkerScenario::forged(const Mix& mix, size_t shred) {
  uint8_t* copy = forged_.data() + shred * kCodeShredBytes;
  std::memcpy(copy, packets_.packet(shred), packets_.packet_bytes(shred));
  const uint64_t salt = (shred + 1) * 0x9e3779b97f4a7c15u;
  std::memcpy(copy + (mix.forgery == Forgery::signature ? 0 : 200), &salt, sizeof salt);
  return {copy, static_cast<uint32_t>(packets_.packet_bytes(shred)), kFirstSource + 2};
}

void WorkerScenario::build(const Mix& mix, size_t shreds) {
  stream_.make(shreds, packets_);
  list_.clear();
  forged_.assign(mix.forgery == Forgery::none ? 0 : shreds * kCodeShredBytes, 0);
  for (size_t i = 0; i < shreds + mix.copy_distance * mix.copies; i++) {
    if (i < shreds) {
      const FedPacket packet = mix.forgery == Forgery::none ? FedPacket{} : forged(mix, i);
      for (uint32_t repeat = 0; packet.bytes && repeat < mix.copies; repeat++)
        list_.push_back(packet);
      list_.push_back(authentic(mix, i, 0));
    }
    for (uint32_t copy = 1; copy < mix.copies; copy++) {
      const size_t behind = copy * mix.copy_distance;
      if (i >= behind && i - behind < shreds) list_.push_back(authentic(mix, i - behind, 1));
    }
  }
}

void WorkerScenario::print_baseline(const Mix& mix, uint32_t round,
                                    const FeedResult& result) const {
  if (!result.finished || round == 0) return;
  ReportLine line("worker");
  line.text("driver", "receive").text("mix", mix.name).count("round", round);
  line.count("packets", list_.size()).count("cpu_ns", result.cpu_ns).print();
}

// Plays the list to the relay and prints the cost and the verdicts.
void WorkerScenario::print_relay(const Mix& mix, uint32_t round, OurRelay& relay) {
  adopt_fed_thread(relay.thread());
  const uint64_t first = relay.verdict_count(Verdict::first);
  const uint64_t duplicate = relay.verdict_count(Verdict::duplicate);
  const FeedResult result = play(list_, kBatch);
  if (!result.finished || round == 0) return;
  const uint64_t new_ones = relay.verdict_count(Verdict::first) - first;
  const uint64_t copies = relay.verdict_count(Verdict::duplicate) - duplicate;
  ReportLine line("worker");
  line.text("driver", "shredway").text("mix", mix.name).count("round", round);
  line.count("packets", list_.size()).count("cpu_ns", result.cpu_ns);
  line.count("first", new_ones).count("duplicate", copies);
  line.count("refused", list_.size() - new_ones - copies).print();
}

void WorkerScenario::run_mix(const Mix& mix, uint32_t round) {
  const bool forged_fully_checked = mix.forgery == Forgery::signature && !mix.budget_used_up;
  build(mix, forged_fully_checked ? shreds_ / 8 : shreds_);  // 50 us each
  OurRelay& relay = mix.budget_used_up ? *strict_ : *patient_;
  if (mix.all_known) {
    adopt_fed_thread(relay.thread());
    (void)play(list_, kBatch);
  }
  adopt_fed_thread(receiver_.thread());
  print_baseline(mix, round, play(list_, kBatch));
  print_relay(mix, round, relay);
}

void WorkerScenario::run() {
  patient_ = open(1'000'000'000, {}, false);
  strict_ = open(1, {}, false);
  if (!patient_ || !strict_) return;
  for (uint32_t round = 0; round <= bench_.options.rounds; round++)
    for (const Mix& mix : kMixes) run_mix(mix, round);
  patient_.reset();
  strict_.reset();
}

// The complete path, including send and hand-over, with every kind of packet in the list.
void WorkerScenario::count_allocations(const char* library) {
  std::vector<Endpoint> destinations;
  for (uint32_t i = 0; i < 10; i++) destinations.push_back(null_destination(bench_.network, i));
  const auto relay = open(1'000'000'000, destinations, true);
  if (!relay) return;
  const Mix everything{.name = "", .copies = 2, .forgery = Forgery::signature};
  uint64_t packets = 0, allocations = 0;
  for (int i = 0; i < 4; i++) {
    build(everything, 512);
    adopt_fed_thread(relay->thread());
    const FeedResult result = play(list_, 16);
    if (i == 0 || !result.finished) continue;  // libraries initialise themselves at their first use
    packets += list_.size();
    allocations += result.allocations;
  }
  ReportLine("allocations")
      .text("library", library)
      .truth("counted", counts_allocations())
      .count("packets", packets)
      .count("first", relay->verdict_count(Verdict::first))
      .count("duplicate", relay->verdict_count(Verdict::duplicate))
      .count("signature_invalid", relay->verdict_count(Verdict::signature_invalid))
      .count("allocations", allocations)
      .print();
}

}  // namespace

void run_worker(const Bench& bench) {
  pin(0, bench.helper_cpu);
  for (const auto& [library, name] : {std::pair{Ed25519Library::libsodium, "libsodium"},
                                      std::pair{Ed25519Library::openssl, "openssl"}})
    if (ed25519_use(library)) WorkerScenario(bench).count_allocations(name);
  if (!ed25519_use(Ed25519Library::libsodium)) (void)ed25519_use(Ed25519Library::openssl);
  WorkerScenario(bench).run();
}

}  // namespace shredway::bench
