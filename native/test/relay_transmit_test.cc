// The relay's transmit modes, from the source's shred to the destinations' sockets. In every mode
// each destination gets each shred once, with the same bytes and header fields, and its counters
// match.
#include "transmit_support.h"

namespace shredway::test {

TEST(transmit_both_modes_deliver_the_same_bytes_headers_and_counts) {
  for (const TransmitMode way : {TransmitMode::socket, TransmitMode::clone}) {
    in_clone_lab([&](Lab& lab) {
      Outbound out(lab, way);
      CHECK_EQ(out.relay->transmit_refusal(), std::string());
      CHECK(out.relay->transmit_in_use() == way);
      const auto entries = out.destinations(20);
      out.publish(&Relay::publish_fanout, fanout_table(entries));
      const bool clones = way == TransmitMode::clone;
      CHECK(out.wait_cloned(clones ? 40 : 0));
      for (const bool offload : {true, false}) {
        out.cable.set_offload(offload, offload);
        deliver_and_count(out, entries, kSlot + offload, offload ? 0 : 128);
      }
      CHECK_EQ(out.own.receive(256).size(), 256u);
      CHECK_EQ(out.hops(NextHopState::local), clones ? 1u : 0u);
      CHECK_EQ(out.hops(NextHopState::resolved), clones ? 40u : 0u);
      CHECK_EQ(out.counter(WorkerCounter::clone_triggers) > 0, clones);
      CHECK_EQ(out.counter(WorkerCounter::clone_fallbacks), 0u);
      CHECK_EQ(out.relay->transmit_interface().empty(), !clones);
    });
  }
}

// Half of a set recovers the other half for the destinations that want it, before it arrives; they
// do not get it again. The other destinations get it when it arrives.
TEST(transmit_sends_recovered_shreds_where_wanted_and_counts_them_apart) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    auto packets = make_slot({.slot = kSlot}).packets;
    std::rotate(packets.begin(), packets.begin() + 16, packets.end());  // some data, some code
    const auto middle = packets.begin() + 32;
    std::vector<DestinationEntry> wanting, others;
    for (const DestinationEntry& entry : entries)
      (entry.wants_recovered ? wanting : others).push_back(entry);
    const auto all_of = [&](bool is_ipv4) {
      Seen all = expected(wanting, is_ipv4, packets);
      const Seen half = expected(others, is_ipv4, {packets.begin(), middle});
      all.insert(all.end(), half.begin(), half.end());
      std::sort(all.begin(), all.end());
      return all;
    };
    out.send({packets.begin(), middle});
    CHECK(seen(out.ipv4.read(10 * 64 + 10 * 32)) == all_of(true));
    CHECK(seen(out.ipv6.read(10 * 64 + 10 * 32)) == all_of(false));
    out.send({middle, packets.end()});
    CHECK(seen(out.ipv4.read(10 * 32)) == expected(others, true, {middle, packets.end()}));
    CHECK(seen(out.ipv6.read(10 * 32)) == expected(others, false, {middle, packets.end()}));
    for (const DestinationEntry& entry : entries) {
      CHECK(
          Outbound::wait([&] { return out.sent(entry.id) == (entry.wants_recovered ? 32 : 64); }));
      CHECK_EQ(out.recovered_sent(entry.id), entry.wants_recovered ? 32u : 0u);
    }
  });
}

TEST(transmit_sends_to_few_destinations_by_socket) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    auto entries = out.destinations(4);  // two of each family and tier
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(Outbound::wait([&] { return out.hops(NextHopState::resolved) == 8; }));
    deliver_and_count(out, entries, kSlot);
    CHECK_EQ(out.counter(WorkerCounter::clone_triggers), 0u);
    CHECK(out.wait_cloned(0));
  });
}

TEST(transmit_continues_by_socket_after_the_trigger_interface_is_deleted) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    deliver_and_count(out, entries, kSlot);
    const uint64_t triggers = out.counter(WorkerCounter::clone_triggers);
    lab.ip("link del " + out.relay->transmit_interface() + "\n");
    deliver_and_count(out, entries, kSlot + 1, 128);
    // Only those of the first flush; afterwards everything goes by socket.
    CHECK(Outbound::wait([&] { return out.counter(WorkerCounter::clone_fallbacks) > 0; }));
    CHECK(out.wait_cloned(0));
    CHECK_EQ(out.counter(WorkerCounter::clone_triggers), triggers);
  });
}

TEST(transmit_clones_ipv4_while_the_kernel_refuses_ipv6_and_retries) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    deliver_and_count(out, entries, kSlot);
    const std::string device = out.relay->transmit_interface();
    lab.ip("addr del fe80::1/64 dev " + device + "\n");  // as a network manager may do
    deliver_and_count(out, entries, kSlot + 1, 128);
    CHECK(out.wait_cloned(20));
    CHECK(Outbound::wait([&] { return out.counter(WorkerCounter::clone_refusals) == 1; }));
    const uint64_t triggers = out.counter(WorkerCounter::clone_triggers);
    deliver_and_count(out, entries, kSlot + 2, 256);
    CHECK(Outbound::wait([&] { return out.counter(WorkerCounter::clone_triggers) > triggers; }));
    lab.ip("addr add fe80::1/64 dev " + device + " nodad\n");
    out.publish(&Relay::publish_fanout, fanout_table(entries));  // retried with the next table
    CHECK(out.wait_cloned(40));
    deliver_and_count(out, entries, kSlot + 3, 384);
    CHECK(out.wait_cloned(40));
    CHECK_EQ(out.counter(WorkerCounter::clone_refusals), 1u);
  });
}

TEST(transmit_follows_changes_of_neighbour_route_and_link) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    change_neighbours_and_routes(out, 40);
  });
}

// Destinations that stay in every table get each shred once, whatever else changes.
TEST(transmit_tables_swapped_under_load_lose_and_repeat_nothing) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    const auto stay = out.destinations(16);
    CloneReceiver strangers(lab, true);
    std::vector<DestinationEntry> all = stay;
    for (uint32_t i = 0; i < 16; i++)
      all.push_back({behind_cable(true, 100 + i, strangers.port()), 0, out.ids++});
    out.publish(&Relay::publish_fanout, fanout_table(all));
    CHECK(out.wait_cloned(48));
    std::atomic<bool> done{false};
    std::atomic<uint64_t> tables{0};
    std::thread publisher([&] {
      std::mt19937 random(1);
      while (!done) {
        auto some = stay;
        std::copy_if(all.begin() + long(stay.size()), all.end(), std::back_inserter(some),
                     [&](const DestinationEntry&) { return random() % 2 == 0; });
        std::shuffle(some.begin(), some.end(), random);
        out.publish(&Relay::publish_fanout, fanout_table(some));
        tables++;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    std::vector<Bytes> packets;
    for (uint64_t slot = kSlot; slot < kSlot + 10; slot++) {
      const auto more = make_slot({.slot = slot, .fec_sets = 2}).packets;
      out.send(more);
      packets.insert(packets.end(), more.begin(), more.end());
      // At least one table for each slot, however busy the machine is.
      CHECK(Outbound::wait([&] {
        return out.counter(WorkerCounter::received) == packets.size() && tables > slot - kSlot + 1;
      }));
    }
    done = true;
    publisher.join();
    CHECK(seen(out.ipv4.read(packets.size() * 16)) == expected(stay, true, packets));
    CHECK(seen(out.ipv6.read(packets.size() * 16)) == expected(stay, false, packets));
    CHECK(tables > 10);
    for (const DestinationEntry& entry : stay)
      CHECK(Outbound::wait([&] { return out.sent(entry.id) == packets.size(); }));
    CHECK(out.counter(WorkerCounter::clone_triggers) > 0);
    CHECK_EQ(out.counter(WorkerCounter::clone_fallbacks), 0u);
  });
}

TEST(transmit_two_workers_clone_side_by_side) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone, 2);
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    const auto packets = make_slot({.slot = kSlot, .fec_sets = 8}).packets;
    out.send(packets);
    CHECK_EQ(out.ipv4.read(packets.size() * 20).size(), packets.size() * 20);
    CHECK_EQ(out.ipv6.read(packets.size() * 20).size(), packets.size() * 20);
    for (const DestinationEntry& entry : entries)
      CHECK(Outbound::wait([&] { return out.sent(entry.id) == packets.size(); }));
  });
}

// A neighbour that never answers does not affect other destinations.
TEST(transmit_sends_by_socket_only_to_a_silent_neighbour) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::clone);
    auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    const auto silent = ipv4_endpoint("10.1.200.200", 9);
    auto with_silent = entries;
    with_silent.push_back({silent, 0, out.ids++});
    out.publish(&Relay::publish_fanout, fanout_table(with_silent));
    CHECK(Outbound::wait([&] { return out.hops(NextHopState::neighbour_unknown) == 1; }));
    CHECK(out.wait_cloned(40));
    deliver_and_count(out, entries, kSlot);
    CHECK_EQ(out.counter(WorkerCounter::clone_fallbacks), 0u);
  });
}

// ---- privileges -----------------------------------------------------------------------------

TEST(transmit_without_privileges_reports_it_and_uses_sockets) {
  in_clone_lab([&](Lab& lab) {
    std::unique_ptr<Outbound> out;
    std::vector<DestinationEntry> entries;
    out = std::make_unique<Outbound>(lab, TransmitMode::socket);
    entries = out->destinations(20);
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = LoopbackRelay::default_worker();
    options.worker.ttl = kTtl;
    options.worker.dscp = kDscp;
    options.transmit = TransmitMode::clone;
    std::string error;
    std::thread without([&] {
      drop_privileges_of_this_thread();
      out->relay = Relay::open(options, error);
    });
    without.join();
    CHECK_EQ(error, std::string());
    CHECK(out->relay->transmit_in_use() == TransmitMode::socket);
    CHECK(out->relay->transmit_interface().empty());
    CHECK(out->relay->transmit_refusal().find("CAP_NET_ADMIN") != std::string::npos);
    out->publish(&Relay::publish_sources, source_table({{"127.0.0.11", 32, 0, 0}}));
    out->publish(&Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
    out->publish(&Relay::publish_fanout, fanout_table(entries));
    deliver_and_count(*out, entries, kSlot);
  });
}

TEST(transmit_drops_only_network_privileges) {
  if (!thread_has_privileges()) SKIP("needs to have capabilities");
  bool administers = true, has_others = false;
  std::thread thread([&] {
    drop_network_privileges_of_this_thread();
    const int value = 1 << 20;
    const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    administers = setsockopt(socket.fd(), SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof value) == 0;
    has_others = thread_has_privileges();
  });
  thread.join();
  CHECK(!administers);
  CHECK(has_others);
}

TEST(transmit_threads_of_the_relay_have_no_privileges) {
  LoopbackRelay relayed;
  const std::string none(16, '0');
  CHECK(Outbound::wait([&] {  // workers drop it first of all
    std::map<std::string, std::string> permitted;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream status(task.path() / "status");
      std::string name;
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("Name:\t")) name = line.substr(6);
        if (line.starts_with("CapPrm:\t")) permitted[name] = line.substr(8);
      }
    }
    return permitted["shredway-0"] == none && permitted["shredway-see"] == none;
  }));
}

// ---- options --------------------------------------------------------------------------------

TEST(transmit_options_out_of_range_are_refused) {
  for (const auto& [ttl, dscp] : std::vector<std::pair<uint8_t, uint8_t>>{{0, 0}, {64, 64}}) {
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = LoopbackRelay::default_worker();
    options.worker.ttl = ttl;
    options.worker.dscp = dscp;
    std::string error;
    CHECK(Relay::open(options, error) == nullptr);
    CHECK(error.find(ttl ? "expected a DSCP from 0 to 63, got 64"
                         : "expected a TTL from 1 to 255, got 0") != std::string::npos);
  }
}

}  // namespace shredway::test
