#include "drivers.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "clocks.h"
#include "send_loops.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kLeaderSlots = 65536;

Endpoint loopback(uint16_t port) {
  Endpoint endpoint = loopback_destination(0, port);
  endpoint.address[13] = endpoint.address[14] = 0;
  endpoint.address[15] = 1;
  return endpoint;
}

std::string publish(Relay& relay, const OurRelayOptions& options) {
  const auto sources = source_table(options.sources);
  const auto fanout = fanout_table(options.destinations);
  const auto leaders = leader_table(options.leader, kLeaderSlots);
  std::string error = relay.publish_sources(sources.data(), sources.size());
  if (error.empty()) error = relay.publish_fanout(fanout.data(), fanout.size());
  if (error.empty()) error = relay.publish_leaders(leaders.data(), leaders.size());
  return error;
}

}  // namespace

// ---- shredway -------------------------------------------------------------------------------

std::unique_ptr<OurRelay> OurRelay::open(const OurRelayOptions& options) {
  std::unique_ptr<OurRelay> driver(new OurRelay);
  driver->sources_ = options.sources;
  RelayOptions relay_options;
  relay_options.listen = {loopback(0)};
  relay_options.worker.shred_version = ShredStream::kShredVersion;
  relay_options.worker.wait = options.wait;
  relay_options.worker.gso = options.gso;
  relay_options.worker.sender_threads = options.sender_threads;
  relay_options.worker.failed_checks_per_second = options.failed_checks_per_second;
  relay_options.cpus = {options.cpu};
  relay_options.deshred = options.deshred;
  relay_options.transmit = options.transmit;
  const std::vector<pid_t> before = threads();
  const DefaultTimerSlack usual_sleep;
  std::string error;
  driver->relay_ = Relay::open(relay_options, error);
  if (error.empty()) error = publish(*driver->relay_, options);
  if (!error.empty()) {
    std::fprintf(stderr, "cannot open the relay: %s\n", error.c_str());
    return nullptr;
  }
  driver->find_threads(before, options);
  return driver;
}

void OurRelay::find_threads(const std::vector<pid_t>& before, const OurRelayOptions& options) {
  for (const pid_t thread : threads()) {
    if (std::find(before.begin(), before.end(), thread) != before.end()) continue;
    const std::string name = thread_name(thread);
    if (options.whole_cost || name == "shredway-0") counted_threads_.push_back(thread);
    if (name == "shredway-0") worker_thread_ = thread;
    const bool is_other = name == "shredway-see" || name.starts_with("shredway-0-s");
    if (is_other && !options.other_cpus.empty()) let_run_on(thread, options.other_cpus);
  }
}

uint64_t OurRelay::cpu_ns() const {
  uint64_t sum = 0;
  for (const pid_t thread : counted_threads_) sum += thread_cpu_ns(thread);
  return sum;
}

void OurRelay::read_counters() {
  const SnapshotLayout layout = relay_->layout(sources_, 0);
  counters_.resize(layout.words);
  relay_->snapshot(layout, counters_.data());
}

Driver::Batches OurRelay::batches() {
  read_counters();
  return {counters_[static_cast<size_t>(WorkerCounter::received)],
          counters_[static_cast<size_t>(WorkerCounter::batches)]};
}

uint64_t OurRelay::worker_count(WorkerCounter counter) {
  read_counters();
  return counters_[relay_->layout(sources_, 0).worker_begin + static_cast<size_t>(counter)];
}

uint64_t OurRelay::sent_to(uint32_t destination) {
  const SnapshotLayout layout = relay_->layout(sources_, destination + 1);
  std::vector<uint64_t> words(layout.words);
  relay_->snapshot(layout, words.data());
  return words[layout.destinations_begin + destination * SnapshotLayout::kDestinationWords];
}

uint64_t OurRelay::deshred_count(DeshredCounter counter) {
  read_counters();
  return counters_[relay_->layout(sources_, 0).deshred_begin + static_cast<size_t>(counter)];
}

bool OurRelay::wait_until_cloned(uint32_t destinations) {
  for (int i = 0; i < 200; i++) {
    if (worker_count(WorkerCounter::cloned_destinations) >= destinations) return true;
    sleep_ns(10'000'000);
  }
  std::fprintf(stderr, "expected %u destinations by clone, got %lu (%s)\n", destinations,
               worker_count(WorkerCounter::cloned_destinations),
               relay_->transmit_refusal().c_str());
  return false;
}

uint64_t OurRelay::verdict_count(Verdict verdict) {
  read_counters();
  const SnapshotLayout layout = relay_->layout(sources_, 0);
  uint64_t sum = 0;
  for (size_t i = 0; i <= sources_; i++)
    sum += counters_[layout.sources_begin + i * SnapshotLayout::kSourceWords +
                     static_cast<size_t>(verdict)];
  return sum;
}

// ---- receive only ---------------------------------------------------------------------------

ReceiveOnly::ReceiveOnly(int cpu)
    : fd_(open_loopback_socket({.times = true})), port_(local_port(fd_)), thread_([this, cpu] {
        pin(0, cpu);
        thread_number_ = own_thread();
        run();
      }) {
  while (thread_number_ == 0) sleep_ns(100'000);
}

ReceiveOnly::~ReceiveOnly() {
  stopping_ = true;
  thread_.join();
  close(fd_);
}

uint64_t ReceiveOnly::cpu_ns() const { return thread_cpu_ns(thread_number_); }

void ReceiveOnly::run() {
  constexpr size_t kAtOnce = 64, kBufferBytes = 1280, kControlBytes = 64;
  std::vector<uint8_t> buffers(kAtOnce * kBufferBytes), controls(kAtOnce * kControlBytes);
  std::array<mmsghdr, kAtOnce> messages{};
  std::array<iovec, kAtOnce> parts;
  std::array<sockaddr_storage, kAtOnce> senders;
  pollfd entry{fd_, POLLIN, 0};
  size_t used = kAtOnce;
  while (!stopping_) {
    for (size_t i = 0; i < used; i++) {
      msghdr& header = messages[i].msg_hdr;
      parts[i] = {buffers.data() + i * kBufferBytes, kBufferBytes};
      header = {&senders[i],
                sizeof senders[i],
                &parts[i],
                1,
                controls.data() + i * kControlBytes,
                kControlBytes,
                0};
    }
    const int received = recvmmsg(fd_, messages.data(), kAtOnce, MSG_DONTWAIT, nullptr);
    used = received > 0 ? static_cast<size_t>(received) : 0;
    if (received <= 0) (void)poll(&entry, 1, 50);
  }
}

// ---- minimal forwarder ----------------------------------------------------------------------

ForwarderDriver::ForwarderDriver(const std::vector<Endpoint>& destinations, int cpu)
    : forwarder_(socket_addresses(destinations), cpu) {}

uint64_t ForwarderDriver::cpu_ns() const { return thread_cpu_ns(forwarder_.thread()); }

// ---- other programs -------------------------------------------------------------------------

uint16_t free_port() {
  const int fd = open_loopback_socket({});
  const uint16_t port = local_port(fd);
  close(fd);
  return port;
}

namespace {

// True if a UDP socket of this namespace is bound to the port.
bool is_bound(uint16_t port) {
  FILE* file = std::fopen("/proc/thread-self/net/udp", "re");
  if (!file) return false;
  char line[512];
  bool found = false;
  while (!found && std::fgets(line, sizeof line, file)) {
    unsigned local_port_number = 0;
    if (std::sscanf(line, " %*u: %*x:%x", &local_port_number) == 1)
      found = local_port_number == port;
  }
  std::fclose(file);
  return found;
}

}  // namespace

std::unique_ptr<ChildDriver> ChildDriver::start(const std::vector<std::string>& command,
                                                uint16_t port, int cpu) {
  std::unique_ptr<ChildDriver> driver(new ChildDriver);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  driver->port_ = port;
  driver->process_ = fork();
  if (driver->process_ == 0) {
    // Inherited by all threads of the program: it ends when the bench ends, however that happens.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(0, cpu);
    let_batches_form(0);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    (void)execv(arguments[0], arguments.data());
    _exit(127);
  }
  for (int i = 0; driver->process_ > 0 && i < 500; i++) {
    if (is_bound(port)) return driver;
    sleep_ns(10'000'000);
  }
  std::fprintf(stderr, "%s did not listen within five seconds\n", arguments[0]);
  return nullptr;
}

ChildDriver::~ChildDriver() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

uint64_t ChildDriver::cpu_ns() const { return process_cpu_ns(process_); }

namespace {

std::string with_separator(const Endpoint& endpoint, char separator) {
  std::string text = to_string(endpoint);
  text[text.rfind(':')] = separator;
  return text;
}

}  // namespace

std::unique_ptr<Driver> start_dgram(const Bench& bench, const std::vector<Endpoint>& destinations) {
  if (bench.options.node.empty() || bench.options.dgram_relay.empty()) return nullptr;
  const uint16_t port = free_port();
  std::vector<std::string> command{bench.options.node, bench.options.dgram_relay,
                                   std::to_string(port)};
  for (const Endpoint& destination : destinations) command.push_back(to_string(destination));
  return ChildDriver::start(command, port, bench.tested_cpu);
}

std::unique_ptr<Driver> start_samplicator(const Bench& bench,
                                          const std::vector<Endpoint>& destinations) {
  if (bench.options.samplicator.empty()) return nullptr;
  const uint16_t port = free_port();
  std::vector<std::string> command{bench.options.samplicator, "-p", std::to_string(port), "-b",
                                   std::to_string(32 << 20)};
  for (const Endpoint& destination : destinations)
    command.push_back(with_separator(destination, '/'));
  return ChildDriver::start(command, port, bench.tested_cpu);
}

}  // namespace shredway::bench
