// Peers: whole relays next to other programs that fan out UDP, over a veth pair between two network
// namespaces.
//
// Each contestant runs alone on one CPU; generator, sink and the receivers' kernel work are on the
// other one. Shredway is fed over loopback by three sources with the same shreds, as are programs
// that remove duplicates; programs that forward everything get one copy. The generator keeps its
// schedule, and every latency counts from the scheduled time of the shred, so that a contestant
// that is slow now cannot hide later shreds. Interleaved, round by round.
//
// A round is disturbed if the generator itself was late or the sink lost datagrams: other programs
// took their CPU. Such a round says nothing about the contestant and is left out of the totals.
//
// Words of a peer's command: {port} is its listening port; {list:C} is replaced by one word
// "IP<C>PORT" for each destination; {joined:C} inside a word by all "IP:PORT", joined by C.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "drivers.h"
#include "report_line.h"
#include "sink.h"
#include "timing.h"
#include "transmit_network.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kSources = 3;
constexpr uint32_t kDestinationsMax = 200;
constexpr size_t kShredsPerRow = 100'000;  // for a p99.9
constexpr size_t kShredsPerSmallRow = 1'024;
constexpr uint32_t kStepsPerOctave = 8;  // of the histograms
constexpr uint64_t kLateMax_ns = 1'000'000;
constexpr double kLateShareMax = 0.01;

struct Contestant {
  std::string name;
  std::unique_ptr<Driver> driver;
  uint32_t copies = kSources;
  std::vector<uint64_t> first_ns{}, last_ns{};  // of all rounds
  uint64_t lost = 0, repeated = 0;
  uint32_t rounds = 0;  // that were not disturbed
};

// Result of the generator.
struct Sent {
  std::vector<uint64_t> scheduled_ns;  // of each burst, CLOCK_REALTIME
  size_t late = 0;                     // bursts
};

struct Case {
  uint32_t destinations;
  uint32_t burst;
  uint64_t shreds_per_second() const {
    if (destinations <= 10) return 5'000;
    return destinations <= 50 ? 2'500 : 750;
  }
  uint64_t interval_ns() const { return uint64_t{burst} * 1'000'000'000 / shreds_per_second(); }
};

std::string text_of(const Endpoint& endpoint, char separator) {
  std::string text = to_string(endpoint);
  text[text.rfind(':')] = separator;
  return text;
}

// Replaces the first `place` of the word. Returns false if it has none.
bool replace(std::string& word, const std::string& place, const std::string& by) {
  const size_t at = word.find(place);
  if (at == std::string::npos) return false;
  word.replace(at, place.size(), by);
  return true;
}

std::vector<std::string> command_for(const std::vector<std::string>& words, uint16_t port,
                                     const std::vector<Endpoint>& destinations) {
  std::vector<std::string> command;
  for (std::string word : words) {
    if (word.starts_with("{list:") && word.size() == 8) {
      for (const Endpoint& each : destinations) command.push_back(text_of(each, word[6]));
      continue;
    }
    (void)replace(word, "{port}", std::to_string(port));
    const size_t joined = word.find("{joined:");
    if (joined != std::string::npos && joined + 10 <= word.size()) {
      const char separator = word[joined + 8];
      std::string all;
      for (const Endpoint& each : destinations)
        all += (all.empty() ? "" : std::string(1, separator)) + to_string(each);
      (void)replace(word, word.substr(joined, 10), all);
    }
    command.push_back(word);
  }
  return command;
}

// "bucket:count …": bucket b has the latencies from 2^(b / 8) ns on.
std::string histogram(const std::vector<uint64_t>& values_ns) {
  std::map<uint32_t, uint64_t> counts;
  for (const uint64_t value : values_ns)
    counts[static_cast<uint32_t>(std::floor(
        std::log2(static_cast<double>(std::max<uint64_t>(value, 1))) * kStepsPerOctave))]++;
  std::string text;
  for (const auto& [bucket, count] : counts)
    text += (text.empty() ? "" : " ") + std::to_string(bucket) + ":" + std::to_string(count);
  return text;
}

class PeersScenario {
 public:
  PeersScenario(const Bench& bench, const TransmitNetwork& network, int sink_socket)
      : bench_(bench),
        network_(network),
        sink_socket_(sink_socket),
        sink_port_(local_port(sink_socket)),
        sink_(stream_, sink_socket, bench.helper_cpu) {
    for (uint32_t i = 0; i < kSources; i++) generators_[i].bind_to(INADDR_LOOPBACK + i);
  }

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
  void add_ours(const char* name, const TransmitPath& path, TransmitMode mode);
  void run_case(const Case& which);
  void run_slot(Contestant& contestant, const Case& which, uint32_t round);
  Sent send(const Contestant& contestant, const Case& which, size_t bursts);
  void print_total(const Case& which, Contestant& contestant);

  const Bench& bench_;
  const TransmitNetwork& network_;
  ShredStream stream_;
  PacketList packets_;
  std::array<Generator, kSources> generators_;
  const int sink_socket_;  // belongs to the sink
  const uint16_t sink_port_;
  Sink sink_;
  std::vector<Contestant> contestants_;
};

void skipped(const std::string& what, const std::string& why) {
  ReportLine("peers_skipped").text("what", what).text("why", why).print();
}

void PeersScenario::add_ours(const char* name, const TransmitPath& path, TransmitMode mode) {
  const auto count = static_cast<uint32_t>(path.destinations.size());
  auto relay = OurRelay::open({.destinations = path.destinations,
                               .cpu = bench_.tested_cpu,
                               .leader = stream_.leader(),
                               .sources = kSources,
                               .other_cpus = {bench_.tested_cpu},
                               .transmit = mode,
                               .whole_cost = true});
  if (!relay) return skipped(name, "cannot open the relay");
  if (relay->relay().transmit_in_use() == TransmitMode::clone && count >= kCloneTargetsLeast &&
      !relay->wait_until_cloned(count))
    return skipped(name, "not all destinations go by clone");
  ReportLine("peers_mode")
      .text("contestant", name)
      .count("destinations", count)
      .text("mode", transmit_mode_name(relay->relay().transmit_in_use()))
      .text("refusal", relay->relay().transmit_refusal())
      .count("cloned", relay->worker_count(WorkerCounter::cloned_destinations))
      .print();
  contestants_.push_back({name, std::move(relay)});
}

void PeersScenario::enter(uint32_t count) {
  contestants_.clear();
  const TransmitPath path = network_.sink_path(count, sink_port_);
  add_ours("shredway", path, TransmitMode::automatic);
  add_ours("shredway_socket", path, TransmitMode::socket);
  contestants_.push_back(
      {"forwarder", std::make_unique<ForwarderDriver>(path.destinations, bench_.tested_cpu), 1});
  for (const Options::Peer& peer : bench_.options.peers) {
    if (count > peer.destinations_max) continue;
    const uint16_t port = free_port();
    auto driver = ChildDriver::start(command_for(peer.command, port, path.destinations), port,
                                     bench_.tested_cpu);
    if (driver) contestants_.push_back({peer.name, std::move(driver), peer.copies});
    else skipped(peer.name, "it did not listen");
  }
}

// A late generator continues from the present instead of sending what it missed at once.
Sent PeersScenario::send(const Contestant& contestant, const Case& which, size_t bursts) {
  const RealTimePriority first;  // the sink runs on the same CPU
  const uint64_t to_realtime_ns = realtime_ns() - monotonic_ns();
  Sent sent;
  uint64_t at_ns = monotonic_ns() + kLateMax_ns;
  for (size_t i = 0; i < bursts; i++, at_ns += which.interval_ns()) {
    sleep_until_ns(at_ns);
    const uint64_t now_ns = monotonic_ns();
    if (now_ns > at_ns + kLateMax_ns) {
      sent.late++;
      at_ns = now_ns;
    }
    sent.scheduled_ns.push_back(at_ns + to_realtime_ns);
    for (uint32_t copy = 0; copy < contestant.copies; copy++)
      (void)generators_[copy].send_burst(packets_, i * which.burst, (i + 1) * which.burst);
  }
  return sent;
}

void PeersScenario::run_slot(Contestant& contestant, const Case& which, uint32_t round) {
  const size_t per_row = bench_.options.small ? kShredsPerSmallRow : kShredsPerRow;
  const size_t bursts = std::max<size_t>(1, per_row / bench_.options.rounds / which.burst);
  const size_t shreds = bursts * which.burst;
  stream_.make(shreds, packets_);
  for (Generator& generator : generators_) generator.connect_to(contestant.driver->port());
  sink_.expect(stream_.number_of(packets_.packet(0)), shreds);
  const uint64_t cpu_before_ns = contestant.driver->cpu_ns();
  const uint64_t drops_before = receive_drops(sink_socket_);
  const Sent sent = send(contestant, which, bursts);
  const std::vector<SinkArrival> arrivals = sink_.wait_for_arrivals(which.destinations);
  const uint64_t cpu_ns = contestant.driver->cpu_ns() - cpu_before_ns;
  if (round == 0) return;  // warms up
  const uint64_t sink_drops = receive_drops(sink_socket_) - drops_before;
  const bool disturbed = sink_drops > 0 || static_cast<double>(sent.late) >
                                               kLateShareMax * static_cast<double>(bursts);
  std::vector<uint64_t> first, last;
  uint64_t delivered = 0, lost = 0, repeated = 0;
  for (size_t i = 0; i < shreds; i++) {
    const SinkArrival& arrival = arrivals[i];
    delivered += arrival.copies;
    lost += which.destinations - std::min(arrival.copies, which.destinations);
    repeated += std::max(arrival.copies, which.destinations) - which.destinations;
    if (arrival.copies < which.destinations) continue;
    const uint64_t at_ns = sent.scheduled_ns[i / which.burst];
    first.push_back(arrival.first_ns - std::min(arrival.first_ns, at_ns));
    last.push_back(arrival.last_ns - std::min(arrival.last_ns, at_ns));
  }
  if (!disturbed) {
    contestant.rounds++;
    contestant.lost += lost;
    contestant.repeated += repeated;
    contestant.first_ns.insert(contestant.first_ns.end(), first.begin(), first.end());
    contestant.last_ns.insert(contestant.last_ns.end(), last.begin(), last.end());
  }
  std::sort(first.begin(), first.end());
  std::sort(last.begin(), last.end());
  ReportLine line("peers");
  line.text("contestant", contestant.name.c_str()).count("destinations", which.destinations);
  line.count("burst", which.burst).count("round", round).count("samples", first.size());
  line.count("lost", lost).count("repeated", repeated).count("delivered", delivered);
  line.count("cpu_ns", cpu_ns).truth("disturbed", disturbed).count("late", sent.late);
  line.count("sink_drops", sink_drops);
  line.count("first_p50_ns", percentile(first, 0.5)).count("last_p50_ns", percentile(last, 0.5));
  line.count("first_p99_ns", percentile(first, 0.99)).count("last_p99_ns", percentile(last, 0.99));
  line.print();
}

void PeersScenario::print_total(const Case& which, Contestant& contestant) {
  std::vector<uint64_t>& first = contestant.first_ns;
  std::vector<uint64_t>& last = contestant.last_ns;
  std::sort(first.begin(), first.end());
  std::sort(last.begin(), last.end());
  ReportLine line("peers_total");
  line.text("contestant", contestant.name.c_str()).count("destinations", which.destinations);
  line.count("burst", which.burst).count("copies", contestant.copies);
  line.count("rate", which.shreds_per_second()).count("samples", first.size());
  line.count("rounds", contestant.rounds).count("rounds_all", bench_.options.rounds);
  line.count("lost", contestant.lost).count("repeated", contestant.repeated);
  line.count("first_p50_ns", percentile(first, 0.5)).count("last_p50_ns", percentile(last, 0.5));
  line.count("first_p99_ns", percentile(first, 0.99)).count("last_p99_ns", percentile(last, 0.99));
  line.count("first_p999_ns", percentile(first, 0.999));
  line.count("last_p999_ns", percentile(last, 0.999));
  line.text("first_histogram", histogram(first)).text("last_histogram", histogram(last)).print();
  contestant.first_ns = {};
  contestant.last_ns = {};
  contestant.lost = contestant.repeated = 0;
  contestant.rounds = 0;
}

void PeersScenario::run_case(const Case& which) {
  for (uint32_t round = 0; round <= bench_.options.rounds; round++) {
    for (size_t i = 0; i < contestants_.size(); i++)
      run_slot(contestants_[(i + round) % contestants_.size()], which, round);
  }
  for (Contestant& contestant : contestants_) print_total(which, contestant);
}

}  // namespace

void run_peers(const Bench& bench) {
  std::string error;
  const auto network = TransmitNetwork::make(bench.network, kDestinationsMax, error);
  if (!network) return skipped("everything", error);
  const int sink_socket = network->open_sink_socket();
  if (sink_socket < 0) return skipped("everything", "no socket of the receiver");
  const bool apart = network->receive_on(bench.helper_cpu);
  ReportLine("peers_receiver").truth("other_cpu", apart).print();
  PeersScenario(bench, *network, sink_socket).run();
}

}  // namespace shredway::bench
