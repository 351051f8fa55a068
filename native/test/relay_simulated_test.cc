// A relay in a simulation: the worker and the deshredder without sockets and threads, in steps.
#include <cerrno>
#include <set>

#include "check.h"
#include "relay/relay.h"
#include "support.h"

namespace shredway::test {
namespace {

constexpr uint64_t kSimulatedSlot = 5000;
constexpr uint64_t kBegin_ns = 1'700'000'000'000'000'000;

// Two sources of two tiers; one destination in each.
struct SimulatedLab {
  MemoryNetwork network;
  std::unique_ptr<Relay> relay;
  Endpoint listen = ipv4_endpoint("10.0.0.1", 20000);
  Endpoint narrow = ipv4_endpoint("10.0.1.1", 9001);
  Endpoint wide = ipv4_endpoint("10.0.1.2", 9002);
  uint64_t now_ns = kBegin_ns;

  explicit SimulatedLab(bool wants_recovered = false, uint32_t workers = 1) {
    RelayOptions options;
    options.workers = workers;
    options.listen = {listen};
    options.network = &network;
    options.worker.tier_count = 2;
    options.worker.prefault = false;
    std::string error;
    relay = Relay::open(options, error);
    CHECK(relay && error.empty());
    const Bytes sources = source_table({{"10.0.2.1", 32, 0, 0}, {"10.0.2.2", 32, 1, 1}});
    const Bytes destinations =
        fanout_table({{narrow, 0, 0, wants_recovered}, {wide, 1, 1, wants_recovered}});
    const Bytes leaders = leader_table(leader_key(1), kSimulatedSlot, 100);
    CHECK(relay->publish_sources(sources.data(), sources.size()).empty());
    CHECK(relay->publish_fanout(destinations.data(), destinations.size()).empty());
    CHECK(relay->publish_leaders(leaders.data(), leaders.size()).empty());
  }
  void deliver(const char* from, const Bytes& packet) {
    CHECK(network.deliver(listen, {ipv4_endpoint(from, 1), packet, now_ns}));
  }
  // Runs the relay and removes what it sent.
  std::vector<MemoryNetwork::Datagram> step() {
    now_ns += 1'000'000;
    network.set_time(now_ns);
    relay->step();
    std::vector<MemoryNetwork::Datagram> sent(network.sent().begin(), network.sent().end());
    network.sent().clear();
    return sent;
  }
  // ICMP errors about `narrow` that the workers have reported since the last call.
  size_t icmp_errors() const {
    std::array<Event, 2048> events;
    const size_t count = relay->drain_events(events.data(), events.size());
    size_t errors = 0;
    for (size_t i = 0; i < count; i++)
      errors += events[i].kind == EventKind::icmp_error && events[i].subject == 0;
    return errors;
  }
  uint64_t count_of(WorkerCounter counter, size_t worker = 0) const {
    const SnapshotLayout layout = relay->layout(0, 0);
    std::vector<uint64_t> words(layout.words);
    relay->snapshot(layout, words.data());
    return words[layout.worker_begin + worker * kWorkerCounterCount + static_cast<size_t>(counter)];
  }
};

size_t sent_to(const std::vector<MemoryNetwork::Datagram>& sent, const Endpoint& to) {
  std::set<Bytes> different;
  for (const auto& datagram : sent)
    if (datagram.peer == to) CHECK(different.insert(datagram.bytes).second);
  return different.size();
}

}  // namespace

TEST(a_simulated_relay_sends_each_shred_once_to_the_tiers_of_its_source) {
  SimulatedLab lab;
  const AuthenticSlot slot = make_slot({.slot = kSimulatedSlot, .fec_sets = 2});
  for (const Bytes& packet : slot.packets) lab.deliver("10.0.2.2", packet);
  const auto first = lab.step();
  CHECK(sent_to(first, lab.narrow) == 0);
  CHECK(sent_to(first, lab.wide) == slot.packets.size());
  for (const auto& datagram : first) CHECK(datagram.time_ns == lab.now_ns);
  for (const Bytes& packet : slot.packets) lab.deliver("10.0.2.1", packet);
  const auto second = lab.step();
  CHECK(sent_to(second, lab.narrow) == slot.packets.size());
  CHECK(sent_to(second, lab.wide) == 0);
  CHECK(lab.count_of(WorkerCounter::received) == 2 * slot.packets.size());
  CHECK(lab.count_of(WorkerCounter::cpu_ns) == 0);
}

TEST(a_simulated_relay_does_nothing_between_steps) {
  SimulatedLab lab;
  lab.deliver("10.0.2.1", make_slot({.slot = kSimulatedSlot}).packets.front());
  CHECK(lab.network.sent().empty());
  CHECK(lab.step().size() == 2);
  CHECK(lab.step().empty());
}

TEST(a_simulated_relay_drops_forged_shreds) {
  SimulatedLab lab;
  AuthenticSlot slot = make_slot({.slot = kSimulatedSlot, .leader_seed = 2});
  for (Bytes& packet : slot.packets) lab.deliver("10.0.2.1", packet);
  CHECK(lab.step().empty());
}

TEST(a_simulated_relay_recovers_shreds_for_destinations_that_want_them) {
  SimulatedLab lab(true);
  const AuthenticSlot slot = make_slot({.slot = kSimulatedSlot});
  for (size_t i = 16; i < 48; i++) lab.deliver("10.0.2.1", slot.packets[i]);
  const auto sent = lab.step();
  CHECK(sent_to(sent, lab.narrow) == slot.packets.size());
  CHECK(sent_to(sent, lab.wide) == slot.packets.size());
}

TEST(a_simulated_relay_checks_signatures_with_prepared_keys_from_its_second_slot_on) {
  SimulatedLab lab;
  const auto send_slot = [&](uint64_t slot, uint8_t leader) {
    for (const Bytes& packet : make_slot({.slot = slot, .leader_seed = leader}).packets)
      lab.deliver("10.0.2.1", packet);
    return sent_to(lab.step(), lab.narrow);
  };
  CHECK_EQ(send_slot(kSimulatedSlot, 1), size_t{64});
  CHECK_EQ(lab.count_of(WorkerCounter::prepared_checks), uint64_t{0});  // no slot was known before
  CHECK_EQ(send_slot(kSimulatedSlot + 1, 1), size_t{64});
  CHECK_EQ(lab.count_of(WorkerCounter::prepared_checks), uint64_t{1});
  CHECK_EQ(send_slot(kSimulatedSlot + 2, 2), size_t{0});  // forged
  CHECK_EQ(send_slot(kSimulatedSlot + 3, 1), size_t{64});
  const uint64_t checks = lab.count_of(WorkerCounter::signature_checks);
  CHECK_EQ(lab.count_of(WorkerCounter::prepared_checks), checks - 1);
}

TEST(a_simulated_network_fails_sends_with_an_errno) {
  SimulatedLab lab;
  const AuthenticSlot slot = make_slot({.slot = kSimulatedSlot});
  lab.network.fail(lab.narrow, EHOSTUNREACH);
  for (const Bytes& packet : slot.packets) lab.deliver("10.0.2.1", packet);
  const auto sent = lab.step();
  CHECK(sent_to(sent, lab.narrow) == 0);
  CHECK(sent_to(sent, lab.wide) == slot.packets.size());
  lab.network.fail(lab.narrow, 0);
  for (const Bytes& packet : make_slot({.slot = kSimulatedSlot + 1}).packets)
    lab.deliver("10.0.2.1", packet);
  CHECK(sent_to(lab.step(), lab.narrow) == slot.packets.size());
}

TEST(a_simulated_network_steers_each_fec_set_to_one_of_the_workers) {
  SimulatedLab lab(false, 2);
  const AuthenticSlot slot = make_slot({.slot = kSimulatedSlot, .fec_sets = 4});
  for (int copy = 0; copy < 2; copy++)
    for (const Bytes& packet : slot.packets) lab.deliver("10.0.2.1", packet);
  lab.deliver("10.0.2.1", {1, 2, 3});
  const auto sent = lab.step();
  CHECK_EQ(sent_to(sent, lab.narrow), slot.packets.size());
  CHECK_EQ(sent_to(sent, lab.wide), slot.packets.size());
  // Two of the sets each, twice, and what is too short.
  CHECK_EQ(lab.count_of(WorkerCounter::received, 0), slot.packets.size() + 1);
  CHECK_EQ(lab.count_of(WorkerCounter::received, 1), slot.packets.size());
}

TEST(a_simulated_network_reports_closed_ports_to_each_worker_that_sent_there) {
  SimulatedLab lab(false, 2);
  const auto send_slot = [&](uint64_t number) {
    for (const Bytes& packet : make_slot({.slot = number, .fec_sets = 2}).packets)
      lab.deliver("10.0.2.1", packet);
    return lab.step();
  };
  lab.network.refuse(lab.narrow, true);
  CHECK_EQ(sent_to(send_slot(kSimulatedSlot), lab.wide), size_t{128});  // no other one is hurt
  const size_t errors = lab.icmp_errors();
  CHECK(errors > 0);
  lab.network.refuse(lab.narrow, false);
  CHECK_EQ(sent_to(send_slot(kSimulatedSlot + 1), lab.narrow), size_t{128});
  while (lab.icmp_errors() > 0) lab.step();  // those that waited
  lab.network.report_unreachable(lab.narrow);
  lab.step();
  CHECK_EQ(lab.icmp_errors(), size_t{2});                           // one of each worker
  lab.network.report_unreachable(ipv4_endpoint("10.0.1.3", 9001));  // nobody sent there
  lab.step();
  CHECK_EQ(lab.icmp_errors(), size_t{0});
  CHECK_EQ(sent_to(send_slot(kSimulatedSlot + 2), lab.narrow), size_t{128});
}

TEST(a_simulated_relay_refuses_what_needs_the_kernel) {
  MemoryNetwork network;
  const auto refusal = [&](auto change) {
    RelayOptions options;
    options.listen = {ipv4_endpoint("10.0.0.1", 20000)};
    options.network = &network;
    change(options);
    std::string error;
    CHECK(!Relay::open(options, error));
    return error;
  };
  CHECK(refusal([](auto& options) { options.listen[0].port = 0; }).find("port") !=
        std::string::npos);
  CHECK(refusal([](auto& options) {
          options.multicast = {ipv4_endpoint("0.0.0.0", 7733)};
        }).find("multicast") != std::string::npos);
}

TEST(a_simulated_relay_opens_no_interface) {
  for (const TransmitMode mode : {TransmitMode::clone, TransmitMode::automatic}) {
    MemoryNetwork network;
    RelayOptions options;
    options.listen = {ipv4_endpoint("10.0.0.1", 20000)};
    options.network = &network;
    options.transmit = mode;
    std::string error;
    const std::unique_ptr<Relay> relay = Relay::open(options, error);
    CHECK(relay && relay->transmit_in_use() == TransmitMode::socket);
    CHECK_EQ(relay->transmit_refusal(), std::string("a simulation has no interfaces"));
  }
}

TEST(a_memory_network_refuses_datagrams_that_no_socket_takes) {
  MemoryNetwork network;
  const Endpoint known = ipv4_endpoint("10.0.0.1", 1);
  const UdpSocket socket = network.open(known);
  for (size_t i = 0; i < MemoryNetwork::kSocketQueueMax; i++)
    CHECK(network.deliver(known, {{}, {1}, 0}));
  CHECK(!network.deliver(known, {{}, {1}, 0}));
  CHECK(!network.deliver(ipv4_endpoint("10.0.0.1", 2), {{}, {1}, 0}));
}

}  // namespace shredway::test
