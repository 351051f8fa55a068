// Latency of each transmit path: from before the send call to the last destination of a burst, on
// veth.
//
// Loops alone, then whole relays that are fed over loopback. The receiver has its own namespace,
// and its work is done on the other CPU if the system allows that. Kernel receive times: when the
// frame left the device, to which a network adds its own time. Each shred counts separately, so the
// median of a burst that is sent shred by shred is that of its middle.
#include <algorithm>
#include <memory>

#include "clocks.h"
#include "drivers.h"
#include "report_line.h"
#include "sink.h"
#include "timing.h"
#include "transmit_loops.h"
#include "transmit_scenario.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kBurst = 32;

struct Contestant {
  const char* name;
  std::unique_ptr<SendLoop> loop;  // either this
  std::unique_ptr<Driver> driver;  // or this
};

class TransmitLatency {
 public:
  explicit TransmitLatency(const TransmitBench& transmit, int sink_socket)
      : transmit_(transmit),
        sink_port_(local_port(sink_socket)),
        sink_(stream_, sink_socket, transmit.bench.helper_cpu) {}
  void run(uint32_t destinations);

 private:
  void enter(const TransmitPath& path);
  void run_slot(Contestant& contestant, uint32_t destinations, uint32_t round);
  void print(const Contestant& contestant, uint32_t destinations, uint32_t round,
             const std::vector<uint64_t>& sent_ns);

  const TransmitBench& transmit_;
  ShredStream stream_;
  PacketList packets_;
  Generator generator_;
  const uint16_t sink_port_;
  Sink sink_;
  std::vector<Contestant> contestants_;
};

void TransmitLatency::enter(const TransmitPath& path) {
  const Bench& bench = transmit_.bench;
  contestants_.clear();
  const auto add_loop = [&](const char* name, std::unique_ptr<SendLoop> loop) {
    if (loop) contestants_.push_back({name, std::move(loop), nullptr});
  };
  add_loop("bare_sendmmsg", std::make_unique<BareLoop>(path.destinations, false));
  add_loop("socket", std::make_unique<BatchLoop>(path.destinations, true));
  std::string error;
  if (transmit_.clone) add_loop("clone", open_clone_loop(*transmit_.clone, path, error));
  constexpr uint32_t kRingFrames = 16384;  // more than two bursts to 200 destinations
  add_loop("packet_ring", open_ring_loop(path, kRingFrames, error));
  add_loop("xdp", open_xdp_loop(path, error));
  contestants_.push_back({"forwarder", nullptr,
                          std::make_unique<ForwarderDriver>(path.destinations, bench.tested_cpu)});
  for (const TransmitMode way : {TransmitMode::socket, TransmitMode::clone}) {
    const bool clone = way == TransmitMode::clone;
    if (clone && !transmit_.clone) continue;
    const char* name = clone ? "relay_clone" : "relay_socket";
    auto relay = OurRelay::open({.destinations = path.destinations,
                                 .cpu = bench.tested_cpu,
                                 .leader = stream_.leader(),
                                 .other_cpus = {bench.helper_cpu},
                                 .transmit = way});
    const auto count = static_cast<uint32_t>(path.destinations.size());
    if (!relay) print_transmit_skipped(name, "cannot open the relay");
    else if (clone && !relay->wait_until_cloned(count))
      print_transmit_skipped(name, "not all destinations go by clone");
    else contestants_.push_back({name, nullptr, std::move(relay)});
  }
}

void TransmitLatency::print(const Contestant& contestant, uint32_t destinations, uint32_t round,
                            const std::vector<uint64_t>& sent_ns) {
  const std::vector<SinkArrival> arrivals = sink_.wait_for_arrivals(destinations);
  std::vector<uint64_t> first, last;
  for (size_t i = 0; i < arrivals.size(); i++) {
    if (arrivals[i].copies != destinations) continue;  // lost, or repeated
    first.push_back(arrivals[i].first_ns - sent_ns[i / kBurst]);
    last.push_back(arrivals[i].last_ns - sent_ns[i / kBurst]);
  }
  if (round == 0) return;
  std::sort(first.begin(), first.end());
  std::sort(last.begin(), last.end());
  ReportLine("transmit_latency")
      .text("way", contestant.name)
      .count("destinations", destinations)
      .count("burst", kBurst)
      .count("round", round)
      .count("samples", last.size())
      .count("lost", arrivals.size() - last.size())
      .count("first_p50_ns", percentile(first, 0.5))
      .count("last_p50_ns", percentile(last, 0.5))
      .count("last_p99_ns", percentile(last, 0.99))
      .print();
}

void TransmitLatency::run_slot(Contestant& contestant, uint32_t destinations, uint32_t round) {
  // About half of the slowest path's maximum rate.
  const uint64_t interval_ns = kBurst * (4'000 + uint64_t{destinations} * 5'000);
  const size_t bursts = transmit_.bench.options.small ? 3 : 10;
  stream_.make(bursts * kBurst, packets_);
  packets_.offsets.resize(bursts * kBurst + 1);
  pin(0, contestant.loop ? transmit_.bench.tested_cpu : transmit_.bench.helper_cpu);
  if (contestant.driver) generator_.connect_to(contestant.driver->port());
  std::vector<uint64_t> sent_ns(bursts);
  sink_.expect(stream_.number_of(packets_.packet(0)), bursts * kBurst);
  uint64_t next_ns = monotonic_ns();
  for (size_t i = 0; i < bursts; i++) {
    sent_ns[i] = realtime_ns();
    if (contestant.loop) contestant.loop->send(packets_, i * kBurst, (i + 1) * kBurst);
    else (void)generator_.send_burst(packets_, i * kBurst, (i + 1) * kBurst);
    next_ns = std::max(next_ns, monotonic_ns()) + interval_ns;
    sleep_until_ns(next_ns);
  }
  print(contestant, destinations, round, sent_ns);
}

void TransmitLatency::run(uint32_t destinations) {
  const TransmitPath path = transmit_.network.sink_path(destinations, sink_port_);
  enter(path);
  for (uint32_t round = 0; round <= transmit_.bench.options.rounds; round++) {
    for (size_t i = 0; i < contestants_.size(); i++)
      run_slot(contestants_[(i + round) % contestants_.size()], destinations, round);
  }
  contestants_.clear();
}

}  // namespace

void run_transmit_latency(const TransmitBench& transmit) {
  const int sink_socket = transmit.network.open_sink_socket();
  if (sink_socket < 0) return print_transmit_skipped("latency", "no socket of the receiver");
  const bool apart = transmit.network.receive_on(transmit.bench.helper_cpu);
  ReportLine("transmit_receiver").truth("other_cpu", apart).print();
  TransmitLatency latency(transmit, sink_socket);
  const std::vector<uint32_t> counts =
      transmit.bench.options.small ? std::vector<uint32_t>{50} : std::vector<uint32_t>{50, 200};
  for (const uint32_t count : counts) latency.run(count);
  (void)transmit.network.receive_on(-1);
}

}  // namespace shredway::bench
