// The transmit mode xdp of a relay, from the source's shred to the destinations' sockets: the same
// datagrams and counts as by socket, also while routes and neighbours change.
#include "transmit_support.h"

namespace shredway::test {

TEST(transmit_xdp_delivers_the_same_bytes_headers_and_counts) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::xdp);
    CHECK(out.relay->transmit_in_use() == TransmitMode::xdp);
    CHECK_EQ(out.relay->transmit_interface(), std::string("cable (copies)"));
    CHECK_EQ(out.relay->sender_threads(), 0u);
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    deliver_and_count(out, entries, kSlot);
    deliver_and_count(out, entries, kSlot + 1, 128);
    CHECK_EQ(out.own.receive(256).size(), 256u);
    CHECK_EQ(out.hops(NextHopState::local), 1u);
    CHECK_EQ(out.counter(WorkerCounter::clone_fallbacks), 0u);
  });
}

TEST(transmit_xdp_sends_to_a_single_destination_and_other_interfaces_by_socket) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::xdp);
    CloneCable other(lab, "other", 2);
    lab.ip(
        "neigh replace 10.2.0.2 lladdr 02:00:00:00:01:02 dev other nud permanent\n"
        "route add 10.77.0.1/32 via 10.2.0.2\n");
    const auto entries = out.destinations(2);  // 10.77.0.0 and .1, and two of IPv6
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(3));
    const auto packets = make_slot({.slot = kSlot, .fec_sets = 2}).packets;
    out.send(packets);
    CHECK_EQ(out.ipv4.read(packets.size() * 2).size(), packets.size() * 2);
    CHECK_EQ(out.ipv6.read(packets.size() * 2).size(), packets.size() * 2);
    for (const DestinationEntry& entry : entries)
      CHECK(Outbound::wait([&] { return out.sent(entry.id) == packets.size(); }));
  });
}

TEST(transmit_xdp_follows_changes_of_neighbour_route_and_link) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::xdp);
    change_neighbours_and_routes(out, 0);  // no AF_XDP on the other cable
  });
}

// A route with a small MTU makes the worker use sockets, which ignore it, between two batches.
TEST(transmit_xdp_switched_under_load_keeps_the_order_of_every_destination) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::xdp, 1, {0});  // a veth queues for the CPU that sends
    check_order_while_switching(out, [&] {
      lab.ip("route replace 10.77.0.0/16 via 10.1.0.2 mtu 600\n");
      CHECK(out.wait_cloned(20));
      lab.ip("route replace 10.77.0.0/16 via 10.1.0.2\n");
      CHECK(out.wait_cloned(40));
    });
  });
}

TEST(transmit_xdp_recovers_after_its_interface_was_down) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::xdp);
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(out.wait_cloned(40));
    lab.ip("link set cable down\n");
    CHECK(out.wait_cloned(0));
    out.send(make_slot({.slot = kSlot, .fec_sets = 1}).packets);  // fails: there is no route
    CHECK(Outbound::wait([&] { return out.failed(entries[0].id) == 64; }));
    out.restore_cable("02:00:00:00:01:01");
    CHECK(out.wait_cloned(40));
    const auto packets = make_slot({.slot = kSlot + 1, .fec_sets = 2}).packets;
    out.send(packets);
    CHECK(seen(out.ipv4.read(packets.size() * 20)) == expected(entries, true, packets));
    CHECK(seen(out.ipv6.read(packets.size() * 20)) == expected(entries, false, packets));
  });
}

TEST(transmit_xdp_that_the_machine_refuses_is_an_error) {
  in_clone_lab([&](Lab& lab) {
    const CloneCable cable(lab, "cable", 1);
    RelayOptions options;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = LoopbackRelay::default_worker();
    options.transmit = TransmitMode::xdp;
    const auto refusal = [&] {
      std::string error;
      CHECK(Relay::open(options, error) == nullptr);
      return error;
    };
    CHECK(refusal().find("at least one interface") != std::string::npos);
    options.xdp_interfaces = {"nothing0"};
    CHECK(refusal().find("cannot send by AF_XDP: interface nothing0") != std::string::npos);
    options.xdp_interfaces = {"cable"};
    std::thread([&] {
      drop_privileges_of_this_thread();
      CHECK(refusal().find("grant CAP_NET_RAW") != std::string::npos);
    }).join();
    std::string error;
    CHECK(Relay::open(options, error) != nullptr);
    CHECK_EQ(error, std::string());
  });
}

}  // namespace shredway::test
