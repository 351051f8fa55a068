// Divided sends: a worker alone, compared with a worker and its sender threads, for single shreds.
//
// First the sends alone, to the null device: the time until the kernel has the datagram of the last
// destination, by number of destinations. It shows where dividing begins to pay. The threads sleep
// between two sends, as with `wait: block`, or poll, as with `wait: spin`. Then whole relays on
// veth, from the generator's send call to the kernel's receive time at the last destination. There
// each CPU also does the receiver's work for what it sends.
#include <algorithm>
#include <memory>
#include <numeric>

#include "clocks.h"
#include "drivers.h"
#include "relay/sender_threads.h"
#include "report_line.h"
#include "send_loops.h"
#include "sink.h"
#include "timing.h"
#include "transmit_scenario.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kDestinations = 200;
constexpr uint64_t kPause_ns = 400'000;
constexpr uint32_t kLongPoll_us = 2'000;  // longer than the pause

// One per measured combination. The threads exist during the whole measurement.
class DividedSend final : private SendObserver {
 public:
  DividedSend(const char* name, uint32_t threads, uint32_t poll_us)
      : name_(name), socket_(open_send_socket({any_endpoint(true), 16u << 20}).socket) {
    const SendSockets sockets{socket_.fd(), -1, true};
    const SocketCalls& calls = system_socket_calls();
    SendObserver& observer = *this;
    own_ = std::make_unique<TargetBatch>(sockets, observer, calls);
    std::string error;
    if (threads > 0)
      threads_ = SenderThreads::start({threads, 0, poll_us}, sockets, observer, calls, error);
  }
  void send(std::span<const TransmitTarget> targets, const TransmitGroups& groups) {
    if (threads_) return threads_->send_to_all(targets, groups, rotation_++, *own_);
    for (const TransmitTarget& target : targets) own_->add(target, groups);
    own_->flush();
  }
  const char* name() const { return name_; }
  uint64_t failed_count() const { return failed_count_; }
  uint64_t late() const { return threads_ ? threads_->late() : 0; }
  uint64_t cpu_ns() const { return threads_ ? threads_->cpu_ns() : 0; }

 private:
  void sent(uint32_t, uint32_t) override {}
  void failed(uint32_t, uint32_t datagrams, SendFailure) override { failed_count_ += datagrams; }

  const char* name_;
  UdpSocket socket_;
  std::unique_ptr<TargetBatch> own_;
  std::unique_ptr<SenderThreads> threads_;
  uint32_t rotation_ = 0;
  std::atomic<uint64_t> failed_count_{0};
};

std::vector<TransmitTarget> targets_of(const TransmitPath& path) {
  std::vector<TransmitTarget> targets;
  for (const sockaddr_in& address : socket_addresses(path.destinations)) {
    TransmitTarget& target = targets.emplace_back();
    target.ipv4 = address;
    target.tag = static_cast<uint32_t>(targets.size() - 1);
    target.kind = 0;
  }
  return targets;
}

// `count` CPUs for the sender threads, none of them the worker's if others exist.
std::vector<int> other_cpus(const Bench& bench) {
  std::vector<int> cpus;
  for (const int cpu : bench.cpus)
    if (cpu != bench.tested_cpu) cpus.push_back(cpu);
  return cpus.empty() ? bench.cpus : cpus;
}

void run_slot(const Bench& bench, DividedSend& one, const std::vector<TransmitTarget>& targets,
              uint32_t round) {
  std::array<uint8_t, kDataShredBytes> packet{};
  iovec payload{packet.data(), packet.size()};
  TransmitGroups groups{};
  groups[0][0] = {&payload, 1, kDataShredBytes};
  const size_t sends = bench.options.small ? 20 : 200;
  std::vector<uint64_t> times_ns(sends);
  const uint64_t late = one.late(), failed = one.failed_count();
  uint64_t cpu_ns = own_cpu_ns() + one.cpu_ns();
  for (uint64_t& time_ns : times_ns) {
    const uint64_t before_ns = monotonic_ns();
    one.send(targets, groups);
    time_ns = monotonic_ns() - before_ns;
    sleep_ns(kPause_ns);
  }
  cpu_ns = own_cpu_ns() + one.cpu_ns() - cpu_ns;
  if (round == 0) return;
  std::sort(times_ns.begin(), times_ns.end());
  ReportLine("divided_send")
      .text("way", one.name())
      .count("destinations", targets.size())
      .count("round", round)
      .count("sends", sends)
      .count("failed", one.failed_count() - failed)
      .count("late", one.late() - late)
      .count("p50_ns", percentile(times_ns, 0.5))
      .count("p99_ns", percentile(times_ns, 0.99))
      .count("cpu_ns", cpu_ns / sends)
      .print();
}

void run_sends(const TransmitBench& transmit) {
  const Bench& bench = transmit.bench;
  let_run_on(0, other_cpus(bench));  // the threads inherit it
  std::vector<std::unique_ptr<DividedSend>> all;
  const auto add = [&](const char* name, uint32_t threads, uint32_t poll_us) {
    all.push_back(std::make_unique<DividedSend>(name, threads, poll_us));
  };
  add("worker", 0, 0);
  add("1_sleeping", 1, 0);
  add("1_polling", 1, kLongPoll_us);
  if (bench.cpus.size() > 2) add("2_sleeping", 2, 0);
  pin(0, bench.tested_cpu);
  const std::vector<uint32_t> counts =
      bench.options.small ? std::vector<uint32_t>{kDestinations}
                          : std::vector<uint32_t>{16, 32, 48, 64, 100, kDestinations};
  for (const uint32_t count : counts) {
    const std::vector<TransmitTarget> targets = targets_of(transmit.network.null_path(count));
    for (uint32_t round = 0; round <= bench.options.rounds; round++)
      for (size_t i = 0; i < all.size(); i++)
        run_slot(bench, *all[(i + round) % all.size()], targets, round);
  }
}

// ---- whole relays ---------------------------------------------------------------------------

struct DividingRelay {
  const char* name;
  std::unique_ptr<OurRelay> relay;
};

class DividedRelays {
 public:
  DividedRelays(const TransmitBench& transmit, int sink_socket)
      : transmit_(transmit),
        sink_port_(local_port(sink_socket)),
        sink_(stream_, sink_socket, transmit.bench.helper_cpu) {}
  void run(uint32_t destinations);

 private:
  void add(const char* name, uint32_t threads, const std::vector<Endpoint>& destinations);
  void run_slot(DividingRelay& one, uint32_t destinations, uint32_t round);

  const TransmitBench& transmit_;
  ShredStream stream_;
  PacketList packets_;
  Generator generator_;
  const uint16_t sink_port_;
  Sink sink_;
  std::vector<DividingRelay> relays_;
};

void DividedRelays::add(const char* name, uint32_t threads,
                        const std::vector<Endpoint>& destinations) {
  const Bench& bench = transmit_.bench;
  relays_.push_back({name, OurRelay::open({.destinations = destinations,
                                           .cpu = bench.tested_cpu,
                                           .leader = stream_.leader(),
                                           .other_cpus = other_cpus(bench),
                                           .sender_threads = threads})});
  if (relays_.back().relay) return;
  relays_.pop_back();
  print_transmit_skipped(name, "cannot open the relay");
}

void DividedRelays::run_slot(DividingRelay& one, uint32_t destinations, uint32_t round) {
  const size_t shreds = transmit_.bench.options.small ? 32 : 128;
  const uint64_t interval_ns = 1'000'000 + uint64_t{destinations} * 10'000;
  stream_.make(shreds, packets_);
  packets_.offsets.resize(shreds + 1);
  generator_.connect_to(one.relay->port());
  const uint64_t late = one.relay->worker_count(WorkerCounter::late_senders);
  std::vector<uint64_t> sent_ns(shreds);
  sink_.expect(stream_.number_of(packets_.packet(0)), shreds);
  uint64_t next_ns = monotonic_ns();
  for (size_t i = 0; i < shreds; i++) {
    sent_ns[i] = realtime_ns();
    (void)generator_.send_burst(packets_, i, i + 1);
    next_ns = std::max(next_ns, monotonic_ns()) + interval_ns;
    sleep_until_ns(next_ns);
  }
  const std::vector<SinkArrival> arrivals = sink_.wait_for_arrivals(destinations);
  if (round == 0) return;
  std::vector<uint64_t> last;
  for (size_t i = 0; i < arrivals.size(); i++)
    if (arrivals[i].copies == destinations) last.push_back(arrivals[i].last_ns - sent_ns[i]);
  std::sort(last.begin(), last.end());
  ReportLine("divided_relay")
      .text("way", one.name)
      .count("destinations", destinations)
      .count("round", round)
      .count("samples", last.size())
      .count("lost", arrivals.size() - last.size())
      .count("late", one.relay->worker_count(WorkerCounter::late_senders) - late)
      .count("p50_ns", percentile(last, 0.5))
      .count("p99_ns", percentile(last, 0.99))
      .print();
}

void DividedRelays::run(uint32_t destinations) {
  pin(0, transmit_.bench.helper_cpu);
  const TransmitPath path = transmit_.network.sink_path(destinations, sink_port_);
  add("worker", 0, path.destinations);
  add("1_sleeping", 1, path.destinations);
  if (transmit_.bench.cpus.size() > 2) add("2_sleeping", 2, path.destinations);
  for (uint32_t round = 0; round <= transmit_.bench.options.rounds; round++)
    for (size_t i = 0; i < relays_.size(); i++)
      run_slot(relays_[(i + round) % relays_.size()], destinations, round);
  relays_.clear();
}

}  // namespace

void run_divided(const Bench& bench) {
  std::string error;
  const auto network = TransmitNetwork::make(bench.network, kDestinations, error);
  if (bench.cpus.size() < 2) error = "sender threads need a second CPU";
  if (!error.empty()) return print_transmit_skipped("divided sends", error);
  const TransmitBench transmit{bench, *network, nullptr};
  run_sends(transmit);
  const int sink_socket = network->open_sink_socket();
  if (sink_socket < 0) return print_transmit_skipped("divided relays", "no socket of the receiver");
  (void)network->receive_on(-1);
  DividedRelays(transmit, sink_socket).run(kDestinations);
}

}  // namespace shredway::bench
