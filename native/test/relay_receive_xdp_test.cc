// The receive mode xdp of a relay: what its destinations, verdicts and counters show, compared with
// sockets and the same stream.
#include <algorithm>

#include "loopback_relay.h"
#include "xdp_receive_support.h"

namespace shredway::test {
namespace {

constexpr uint16_t kRelayPort = 20'002;

struct InboundRequest {
  ReceiveMode receive = ReceiveMode::xdp;
  uint32_t workers = 1;
  WaitMode wait = WaitMode::block;
  TransmitMode transmit = TransmitMode::socket;
};

// A relay whose sources are at the other end of a cable, with a destination on loopback.
struct Inbound {
  Inbound(Lab& the_lab, const InboundRequest& request)
      : lab(the_lab), cable(the_lab, "cable", 1), frames(the_lab, cable) {
    RelayOptions options;
    options.listen = {any_port(true, kRelayPort), any_port(false, kRelayPort)};
    options.workers = request.workers;
    options.worker = LoopbackRelay::default_worker();
    options.worker.wait = request.wait;
    options.receive = request.receive;
    options.transmit = request.transmit;
    if (request.receive == ReceiveMode::xdp || request.transmit == TransmitMode::xdp)
      options.xdp_interfaces = {cable.name};
    relay = open_relay(options);
    if (!relay) return;
    publish_to(*relay, &Relay::publish_sources, sources());
    publish_to(*relay, &Relay::publish_fanout, fanout_table({{own.endpoint(), 1, 0}}));
    publish_to(*relay, &Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
  }
  // 10.1.0.2 in tier 0 and 10.1.0.3 in tier 1, which also sends by IPv6.
  static Bytes sources() {
    Bytes table = source_table({{"10.1.0.2", 32, 0, 0}, {"10.1.0.3", 32, 1, 1}});
    Bytes by_ipv6(table.end() - 24, table.end());
    const AddressBytes address = address_of("fd00:1::3");
    by_ipv6[3] = 128;
    std::copy(address.begin(), address.end(), by_ipv6.begin() + 8);
    table.insert(table.end(), by_ipv6.begin(), by_ipv6.end());
    table[4] = 3;
    return table;
  }
  FrameRequest from(uint8_t host, const Bytes& packet, bool is_ipv4 = true) const {
    FrameRequest request = frames.request(is_ipv4, kRelayPort, packet);
    request.from = frames.end(is_ipv4, host, 7000);
    return request;
  }
  void send(const FrameRequest& request) { frames.send(udp_frame(request)); }
  void send_all(uint8_t host, const std::vector<Bytes>& packets, bool is_ipv4 = true) {
    for (const Bytes& packet : packets) send(from(host, packet, is_ipv4));
  }
  std::vector<uint64_t> words() const {
    const SnapshotLayout layout = relay->layout(2, 1);
    std::vector<uint64_t> out(layout.words);
    relay->snapshot(layout, out.data());
    return out;
  }
  uint64_t counter(WorkerCounter which) const {
    uint64_t sum = 0;
    const auto all = words();
    for (size_t worker = 0; worker < relay->worker_count(); worker++)
      sum += all[worker * kWorkerCounterCount + static_cast<size_t>(which)];
    return sum;
  }
  VerdictCounts verdicts() const { return verdict_counts(relay->layout(2, 1), words(), 2); }
  // Waits until this many packets have a verdict.
  bool decided(uint64_t count) const {
    return eventually([&] { return sum_of(verdicts()) >= count; });
  }
  Lab& lab;
  CloneCable cable;
  FrameSender frames;
  Peer own;
  std::unique_ptr<Relay> relay;
};

// Everything that a source, a stranger or noise may send, in steps that do not depend on each
// other.
struct StreamResult {
  VerdictCounts verdicts;
  std::vector<Bytes> delivered;
  uint64_t received = 0, by_xdp = 0;
};

StreamResult run_stream(const InboundRequest& request) {
  StreamResult result;
  in_clone_lab([&](Lab& lab) {
    Inbound in(lab, request);
    if (!in.relay) return;
    const auto slot = make_slot({.slot = kSlot, .fec_sets = 3}).packets;
    in.send_all(3, slot);  // first
    CHECK(in.decided(slot.size()));
    in.send_all(3, slot, false);  // duplicates, by IPv6
    in.send_all(2, slot);         // of the narrower tier
    CHECK(in.decided(slot.size() * 3));
    in.send_all(9, slot);  // of a stranger
    in.send_all(2, make_slot({.slot = kSlot + 1, .fec_sets = 1, .version = 9}).packets);
    in.send_all(2, make_slot({.slot = kSlot + 400, .fec_sets = 1}).packets);  // ahead
    CHECK(in.decided(slot.size() * 4 + 128));
    std::vector<Bytes> altered(slot.begin(), slot.begin() + 32);
    for (Bytes& packet : altered) packet[300] ^= 1;
    in.send_all(3, altered);  // duplicates without a check
    Bytes forged = make_slot({.slot = kSlot + 2, .fec_sets = 1, .leader_seed = 2}).packets[0];
    in.send(in.from(2, forged));
    CHECK(in.decided(slot.size() * 4 + 128 + 33));
    Random random{91};
    for (size_t bytes = 1; bytes <= 1232; bytes++) {
      Bytes noise = shred_like(random, bytes);
      if (bytes > 200) noise[64] = uint8_t(random.next());
      in.send(in.from(2, noise));
    }
    FrameRequest wrong_sum = in.from(2, make_slot({.slot = kSlot + 3}).packets[0]);
    wrong_sum.sum = FrameSum::wrong;
    in.send(wrong_sum);
    const auto last = make_slot({.slot = kSlot + 4, .fec_sets = 1}).packets;
    in.send_all(2, last);
    const auto& delivered = in.own.receive(slot.size() + last.size());
    // Noise that passes the filter has a verdict; the last packets of sockets may come later.
    uint64_t before = ~uint64_t{0};
    CHECK(eventually([&] {
      const uint64_t now = sum_of(in.verdicts());
      const bool still = now == before;
      before = now;
      if (!still) std::this_thread::sleep_for(std::chrono::milliseconds(120));
      return still;
    }));
    result = {in.verdicts(), sorted(delivered), in.counter(WorkerCounter::received),
              in.counter(WorkerCounter::xdp_received)};
    CHECK_EQ(result.received, sum_of(result.verdicts));
    if (request.receive == ReceiveMode::xdp) {
      CHECK(eventually([&] { return in.counter(WorkerCounter::xdp_refused) == 1; }));
      CHECK_EQ(in.relay->receive_interfaces(), std::string("cable (copies)"));
    }
  });
  return result;
}

TEST(relay_receive_xdp_gives_the_verdicts_and_datagrams_of_sockets) {
  const StreamResult by_socket = run_stream({ReceiveMode::socket});
  const StreamResult by_xdp = run_stream({ReceiveMode::xdp});
  CHECK(by_xdp.verdicts == by_socket.verdicts);
  CHECK(by_xdp.delivered == by_socket.delivered);
  CHECK_EQ(by_xdp.delivered.size(), by_socket.delivered.empty() ? 0u : size_t{3 * 64 + 64});
  CHECK_EQ(by_xdp.received, by_socket.received);
  CHECK_EQ(by_socket.by_xdp, 0u);
  CHECK_EQ(by_xdp.by_xdp, by_xdp.received);  // the filter dropped the rest at the sockets
}

TEST(relay_receive_xdp_works_in_every_wait_mode_and_with_several_workers) {
  for (const WaitMode wait : {WaitMode::block, WaitMode::spin, WaitMode::busy}) {
    in_clone_lab([&](Lab& lab) {
      Inbound in(lab, {.workers = 2, .wait = wait});
      if (!in.relay) return;
      std::vector<Bytes> sent;
      for (uint64_t slot = kSlot; slot < kSlot + 6; slot++) {
        const auto packets = make_slot({.slot = slot, .fec_sets = 2}).packets;
        in.send_all(2, packets);
        in.send_all(3, packets);
        sent.insert(sent.end(), packets.begin(), packets.end());
      }
      CHECK(sorted(in.own.receive(sent.size())) == sorted(sent));
      CHECK(eventually([&] { return in.counter(WorkerCounter::xdp_received) == sent.size() * 2; }));
      CHECK_EQ(in.counter(WorkerCounter::received), sent.size() * 2);
    });
  }
}

// Shreds of one set by AF_XDP and by a socket at the same time: none is lost or sent twice.
TEST(relay_receive_xdp_and_sockets_work_at_once) {
  in_clone_lab([](Lab& lab) {
    Inbound in(lab, {.workers = 2});
    if (!in.relay) return;
    CloneCable other(lab, "other", 2);
    FrameSender by_other(lab, other);
    std::vector<Bytes> sent;
    uint64_t by_xdp = 0, by_socket = 0;
    for (uint64_t slot = kSlot; slot < kSlot + 8; slot++) {
      const auto packets = make_slot({.slot = slot, .fec_sets = 2}).packets;
      for (size_t i = 0; i < packets.size(); i++) {
        FrameRequest request = by_other.request(true, kRelayPort, packets[i]);
        request.from = in.frames.end(true, 3, 7000);
        if (i % 3 != 0) in.send(in.from(2, packets[i]));
        if (i % 3 != 1) by_other.send(udp_frame(request));
        by_xdp += i % 3 != 0;
        by_socket += i % 3 != 1;
      }
      sent.insert(sent.end(), packets.begin(), packets.end());
    }
    CHECK(sorted(in.own.receive(sent.size())) == sorted(sent));
    CHECK(eventually([&] { return in.counter(WorkerCounter::received) == by_xdp + by_socket; }));
    CHECK_EQ(in.counter(WorkerCounter::xdp_received), by_xdp);
  });
}

TEST(relay_receive_xdp_together_with_transmit_xdp) {
  in_clone_lab([](Lab& lab) {
    Inbound in(lab, {.transmit = TransmitMode::xdp});
    if (!in.relay) return;
    lead_behind_cable(lab);
    CloneReceiver receiver(lab, true);
    std::vector<DestinationEntry> entries;
    for (uint32_t i = 0; i < 10; i++)
      entries.push_back({behind_cable(true, i, receiver.port()), 1, i});
    publish_to(*in.relay, &Relay::publish_fanout, fanout_table(entries));
    CHECK(eventually([&] { return in.counter(WorkerCounter::cloned_destinations) == 10; }));
    std::map<std::string, std::vector<Bytes>> arrived;
    std::vector<Bytes> sent;
    for (uint64_t slot = kSlot; slot < kSlot + 60; slot++) {
      const auto packets = make_slot({.slot = slot, .fec_sets = 3}).packets;
      in.send_all(2, packets);
      for (CloneArrival& arrival : receiver.read(packets.size() * entries.size()))
        arrived[to_string(arrival.to)].push_back(std::move(arrival.bytes));
      sent.insert(sent.end(), packets.begin(), packets.end());
    }
    CHECK(sent.size() > kXdpReceiveFrames);
    CHECK_EQ(arrived.size(), entries.size());
    for (const auto& [destination, packets] : arrived) CHECK(packets == sent);
    CHECK(eventually([&] { return in.counter(WorkerCounter::xdp_received) == sent.size(); }));
    CHECK_EQ(in.counter(WorkerCounter::receive_drops), 0u);
    CHECK_EQ(in.counter(WorkerCounter::clone_fallbacks), 0u);
  });
}

TEST(relay_receive_xdp_goes_on_by_socket_after_its_interface_was_removed) {
  in_clone_lab([](Lab& lab) {
    Inbound in(lab, {});
    if (!in.relay) return;
    const Peer source("127.0.0.11");
    publish_to(*in.relay, &Relay::publish_sources, source_table({{"127.0.0.11", 32, 0, 0}}));
    lab.ip("link del cable\n");
    CHECK(in.relay->update_receiving()[0].find("cable: it was removed") != std::string::npos);
    const auto packets = make_slot({.slot = kSlot, .fec_sets = 1}).packets;
    for (const Bytes& packet : packets) source.send(ipv4(127, 0, 0, 1, kRelayPort), packet);
    CHECK(sorted(in.own.receive(packets.size())) == sorted(packets));
  });
}

TEST(relay_receive_xdp_that_the_machine_refuses_is_an_error) {
  in_clone_lab([](Lab&) {
    RelayOptions options;
    options.listen = {any_port(true, kRelayPort)};
    options.worker = LoopbackRelay::default_worker();
    options.receive = ReceiveMode::xdp;
    options.xdp_interfaces = {"nothing0"};
    std::string error;
    CHECK(Relay::open(options, error) == nullptr);
    CHECK(error.find("cannot receive by AF_XDP: interface nothing0: if_nametoindex") !=
          std::string::npos);
  });
}

}  // namespace
}  // namespace shredway::test
