// Attacks: the effect of hostile packets on genuine shreds.
//
// Genuine shreds, 60 FEC sets a second from one source, go through the complete relay to one
// destination. Meanwhile an attacker sends packets, from its own address or in the name of a
// source. Each attack is a round of its own with a new relay; "none" is the baseline of the same
// round. A shred is silenced if the destination does not get it, repeated if it gets it twice;
// anything else that the destination gets is forwarded.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "drivers.h"
#include "report_line.h"
#include "sink.h"
#include "timing.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kSource = 0x7f000001, kOtherSource = 0x7f000002, kStranger = 0x7f000009;
constexpr uint64_t kGenuineInterval_ns = 1'000'000'000 / (60 * 64);

enum class Hostile : uint8_t {
  none,
  noise,             // random bytes of any length
  forged_shreds,     // each with a signature and a root of its own
  forged_sets,       // complete FEC sets, signed by another key
  altered_bytes,     // real shreds with an altered byte
  other_signatures,  // real shreds with an arbitrary signature, before the real ones
  replays,           // real shreds
};

struct Attack {
  const char* name;
  Hostile packets;
  uint32_t sender;
  uint32_t rate;  // packets per second
};

constexpr Attack kAttacks[] = {
    {"none", Hostile::none, 0, 0},
    {"noise of any length from strangers", Hostile::noise, kStranger, 200'000},
    {"forged shreds from strangers", Hostile::forged_shreds, kStranger, 100'000},
    {"forged shreds from another source", Hostile::forged_shreds, kOtherSource, 15'000},
    {"forged FEC sets from another source", Hostile::forged_sets, kOtherSource, 15'000},
    {"forged shreds with the only source's address", Hostile::forged_shreds, kSource, 40'000},
    {"forged FEC sets with the only source's address", Hostile::forged_sets, kSource, 40'000},
    {"altered copies of real shreds", Hostile::altered_bytes, kSource, 40'000},
    {"real shreds with other signatures", Hostile::other_signatures, kSource, 40'000},
    {"replays of real shreds", Hostile::replays, kSource, 40'000},
};

// Sends packets of one attack at its rate until it is stopped.
class Attacker {
 public:
  Attacker(const Attack& attack, const PacketList& genuine, uint16_t port, int cpu)
      : attack_(attack), genuine_(genuine) {
    if (attack.packets == Hostile::none) return;
    if (attack.packets == Hostile::forged_sets) {
      const uint64_t duration_ns = genuine.size() * kGenuineInterval_ns;
      ShredStream(9, 32, ShredContents::entries)
          .make(duration_ns * attack.rate / 1'000'000'000, forged_);
    }
    fd_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bind_to(attack.sender);
    connect_to(port);
    thread_ = std::thread([this, cpu] {
      pin(0, cpu);
      precise_sleep_setup();
      run();
    });
  }
  ~Attacker() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
    if (fd_ >= 0) close(fd_);
  }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  // Number of genuine shreds that have been sent.
  std::atomic<size_t> progress{0};
  uint64_t attempts() const { return attempts_; }

 private:
  void bind_to(uint32_t address) const { use(address, 0, ::bind); }
  void connect_to(uint16_t port) const { use(kSource, port, ::connect); }
  template <typename Call>
  void use(uint32_t address, uint16_t port, Call call) const {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(address);
    to.sin_port = htons(port);
    (void)call(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }

  void run() {
    constexpr uint32_t kAtOnce = 8;
    const uint64_t interval_ns = kAtOnce * 1'000'000'000ull / attack_.rate;
    uint64_t next_ns = monotonic_ns();
    while (!stopping_) {
      for (uint32_t i = 0; i < kAtOnce; i++) {
        const size_t bytes = make_packet();
        if (::send(fd_, packet_, bytes, MSG_DONTWAIT) >= 0) attempts_++;
      }
      next_ns += interval_ns;
      sleep_until_ns(next_ns);
    }
  }

  size_t copy(const PacketList& from, size_t number) {
    std::memcpy(packet_, from.packet(number), from.packet_bytes(number));
    return from.packet_bytes(number);
  }
  void randomise(size_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 8) {
      const uint64_t value = random_();
      std::memcpy(packet_ + at + i, &value, std::min<size_t>(8, bytes - i));
    }
  }
  size_t make_packet() {
    const size_t sent = progress.load(std::memory_order_relaxed);
    switch (attack_.packets) {
      case Hostile::noise: {
        const size_t bytes = random_() % 1400;
        randomise(0, std::min<size_t>(bytes, 128));
        return bytes;
      }
      case Hostile::forged_sets:
        return copy(forged_, next_++ % forged_.size());
      case Hostile::altered_bytes: {
        const size_t bytes = copy(genuine_, sent ? random_() % sent : 0);
        randomise(200 + random_() % 600, 8);
        return bytes;
      }
      case Hostile::other_signatures: {
        // Shreds that the source is about to send.
        const size_t bytes = copy(genuine_, std::min(sent + random_() % 64, genuine_.size() - 1));
        randomise(0, kSignatureBytes);
        return bytes;
      }
      case Hostile::replays:
        return copy(genuine_, sent ? random_() % sent : 0);
      default: {
        const size_t bytes = copy(genuine_, random_() % genuine_.size());
        randomise(0, kSignatureBytes);
        randomise(600, 8);
        return bytes;
      }
    }
  }

  const Attack& attack_;
  const PacketList& genuine_;
  PacketList forged_;
  int fd_ = -1;
  uint8_t packet_[1500] = {};
  size_t next_ = 0;
  std::mt19937_64 random_{7};
  std::atomic<uint64_t> attempts_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

struct Effect {
  uint64_t shreds = 0, silenced = 0, repeated = 0, sets = 0, sets_lost = 0, copies = 0;
  std::vector<uint64_t> latencies_ns{};
};

// A FEC set is lost if fewer than 32 of its shreds arrive.
Effect effect_of(const std::vector<SinkArrival>& arrivals, const std::vector<uint64_t>& sent_ns) {
  Effect effect;
  for (size_t set = 0; set < arrivals.size(); set += kFecSetLeaves) {
    uint32_t arrived = 0;
    for (size_t i = set; i < set + kFecSetLeaves; i++) {
      const SinkArrival& arrival = arrivals[i];
      effect.copies += arrival.copies;
      effect.repeated += arrival.copies > 1;
      if (arrival.copies == 0) continue;
      arrived++;
      // An attacker's copy may arrive before the source has sent its own.
      effect.latencies_ns.push_back(arrival.first_ns - std::min(arrival.first_ns, sent_ns[i]));
    }
    effect.shreds += kFecSetLeaves;
    effect.silenced += kFecSetLeaves - arrived;
    effect.sets++;
    effect.sets_lost += arrived < kFecSetShreds;
  }
  std::sort(effect.latencies_ns.begin(), effect.latencies_ns.end());
  return effect;
}

void run_attack(const Bench& bench, const Attack& attack, uint32_t round) {
  ShredStream stream;
  PacketList genuine;
  stream.make((bench.options.small ? 20 : 120) * kFecSetLeaves, genuine);
  Sink sink(stream, bench.helper_cpu);
  const auto relay = OurRelay::open({.destinations = {loopback_destination(0, sink.port())},
                                     .cpu = bench.tested_cpu,
                                     .leader = stream.leader(),
                                     .sources = 2,
                                     .other_cpus = bench.cpus});
  if (!relay) return;
  Generator generator;
  generator.connect_to(relay->port());
  std::vector<uint64_t> sent_ns(genuine.size());
  sink.expect(stream.number_of(genuine.packet(0)), genuine.size());
  uint64_t attempts = 0;
  {
    Attacker attacker(attack, genuine, relay->port(), bench.helper_cpu);
    uint64_t next_ns = monotonic_ns();
    for (size_t i = 0; i < genuine.size(); i++) {
      sent_ns[i] = realtime_ns();
      (void)generator.send_burst(genuine, i, i + 1);
      attacker.progress.store(i + 1, std::memory_order_relaxed);
      next_ns += kGenuineInterval_ns;
      sleep_until_ns(next_ns);
    }
    attempts = attacker.attempts();
  }
  const Effect effect = effect_of(sink.wait_for_arrivals(1), sent_ns);
  ReportLine line("attack");
  line.text("attack", attack.name).count("round", round).count("rate", attack.rate);
  line.count("attempts", attempts).count("forwarded", relay->sent_to(0) - effect.copies);
  line.count("shreds", effect.shreds).count("silenced", effect.silenced);
  line.count("repeated", effect.repeated).count("sets", effect.sets);
  line.count("sets_lost", effect.sets_lost);
  line.count("checks", relay->worker_count(WorkerCounter::signature_checks));
  line.count("p50_ns", percentile(effect.latencies_ns, 0.5));
  line.count("p99_ns", percentile(effect.latencies_ns, 0.99)).print();
}

}  // namespace

void run_attacks(const Bench& bench) {
  pin(0, bench.helper_cpu);
  for (uint32_t round = 0; round <= bench.options.rounds; round++)
    for (const Attack& attack : kAttacks) run_attack(bench, attack, round);
}

}  // namespace shredway::bench
