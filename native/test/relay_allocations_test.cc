// Checks that a running worker's thread never allocates: for packets, destinations and table swaps,
// by socket and by clone.
#include <algorithm>

#include "allocations.h"
#include "clone_support.h"
#include "loopback_relay.h"

namespace shredway::test {
namespace {

// Waits, bounded, until the worker has counted `received` packets.
bool wait_received(const LoopbackRelay& relayed, uint64_t received) {
  return relayed.counts(received).received >= received;
}

}  // namespace

TEST(allocations_of_a_worker_are_counted) {
  struct Allocating {
    std::unique_ptr<int> made;
    void run() { made = std::make_unique<int>(1); }
  };
  for (const auto& [name, counted] : {std::pair{"shredway-7", true}, {"shredway-see", false}}) {
    Allocating body;
    const WorkerAllocations allocations;
    // The thread names itself: a name set from outside may come after the allocation.
    std::thread thread([&body, name = name] {
      pthread_setname_np(pthread_self(), name);
      body.run();
    });
    thread.join();
    CHECK_EQ(allocations.count() > 0, counted);
  }
}

TEST(worker_allocates_nothing_for_packets_and_table_swaps) {
  LoopbackRelay relayed;
  std::vector<Bytes> tables;
  std::vector<std::unique_ptr<Peer>> peers;
  for (const uint32_t count : {0u, 30u, 500u}) {
    std::vector<DestinationEntry> entries = {{relayed.tier1.endpoint(), 0, 0},
                                             {relayed.tier2.endpoint(), 1, 1}};
    for (uint32_t i = 0; i < count; i++)
      // Not an address of the peers, whose ports the kernel chooses.
      entries.push_back({ipv4_endpoint("127.0.0.99", static_cast<uint16_t>(40'000 + i)),
                         static_cast<uint8_t>(i % 2), 2 + i, i % 3 == 0});
    tables.push_back(fanout_table(entries));
  }
  const Bytes sources = source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.12", 32, 1, 1}});
  const Bytes leaders = leader_table(leader_key(1), kSlot - 100, 10'000);
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 6});

  const WorkerAllocations allocations;
  uint64_t received = 0;
  for (size_t i = 0; i < slot.packets.size(); i += 16) {
    relayed.publish(&Relay::publish_fanout, tables[i / 16 % tables.size()]);
    relayed.publish(&Relay::publish_sources, sources);
    relayed.publish(&Relay::publish_leaders, leaders);
    for (size_t at = i; at < i + 16; at++) {
      relayed.tier2_source.send(relayed.in(), slot.packets[at]);
      relayed.tier1_source.send(relayed.in(), slot.packets[at]);  // a new tier and a lead time
      relayed.stranger.send(relayed.in(), slot.packets[at]);
    }
    received += 3 * 16;
    CHECK(wait_received(relayed, received));
  }
  CHECK_EQ(relayed.tier1.receive(slot.packets.size()).size(), slot.packets.size());
  CHECK_EQ(relayed.tier2.receive(slot.packets.size()).size(), slot.packets.size());
  CHECK_EQ(allocations.count(), 0u);
}

// The largest table, with next hops that appear and disappear.
TEST(worker_allocates_nothing_when_clone_lists_are_swapped) {
  in_clone_lab([&](Lab& lab) {
    CloneCable cable(lab, "cable", 1);
    lead_behind_cable(lab);
    const CloneReceiver receiver(lab, true);
    const auto relay = open_cloning_relay();
    if (!relay) return;
    const SnapshotLayout layout = relay->layout(1, 1);
    const auto wait_cloned = [&](uint64_t count) {
      std::vector<uint64_t> words(layout.words);
      for (int i = 0; i < 3000; i++) {
        relay->snapshot(layout, words.data());
        if (words[size_t(WorkerCounter::cloned_destinations)] == count) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      return false;
    };
    const WorkerAllocations allocations;
    for (const uint32_t count : {4u, 4000u, 0u, 100u}) {
      std::vector<DestinationEntry> entries;
      for (uint32_t i = 0; i < count; i++)
        entries.push_back({behind_cable(true, i, receiver.port()), 0, i});
      const Bytes table = fanout_table(entries);
      CHECK_EQ(relay->publish_fanout(table.data(), table.size()), std::string());
      CHECK(wait_cloned(count));
    }
    CHECK_EQ(allocations.count(), 0u);
  });
}

}  // namespace shredway::test
