#include "relay/relay.h"

#include <sched.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "net/steering.h"
#include "net/thread.h"

namespace shredway {
namespace {

// Empty tables: a relay without published tables accepts no packet and sends none.
TableSet empty_tables() {
  constexpr uint8_t kSources[8] = {'S', 'W', 'S', '1'};
  constexpr uint8_t kFanout[8] = {'S', 'W', 'F', '1'};
  constexpr uint8_t kLeaders[20] = {'S', 'W', 'L', '1'};
  std::string error;
  return {SourceTable::parse(kSources, sizeof kSources, kTiersMax, error),
          FanoutTable::parse(kFanout, sizeof kFanout, kTiersMax, error),
          LeaderTable::parse(kLeaders, sizeof kLeaders, error),
          std::make_shared<const PreparedKeys>(),
          nullptr,
          1};
}

std::string check(const RelayOptions& options) {
  if (options.workers < 1 || options.workers > kWorkersMax)
    return "expected 1 to " + std::to_string(kWorkersMax) + " workers, got " +
           std::to_string(options.workers);
  if (options.listen.empty() && options.multicast.empty())
    return "expected at least one listening address, got none";
  for (const Endpoint& address : options.multicast)
    if (address.port == 0) return "expected a port of multicast groups from 1 to 65535, got 0";
  if (options.worker.tier_count < 1 || options.worker.tier_count > kTiersMax)
    return "expected 1 to " + std::to_string(kTiersMax) + " tiers, got " +
           std::to_string(options.worker.tier_count);
  if (!options.cpus.empty() && options.cpus.size() != options.workers)
    return "expected one CPU for each of " + std::to_string(options.workers) + " workers, got " +
           std::to_string(options.cpus.size());
  if (options.worker.sender_threads > kSenderThreadsMax)
    return "expected at most " + std::to_string(kSenderThreadsMax) +
           " sender threads per worker, got " + std::to_string(options.worker.sender_threads);
  if (options.worker.ttl == 0) return "expected a TTL from 1 to 255, got 0";
  if (options.worker.dscp > 63)
    return "expected a DSCP from 0 to 63, got " + std::to_string(options.worker.dscp);
  for (const int cpu : options.cpus)
    if (cpu < 0 || cpu >= CPU_SETSIZE)
      return "expected a CPU number from 0 to " + std::to_string(CPU_SETSIZE - 1) + ", got " +
             std::to_string(cpu);
  if (options.worker.authenticate && ed25519_library() == Ed25519Library::none)
    return "no Ed25519 library found: neither libsodium nor libcrypto; install one of "
           "them to verify signatures";
  if (options.arrivals && options.workers > 1)
    return "expected one worker for measuring feeds, got " + std::to_string(options.workers);
  for (const Endpoint& address : options.listen)
    if (address.port == 0 && options.workers > 1)
      return "expected a listening port other than 0, because several workers share it, got " +
             to_string(address);
  return "";
}

// Why the workers and their sender threads must not precede the other threads; empty: they may.
// Workers on every CPU would stop the other threads during a flood.
std::string crowding(const RelayOptions& options, uint32_t senders) {
  // Pinned workers may use CPUs that the process's own mask excludes.
  const auto cpus = options.cpus.empty() ? std::thread::hardware_concurrency()
                                         : static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  if (options.workers * (1 + senders) < cpus) return "";
  const std::string with_senders =
      senders > 0 ? " with " + std::to_string(senders) + " sender threads each" : "";
  return std::to_string(options.workers) + " workers" + with_senders + " on " +
         std::to_string(cpus) + " CPUs leave none for the other threads";
}

// A relay that measures feeds sees everything that arrives.
bool filters_noise(const RelayOptions& options) {
  return options.receive_filter && !options.arrivals;
}

}  // namespace

Relay::Relay() : tables_(empty_tables()) {}

std::unique_ptr<Relay> Relay::open(const RelayOptions& options, std::string& error) {
  error = check(options);
  if (!error.empty()) return nullptr;
  std::unique_ptr<Relay> relay(new Relay);
  relay->network_ = options.network;
  relay->tier_count_ = options.worker.tier_count;
  std::vector<WorkerSockets> sockets(options.workers);
  error = options.network ? relay->open_in_memory(options, sockets)
                          : relay->open_sockets(options, sockets);
  if (!error.empty()) return nullptr;
  if (options.deshred) error = relay->start_deshred(options);
  if (!error.empty()) return nullptr;
  if (options.arrivals) {
    relay->arrivals_ = std::make_unique<ArrivalRings>();
    if (options.capture_packets) relay->arrivals_->packets = std::make_unique<PacketRing>();
  }
  relay->open_clones(options);
  relay->sends_by_xdp_ = options.transmit == TransmitMode::xdp;
  relay->receives_by_xdp_ = options.receive == ReceiveMode::xdp;
  if (relay->sends_by_xdp_ || relay->receives_by_xdp_) error = relay->open_xdp(options);
  if (!error.empty()) return nullptr;
  error = relay->start_workers(options, std::move(sockets));
  if (!error.empty()) return nullptr;
  if (options.worker.authenticate) error = relay->start_key_preparer();
  if (!error.empty()) return nullptr;
  if (options.lock_memory) relay->lock_memory();
  if (relay->clone_plane_ || relay->sends_by_xdp_) relay->watch_next_hops(options);
  if (relay->sends_by_xdp_) error = relay->transmit_refusal_;
  return error.empty() ? std::move(relay) : nullptr;
}

Relay::~Relay() = default;

// The plane first: without privileges, its error names them.
void Relay::open_clones(const RelayOptions& options) {
  if (options.transmit == TransmitMode::socket || options.transmit == TransmitMode::xdp) return;
  if (options.network) {
    transmit_refusal_ = "a simulation has no interfaces";
    return;
  }
  clone_plane_ = ClonePlane::open({options.workers}, transmit_refusal_);
  if (!clone_plane_ || options.transmit != TransmitMode::automatic) return;
  output_rules_ = OutputRules::open(transmit_refusal_);
  if (output_rules_) {
    transmit_refusal_ = output_rules_->found();
    if (transmit_refusal_.empty()) return;
    transmit_refusal_ += "; clones would bypass them";
  }
  clone_plane_.reset();
}

std::string Relay::open_xdp(const RelayOptions& options) {
  if (options.network) return "a simulation has no interfaces";
  XdpPlaneOptions plane = {
      options.xdp_interfaces, options.workers, options.send_buffer_bytes, sends_by_xdp_, {}};
  if (receives_by_xdp_) plane.listen = addresses_;
  std::string error;
  xdp_plane_ = XdpPlane::open(plane, error);
  if (error.empty()) return "";
  const char* both =
      receives_by_xdp_ ? "cannot send and receive by AF_XDP: " : "cannot send by AF_XDP: ";
  return (sends_by_xdp_ ? both : "cannot receive by AF_XDP: ") + error;
}

std::string Relay::start_workers(const RelayOptions& options, std::vector<WorkerSockets> sockets) {
  const bool may_divide = !options.network && !clone_plane_ && !sends_by_xdp_;
  sender_threads_ = may_divide ? options.worker.sender_threads : 0;
  std::optional<RaisedPriority> raised;
  priority_refusal_ =
      options.network ? "a simulation has no threads" : crowding(options, sender_threads_);
  if (priority_refusal_.empty()) priority_refusal_ = raised.emplace().refusal();
  for (uint32_t i = 0; i < options.workers; i++) {
    WorkerOptions worker_options = options.worker;
    worker_options.number = i;
    worker_options.worker_count = options.workers;
    worker_options.sender_threads = sender_threads_;
    worker_options.slot_bounds = &slot_bounds_;
    worker_options.filtered = filters_noise(options);
    if (deshred_) {
      worker_options.deshred = &deshred_->ring_of(i);
      worker_options.recovered = &deshred_->recovered_of(i);
      worker_options.stream_tiers = &deshred_->streams().wanted_tiers();
    }
    worker_options.arrivals = arrivals_.get();
    if (clone_plane_) worker_options.clone = clone_plane_->region(i);
    if (xdp_plane_) {
      worker_options.xdp = xdp_plane_->senders(i);
      worker_options.xdp_receive = xdp_plane_->receivers(i);
    }
    if (!options.cpus.empty()) worker_options.cpu = options.cpus[i];
    std::string error;
    if (network_) worker_options.calls = &MemoryNetwork::calls();
    const auto make = network_ ? &Worker::create : &Worker::start;
    auto worker = make(worker_options, std::move(sockets[i]), tables_, error);
    if (!worker) return error;
    workers_.push_back(std::move(worker));
  }
  return "";
}

void Relay::lock_memory() {
  for (const auto& worker : workers_) worker->lock_memory(memory_lock_);
  memory_lock_.add_libraries();
  memory_lock_refusal_ = memory_lock_.lock();
}

std::string Relay::start_deshred(const RelayOptions& options) {
  std::string error;
  deshred_ = network_ ? DeshredThread::create(options.workers, MemoryNetwork::calls())
                      : DeshredThread::start(options.workers, error);
  return error;
}

// Must run after start_workers, as watch_next_hops.
std::string Relay::start_key_preparer() {
  std::vector<const WorkerCounters*> counters;
  for (const auto& worker : workers_) counters.push_back(&worker->counters());
  std::string error;
  key_preparer_ = network_ ? KeyPreparer::create(tables_, std::move(counters))
                           : KeyPreparer::start(tables_, std::move(counters), error);
  return error;
}

// Bounded: a turn without work ends the loop, and only delivered datagrams cause work.
void Relay::step() {
  const MemoryNetwork::Use use(*network_);
  if (key_preparer_) key_preparer_->take_turn();
  for (bool busy = true; busy;) {
    busy = false;
    for (const auto& worker : workers_) busy |= worker->take_turn().received_any;
    if (!deshred_) continue;
    busy |= deshred_->take_turn();
    for (uint32_t i = 0; i < workers_.size(); i++) busy |= deshred_->recovered_of(i).waiting() > 0;
  }
  for (const auto& worker : workers_) worker->rest();
}

// Must run after start_workers: all readers must be added before a table is replaced.
void Relay::watch_next_hops(const RelayOptions& options) {
  NextHopWatchOptions watch_options;
  watch_options.source = options.send_from;
  watch_options.output_rules = std::move(output_rules_);
  watch_options.publish = [this](std::shared_ptr<const NextHops> next_hops) {
    tables_.replace(&TableSet::next_hops, std::move(next_hops));
  };
  next_hop_watch_ = NextHopWatch::start(std::move(watch_options), transmit_refusal_);
}

std::string Relay::open_sockets(const RelayOptions& options, std::vector<WorkerSockets>& sockets) {
  for (const Endpoint& address : options.listen) {
    std::string error = open_listeners(options, address, sockets);
    if (!error.empty()) return error;
  }
  const bool ipv6 = ipv6_supported();
  for (const Endpoint& address : options.multicast) {
    if (!address.is_ipv4() && !ipv6) continue;
    std::string error = open_group_listeners(options, address, sockets);
    if (!error.empty()) return error;
  }
  const bool from_ipv4 = options.send_from.is_ipv4();
  for (WorkerSockets& own : sockets) {
    SocketResult ipv4_result =
        open_send_socket({from_ipv4 ? options.send_from : any_endpoint(true),
                          options.send_buffer_bytes, options.worker.ttl, options.worker.dscp});
    if (!ipv4_result.error.empty()) return ipv4_result.error;
    own.send_ipv4 = std::move(ipv4_result.socket);
    if (!ipv6) continue;
    SocketResult ipv6_result =
        open_send_socket({from_ipv4 ? any_endpoint(false) : options.send_from,
                          options.send_buffer_bytes, options.worker.ttl, options.worker.dscp});
    if (!ipv6_result.error.empty()) return ipv6_result.error;
    own.send_ipv6 = std::move(ipv6_result.socket);
  }
  return "";
}

// Opens one socket per worker on the same port. The steering program numbers them in the order of
// bind.
std::string Relay::open_listeners(const RelayOptions& options, const Endpoint& address,
                                  std::vector<WorkerSockets>& sockets) {
  if (sockets.size() > 1) {
    // With a shared port, another program could receive a part of the traffic without any error.
    // Opening the port unshared first detects that it is in use.
    const SocketResult alone = open_receive_socket({address, 0, false});
    if (!alone.error.empty()) return alone.error;
  }
  for (WorkerSockets& own : sockets) {
    SocketResult result =
        open_receive_socket({address, options.receive_buffer_bytes, sockets.size() > 1,
                             options.busy_poll_us, filters_noise(options)});
    if (!result.error.empty()) return result.error;
    const uint16_t port = local_endpoint(result.socket.fd()).port;
    own.receive.push_back({std::move(result.socket), port});
  }
  const int first = sockets.front().receive.back().socket.fd();
  addresses_.push_back(local_endpoint(first));
  granted_receive_buffer_bytes_ = receive_buffer_bytes(first);
  if (sockets.size() == 1) return "";
  return attach_steering(first, static_cast<uint32_t>(sockets.size()));
}

std::string Relay::open_in_memory(const RelayOptions& options,
                                  std::vector<WorkerSockets>& sockets) {
  if (!options.multicast.empty()) return "expected no multicast groups in a simulation";
  for (const Endpoint& address : options.listen) {
    if (address.port == 0) return "expected a listening port other than 0 in a simulation";
    for (WorkerSockets& own : sockets)
      own.receive.push_back({options.network->open(address), address.port});
    addresses_.push_back(address);
  }
  for (WorkerSockets& own : sockets) {
    own.send_ipv4 = options.network->open(any_endpoint(true));
    own.send_ipv6 = options.network->open(any_endpoint(false));
    if (!own.send_ipv6.valid()) return "no descriptor is left for a simulated socket";
  }
  return "";
}

// The kernel delivers a multicast datagram to every worker's socket; each has a program that drops
// the FEC sets of other workers.
std::string Relay::open_group_listeners(const RelayOptions& options, const Endpoint& address,
                                        std::vector<WorkerSockets>& sockets) {
  const auto workers = static_cast<uint32_t>(sockets.size());
  for (uint32_t worker = 0; worker < workers; worker++) {
    SocketResult result = open_receive_socket({.address = address,
                                               .buffer_bytes = options.receive_buffer_bytes,
                                               .share_port = false,
                                               .busy_poll_us = options.busy_poll_us,
                                               .multicast = true});
    if (!result.error.empty()) return result.error;
    const int fd = result.socket.fd();
    if (workers > 1 || filters_noise(options)) {
      std::string error = attach_group_steering(fd, address.is_ipv4(), worker, workers);
      if (!error.empty()) return error;
    }
    if (granted_receive_buffer_bytes_ == 0)
      granted_receive_buffer_bytes_ = receive_buffer_bytes(fd);
    sockets[worker].receive.push_back({std::move(result.socket), address.port, true});
  }
  return "";
}

std::string Relay::join(uint16_t port, const GroupMembership& membership) {
  for (const auto& worker : workers_) {
    std::string error = worker->change_membership(port, membership, true);
    if (error.empty()) continue;
    (void)leave(port, membership);
    return error;
  }
  return "";
}

std::string Relay::leave(uint16_t port, const GroupMembership& membership) {
  std::string first_error;
  for (const auto& worker : workers_) {
    std::string error = worker->change_membership(port, membership, false);
    if (first_error.empty()) first_error = std::move(error);
  }
  return first_error;
}

std::string Relay::publish_sources(const uint8_t* bytes, size_t length) {
  std::string error;
  std::shared_ptr<const SourceTable> table = SourceTable::parse(bytes, length, tier_count_, error);
  if (table) tables_.replace(&TableSet::sources, std::move(table));
  return error;
}

std::string Relay::publish_fanout(const uint8_t* bytes, size_t length) {
  std::string error;
  std::shared_ptr<const FanoutTable> table = FanoutTable::parse(bytes, length, tier_count_, error);
  if (table && deshred_) deshred_->return_recovered(table->any_wants_recovered());
  if (!table) return error;
  std::vector<AddressBytes> addresses = table->addresses();
  tables_.replace(&TableSet::fanout, std::move(table));
  // New destinations go by socket until a table of next hops contains them.
  if (next_hop_watch_) next_hop_watch_->set_addresses(std::move(addresses));
  return error;
}

std::string Relay::publish_leaders(const uint8_t* bytes, size_t length) {
  std::string error;
  std::shared_ptr<const LeaderTable> table = LeaderTable::parse(bytes, length, error);
  if (table) tables_.replace(&TableSet::leaders, std::move(table));
  return error;
}

void Relay::snapshot(const SnapshotLayout& layout, uint64_t* out) const {
  std::vector<const WorkerCounters*> counters;
  for (const auto& worker : workers_) counters.push_back(&worker->counters());
  take_snapshot({counters, deshred_ ? &deshred_->counters() : nullptr}, layout, out);
}

std::vector<uint64_t> Relay::receive_drops() const {
  std::vector<uint64_t> sums;
  for (const auto& worker : workers_) {
    const std::vector<uint64_t> drops = worker->receive_drops_by_socket();
    sums.resize(drops.size());
    for (size_t i = 0; i < drops.size(); i++) sums[i] += drops[i];
  }
  return sums;
}

size_t Relay::drain_events(Event* out, size_t max) {
  size_t count = 0;
  for (const auto& worker : workers_)
    while (count < max && worker->events().pop(out[count])) count++;
  return count;
}

size_t Relay::drain_traces(Trace* out, size_t max) {
  size_t count = 0;
  for (const auto& worker : workers_)
    while (count < max && worker->traces().pop(out[count])) count++;
  return count;
}

}  // namespace shredway
