// The automatic transmit mode: when it clones, when it uses sockets, and the switch under load.
#include "transmit_support.h"

namespace shredway::test {

// Both modes send in the order of arrival, and a worker switches between two batches.
TEST(transmit_switched_under_load_keeps_the_order_of_every_destination) {
  in_clone_lab([&](Lab& lab) {
    // A veth queues for the CPU that sends: a worker on one CPU keeps the order.
    Outbound out(lab, TransmitMode::automatic, 1, {0});
    const std::string policy = " dir out src 10.9.0.0/16 dst 10.8.0.0/16\n";
    check_order_while_switching(out, [&] {
      lab.ip("xfrm policy add" + policy);
      CHECK(out.wait_cloned(0));
      lab.ip("xfrm policy delete" + policy);
      CHECK(out.wait_cloned(40));
    });
    CHECK(out.counter(WorkerCounter::clone_triggers) > 0);
    CHECK_EQ(out.counter(WorkerCounter::clone_fallbacks), 0u);
  });
}

TEST(transmit_automatic_mode_uses_sockets_for_the_first_shreds_and_lossy_interfaces) {
  in_clone_lab([&](Lab& lab) {
    Outbound out(lab, TransmitMode::automatic);
    CHECK(out.relay->transmit_in_use() == TransmitMode::clone);
    lab.ip("neigh del 10.1.0.2 dev cable\nneigh del fd00:1::2 dev cable\n");
    const auto entries = out.destinations(20);
    out.publish(&Relay::publish_fanout, fanout_table(entries));
    CHECK(Outbound::wait([&] { return out.hops(NextHopState::neighbour_unknown) == 40; }));
    deliver_and_count(out, entries, kSlot);  // which makes the kernel ask for the neighbours
    CHECK(Outbound::wait([&] { return out.hops(NextHopState::resolved) >= 38; }));
    deliver_and_count(out, entries, kSlot + 1, 128);
    CHECK(out.counter(WorkerCounter::clone_triggers) > 0);
    const uint64_t triggers = out.counter(WorkerCounter::clone_triggers);
    out.cable.set_offload(false, true);
    CHECK(Outbound::wait([&] { return out.hops(NextHopState::queue_lossy) == 40; }));
    CHECK(out.wait_cloned(0));
    deliver_and_count(out, entries, kSlot + 2, 256);
    CHECK_EQ(out.counter(WorkerCounter::clone_triggers), triggers);
  });
}

TEST(transmit_automatic_mode_names_the_rules_that_clones_would_bypass) {
  in_clone_lab([&](Lab& lab) {
    lab.ip("xfrm policy add dir out src 10.9.0.0/16 dst 10.8.0.0/16\n");
    Outbound automatic(lab, TransmitMode::automatic);
    CHECK(automatic.relay->transmit_in_use() == TransmitMode::socket);
    CHECK(automatic.relay->transmit_refusal().find("IPsec policies") != std::string::npos);
    const auto entries = automatic.destinations(20);
    automatic.publish(&Relay::publish_fanout, fanout_table(entries));
    deliver_and_count(automatic, entries, kSlot);
  });
}

}  // namespace shredway::test
