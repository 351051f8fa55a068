// Support for tests of the relay's transmit modes: a relay in a lab whose destinations report what
// they received, and the comparison with what they should have received.
//
// Included by relay_transmit*_test.cc.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "clone_support.h"
#include "loopback_relay.h"
#include "system/privileges.h"

namespace shredway::test {
inline constexpr uint8_t kTtl = 42;
inline constexpr uint8_t kDscp = 46;

// A relay in the lab with two kinds of destinations behind a cable, and one on loopback.
struct Outbound {
  Lab& lab;
  CloneCable cable{lab, "cable", 1};
  CloneReceiver ipv4{lab, true}, ipv6{lab, false};
  Peer source{"127.0.0.11"}, own;
  std::unique_ptr<Relay> relay;
  uint32_t ids = 0;
  std::pair<uint16_t, uint16_t> ports{};  // ports of the last delivery

  Outbound(Lab& the_lab, TransmitMode way, uint32_t workers = 1, std::vector<int> cpus = {})
      : lab(the_lab) {
    lab.ip("route add 10.77.0.0/16 via 10.1.0.2\nroute add fd77::/64 via fd00:1::2\n");
    know_neighbours("02:00:00:00:01:01");
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", workers == 1 ? 0 : 20'000)};
    options.workers = workers;
    options.worker = LoopbackRelay::default_worker();
    options.worker.ttl = kTtl;
    options.worker.dscp = kDscp;
    options.transmit = way;
    if (way == TransmitMode::xdp) options.xdp_interfaces = {cable.name};
    options.cpus = std::move(cpus);
    std::string error;
    relay = Relay::open(options, error);
    CHECK_EQ(error, std::string());
    publish(&Relay::publish_sources, source_table({{"127.0.0.11", 32, 0, 0}}));
    publish(&Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
  }
  void know_neighbours(const std::string& mac) const {
    for (const char* address : {"10.1.0.2", "fd00:1::2"})
      lab.ip(std::string("neigh replace ") + address + " lladdr " + mac +
             " dev cable nud permanent\n");
  }
  // After the cable was down: its address, routes and neighbours.
  void restore_cable(const std::string& mac) const {
    lab.ip(
        "link set cable up\naddr replace fd00:1::1/64 dev cable nodad\n"
        "route replace 10.77.0.0/16 via 10.1.0.2\nroute replace fd77::/64 via fd00:1::2\n");
    know_neighbours(mac);
  }
  void publish(std::string (Relay::*part)(const uint8_t*, size_t), const Bytes& bytes) const {
    CHECK_EQ((relay.get()->*part)(bytes.data(), bytes.size()), std::string());
  }
  // `count` destinations of each family behind the cable, in two tiers; every other one wants
  // recovered shreds. Also one on loopback.
  std::vector<DestinationEntry> destinations(uint32_t count) {
    std::vector<DestinationEntry> out;
    for (uint32_t i = 0; i < count; i++) {
      const auto tier = static_cast<uint8_t>(i % 2);
      out.push_back({behind_cable(true, i, ipv4.port()), tier, ids++, i % 4 >= 2});
      out.push_back({behind_cable(false, i, ipv6.port()), tier, ids++, i % 4 >= 2});
    }
    out.push_back({own.endpoint(), 0, ids++});
    return out;
  }
  void send(const std::vector<Bytes>& packets) const {
    for (const Bytes& packet : packets) source.send(relay->addresses()[0], packet);
  }
  std::vector<uint64_t> words() const {
    const SnapshotLayout layout = relay->layout(1, ids);
    std::vector<uint64_t> out(layout.words);
    relay->snapshot(layout, out.data());
    return out;
  }
  uint64_t counter(WorkerCounter which) const {
    uint64_t sum = 0;
    for (size_t worker = 0; worker < relay->worker_count(); worker++)
      sum += words()[worker * kWorkerCounterCount + static_cast<size_t>(which)];
    return sum;
  }
  uint64_t hops(NextHopState state) const {
    return words()[relay->layout(1, ids).next_hops_begin + static_cast<size_t>(state)];
  }
  uint64_t sent(uint32_t id) const {
    return words()[relay->layout(1, ids).destinations_begin +
                   id * SnapshotLayout::kDestinationWords];
  }
  uint64_t recovered_sent(uint32_t id) const {
    return words()[relay->layout(1, ids).destinations_begin +
                   (id + 1) * SnapshotLayout::kDestinationWords - 1];
  }
  uint64_t failed(uint32_t id) const {
    const auto all = words();
    const size_t begin =
        relay->layout(1, ids).destinations_begin + id * SnapshotLayout::kDestinationWords;
    uint64_t sum = 0;
    for (size_t i = 0; i < kSendFailureCount; i++) sum += all[begin + 1 + i];
    return sum;
  }
  // Waits, bounded, for a condition that the relay's own threads establish.
  static bool wait(const std::function<bool()>& holds) {
    for (int i = 0; i < 3000; i++) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // The change by one line of ip(8) leads to at least one new table of next hops.
  void ip_until_published(const std::string& line) const {
    const uint64_t before = relay->tables_published();
    lab.ip(line);
    CHECK(wait([&] { return relay->tables_published() > before; }));
  }
  bool wait_cloned(uint64_t count) const {
    return wait(
        [&] { return words()[static_cast<size_t>(WorkerCounter::cloned_destinations)] == count; });
  }
};

// Destination, length and content of the received datagrams, sorted. Also checks that they came
// from one port with the requested header fields.
using Seen = std::vector<std::tuple<std::string, int, int, Bytes>>;
inline Seen seen(std::vector<CloneArrival> arrivals) {
  Seen out;
  for (CloneArrival& arrival : arrivals) {
    CHECK(arrival.from == arrivals[0].from);
    out.emplace_back(to_string(arrival.to), arrival.ttl, arrival.traffic_class,
                     std::move(arrival.bytes));
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Datagrams that `entries` of one family must have received of `packets`.
inline Seen expected(const std::vector<DestinationEntry>& entries, bool is_ipv4,
                     const std::vector<Bytes>& packets) {
  Seen out;
  for (const DestinationEntry& entry : entries) {
    if (entry.endpoint.is_ipv4() != is_ipv4 || entry.endpoint.address[12] == 127) continue;
    for (const Bytes& packet : packets)
      out.emplace_back(to_string(entry.endpoint), kTtl, kDscp << 2, packet);
  }
  std::sort(out.begin(), out.end());
  return out;
}

inline void deliver_and_count(Outbound& out, const std::vector<DestinationEntry>& entries,
                              uint64_t slot, uint64_t before = 0) {
  const auto packets = make_slot({.slot = slot, .fec_sets = 2}).packets;
  out.send(packets);
  const size_t each = packets.size() * (entries.size() / 2);
  const auto ipv4 = out.ipv4.read(each), ipv6 = out.ipv6.read(each);
  CHECK(seen(ipv4) == expected(entries, true, packets));
  CHECK(seen(ipv6) == expected(entries, false, packets));
  // In both modes from the worker's own ports, to which ICMP errors return.
  if (ipv4.empty() || ipv6.empty()) return;
  const std::pair ports{ipv4[0].from.port, ipv6[0].from.port};
  if (before > 0) CHECK(ports == out.ports);
  out.ports = ports;
  for (const DestinationEntry& entry : entries) {
    CHECK(Outbound::wait([&] { return out.sent(entry.id) == before + packets.size(); }));
    CHECK_EQ(out.failed(entry.id), 0u);
  }
}

// Changes the neighbours, then the routes to those behind `other`, where `cloned_behind_other`
// destinations are served by clone or AF_XDP, and takes the first cable down.
inline void change_neighbours_and_routes(Outbound& out, uint64_t cloned_behind_other) {
  const auto entries = out.destinations(20);
  out.publish(&Relay::publish_fanout, fanout_table(entries));
  CHECK(out.wait_cloned(40));
  deliver_and_count(out, entries, kSlot);
  out.lab.ip_theirs("link set cable address 02:00:00:00:02:02\n");
  for (const char* address : {"10.1.0.2", "fd00:1::2"})
    out.ip_until_published(std::string("neigh replace ") + address +
                           " lladdr 02:00:00:00:02:02 dev cable nud permanent\n");
  CHECK(out.wait_cloned(40));
  deliver_and_count(out, entries, kSlot + 1, 128);
  CloneCable other(out.lab, "other", 2);
  out.lab.ip(
      "neigh replace 10.2.0.2 lladdr 02:00:00:00:01:02 dev other nud permanent\n"
      "neigh replace fd00:2::2 lladdr 02:00:00:00:01:02 dev other nud permanent\n");
  out.ip_until_published("route replace 10.77.0.0/16 via 10.2.0.2\n");
  out.ip_until_published("route replace fd77::/64 via fd00:2::2\n");
  CHECK(out.wait_cloned(cloned_behind_other));
  out.lab.ip("link set cable down\n");  // no test may need it now
  deliver_and_count(out, entries, kSlot + 2, 256);
  out.restore_cable("02:00:00:00:02:02");
  CHECK(out.wait_cloned(40));
  out.lab.ip("link set cable down\n");
  CHECK(out.wait_cloned(0));
  out.restore_cable("02:00:00:00:02:02");
  CHECK(out.wait_cloned(40));
  deliver_and_count(out, entries, kSlot + 3, 384);
}

// Sends while `switch_twice` changes the way and back, four times or more. Each destination gets
// every datagram once, in order.
inline void check_order_while_switching(Outbound& out, const std::function<void()>& switch_twice) {
  const auto entries = out.destinations(20);
  out.publish(&Relay::publish_fanout, fanout_table(entries));
  CHECK(out.wait_cloned(40));
  std::atomic<bool> done{false};
  std::atomic<uint32_t> switches{0};
  std::thread switcher([&] {
    for (; !done; switches++) switch_twice();
  });
  std::vector<Bytes> packets;
  for (uint64_t slot = kSlot; slot < kSlot + 400 && switches < 4; slot++) {
    auto more = make_slot({.slot = slot, .fec_sets = 1}).packets;
    std::erase_if(more, [](const Bytes& packet) { return packet.size() != kDataShredBytes; });
    out.send(more);
    packets.insert(packets.end(), more.begin(), more.end());
    CHECK(Outbound::wait([&] { return out.counter(WorkerCounter::received) == packets.size(); }));
  }
  done = true;
  switcher.join();
  CHECK(switches >= 4);
  for (CloneReceiver* receiver : {&out.ipv4, &out.ipv6}) {
    std::map<std::string, std::vector<Bytes>> by_destination;
    for (CloneArrival& arrival : receiver->read(packets.size() * 20))
      by_destination[to_string(arrival.to)].push_back(std::move(arrival.bytes));
    CHECK_EQ(by_destination.size(), size_t{20});
    for (const auto& [destination, arrived] : by_destination) CHECK(arrived == packets);
  }
  for (const DestinationEntry& entry : entries) {
    CHECK(Outbound::wait([&] { return out.sent(entry.id) == packets.size(); }));
    CHECK_EQ(out.failed(entry.id), 0u);
  }
}

}  // namespace shredway::test
