// Replayed shreds against the slot window of a running relay.
#include <algorithm>

#include "loopback_relay.h"

using namespace shredway;
using namespace shredway::test;

namespace {

constexpr uint64_t kOldSlot = 5000;
constexpr uint64_t kLiveSlot = 9000;
constexpr uint32_t kSlotsPerLeader = 4;

// Leaders 1 to 3 take turns of four slots, from slot 4000 on.
Bytes leaders_in_turn() {
  Bytes bytes = {'S', 'W', 'L', '1'};
  constexpr uint32_t kSlots = 8000;
  append(bytes, uint32_t{3});
  append(bytes, uint64_t{4000});
  append(bytes, kSlots);
  for (const uint8_t seed : Bytes{1, 2, 3}) {
    const PublicKey key = leader_key(seed);
    bytes.insert(bytes.end(), key.begin(), key.end());
  }
  for (uint32_t slot = 0; slot < kSlots; slot++) append(bytes, slot / kSlotsPerLeader % 3);
  return bytes;
}

std::vector<Bytes> packets_of(uint64_t slot) {
  const auto leader = static_cast<uint8_t>(1 + (slot - 4000) / kSlotsPerLeader % 3);
  return make_slot({.slot = slot, .leader_seed = leader}).packets;
}

// Bounds around `slot` that hold for the next seconds.
void set_bounds(LoopbackRelay& relayed, uint64_t slot, bool confirmed) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const auto now_ns = static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u;
  relayed.relay->set_slot_bounds(slot - 512, slot + 32, confirmed, now_ns + 4'500'000'000u);
}

}  // namespace

TEST(window_attacks_live_shreds_get_through_although_replayed_ones_came_first) {
  LoopbackRelay relayed;
  relayed.publish(&Relay::publish_leaders, leaders_in_turn());
  const auto old = packets_of(kOldSlot);
  uint64_t sent = 0;
  for (size_t i = 0; i < 40; i++, sent++) relayed.tier1_source.send(relayed.in(), old[i]);
  CHECK_EQ(relayed.counts(sent).verdicts.at("first"), 40u);  // the window is in the past
  // Three live slots of each of several leaders, at the pace of a network; meanwhile a replayed
  // shred from time to time, so that the window is never silent.
  size_t next_old = 40;
  uint64_t delivered = 0;
  for (uint64_t slot = kLiveSlot; slot < kLiveSlot + 60 && delivered == 0; slot++) {
    for (const Bytes& packet : packets_of(slot)) {
      relayed.tier1_source.send(relayed.in(), packet);
      sent++;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    if (next_old < old.size()) {
      relayed.tier1_source.send(relayed.in(), old[next_old++]);
      sent++;
    }
    const auto counts = relayed.counts(sent);
    delivered = counts.verdicts.at("first") - 40;
    const auto behind = counts.verdicts.find("slot_behind");
    if (behind == counts.verdicts.end()) delivered = 0;  // the first ones are replayed shreds
  }
  CHECK(delivered > 0);
  const auto live = packets_of(kLiveSlot + 61);
  const uint64_t before = relayed.counts(sent).verdicts.at("first");
  for (const Bytes& packet : live) relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(sent + live.size()).verdicts.at("first"), before + live.size());
}

TEST(window_attacks_two_replayed_shreds_with_one_place_are_sent_once) {
  LoopbackRelay relayed;
  const Bytes lower = make_slot({.slot = kSlot}).packets[0];
  const Bytes higher = make_slot({.slot = kSlot + SlotWindow::kSlots}).packets[0];
  for (int i = 0; i < 1000; i++) {
    relayed.tier1_source.send(relayed.in(), lower);
    relayed.tier1_source.send(relayed.in(), higher);
  }
  CHECK_EQ(relayed.tier1.receive(2).size(), 2u);
  const auto counts = relayed.counts(2000);
  CHECK_EQ(counts.verdicts.at("first"), 2u);
  CHECK_EQ(relayed.tier1.receive(2).size(), 2u);
}

TEST(window_attacks_bounds_of_a_trusted_clock_remove_a_wrong_anchor) {
  LoopbackRelay relayed;
  relayed.publish(&Relay::publish_leaders, leaders_in_turn());
  for (const Bytes& packet : packets_of(kOldSlot)) relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(64).verdicts.at("first"), 64u);
  set_bounds(relayed, kLiveSlot, true);
  for (const Bytes& packet : packets_of(kLiveSlot)) relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(128).verdicts.at("first"), 128u);
}

// A clock without a node may follow a recording, and a node may be frozen.
TEST(window_attacks_several_leaders_overrule_bounds_that_are_not_confirmed) {
  for (const bool confirmed : {false, true}) {
    LoopbackRelay relayed;
    relayed.publish(&Relay::publish_leaders, leaders_in_turn());
    uint64_t sent = 0;
    for (uint64_t slot = kLiveSlot; slot < kLiveSlot + 12; slot++) {
      const auto packets = packets_of(slot);
      for (size_t i = 0; i < 5; i++, sent++) {
        set_bounds(relayed, kOldSlot, confirmed);
        relayed.tier1_source.send(relayed.in(), packets[i]);
        std::this_thread::sleep_for(std::chrono::milliseconds(12));  // one sample each 10 ms
      }
    }
    // Replayed shreds inside the bounds are behind now.
    set_bounds(relayed, kOldSlot, confirmed);
    for (const Bytes& packet : packets_of(kOldSlot))
      relayed.tier1_source.send(relayed.in(), packet);
    for (const Bytes& packet : packets_of(kLiveSlot + 12))
      relayed.tier1_source.send(relayed.in(), packet);
    const auto verdicts = relayed.counts(sent + 128).verdicts;
    CHECK_EQ(verdicts.count("slot_behind"), confirmed ? 0u : 1u);
    CHECK_EQ(verdicts.at("first") >= 64, true);
    // Confirmed bounds that have reached the live slots decide again.
    set_bounds(relayed, kLiveSlot + 20, true);
    for (const Bytes& packet : packets_of(kLiveSlot + 20))
      relayed.tier1_source.send(relayed.in(), packet);
    CHECK_EQ(relayed.counts(sent + 192).verdicts.at("first"), verdicts.at("first") + 64);
  }
}

TEST(window_attacks_slots_before_the_floor_are_behind) {
  LoopbackRelay relayed;
  relayed.publish(&Relay::publish_leaders, leaders_in_turn());
  relayed.relay->set_slot_floor(kLiveSlot);
  for (const Bytes& packet : packets_of(kLiveSlot - 1))
    relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(64).verdicts.at("slot_behind"), 64u);
  for (const Bytes& packet : packets_of(kLiveSlot)) relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(128).verdicts.at("first"), 64u);
  relayed.relay->set_slot_floor(0);
  for (const Bytes& packet : packets_of(kLiveSlot - 1))
    relayed.tier1_source.send(relayed.in(), packet);
  CHECK_EQ(relayed.counts(192).verdicts.at("first"), 128u);
}
