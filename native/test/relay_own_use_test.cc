// Sources for own use: their shreds are decoded, compared and counted, and never leave. What leaves
// is the same as without them, except where all sources share a place: tested with random
// interleavings of sources, tiers, roots, signatures and recovered shreds.
#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "clone_support.h"
#include "deshred_support.h"
#include "loopback_relay.h"
#include "recent_shreds_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

constexpr TierMask kOwnUse = 0;

// The specification with containers: who has brought an identity under which root.
struct OwnUseModel {
  struct Seen {
    bool arrived = false;
    TierMask served = 0;
  };
  std::map<std::tuple<uint64_t, uint32_t, uint8_t>, std::map<uint32_t, Seen>> identities;

  RecentShreds::Outcome record(const Shred& shred, uint32_t root, TierMask tiers) {
    auto& roots = identities[{shred.slot, shred.fec_set_index, shred.leaf}];
    const bool own_use = tiers == kOwnUse;
    uint32_t others_arrived = 0;
    uint32_t others_served = 0;
    for (const auto& [number, seen] : roots) {
      if (number == root) continue;
      others_arrived += seen.arrived;
      others_served += seen.served != 0;
    }
    Seen seen = roots[root];
    const bool known = own_use ? seen.arrived : seen.served != 0;
    if (!known && (own_use ? others_arrived : others_served) >= 2)
      return {Verdict::equivocation_excess, 0};
    RecentShreds::Outcome outcome{Verdict::duplicate, static_cast<TierMask>(tiers & ~seen.served)};
    if (known && outcome.tiers == 0) return outcome;
    if (own_use) outcome.verdict = Verdict::own_use;
    else if (known) outcome.verdict = Verdict::new_tier;
    else if (seen.arrived) outcome.verdict = Verdict::first_forwardable;
    else outcome.verdict = others_arrived ? Verdict::equivocation : Verdict::first;
    outcome.is_new = !seen.arrived && others_arrived == 0;
    outcome.is_equivocation = !seen.arrived && others_arrived != 0;
    outcome.is_new_forwardable = !own_use && !known && others_served == 0;
    roots[root] = {true, static_cast<TierMask>(seen.served | tiers)};
    return outcome;
  }
};

template <typename Source>
TierMask random_tiers(Source& random, uint32_t tiers) {
  const auto tier = static_cast<uint32_t>(random() % (tiers + 1));
  return tier == tiers ? kOwnUse : static_cast<TierMask>((1u << tiers) - (1u << tier));
}

}  // namespace

TEST(recent_shreds_with_own_use_match_the_model) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    std::mt19937_64 random(seed);
    const auto recent = RecentShreds::create(false);
    OwnUseModel model;
    for (int i = 0; i < 60'000; i++) {
      const Shred shred = shred_of(1'000'000 + random() % 20, static_cast<uint32_t>(random() % 4),
                                   static_cast<uint8_t>(random() % 64));
      const uint32_t root = random() % 4 ? 1 : 1 + static_cast<uint32_t>(random() % 3);
      const TierMask tiers = random_tiers(random, 1 + static_cast<uint32_t>(seed % 3));
      const auto expected = model.record(shred, root, tiers);
      const auto actual = recent->record(shred, signature_of(root).data(), root_of(root),
                                         {tiers, static_cast<uint16_t>(tiers), 0});
      CHECK_EQ(verdict_name(actual.verdict), std::string(verdict_name(expected.verdict)));
      CHECK_EQ(actual.tiers, expected.tiers);
      CHECK_EQ(actual.is_new, expected.is_new);
      CHECK_EQ(actual.is_new_forwardable, expected.is_new_forwardable);
      CHECK_EQ(actual.is_equivocation, expected.is_equivocation);
      if (tiers == kOwnUse) CHECK_EQ(actual.tiers, 0u);
    }
  }
}

// The same history with and without the sources for own use.
TEST(recent_shreds_for_own_use_change_nothing_that_leaves) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    std::mt19937_64 random(seed);
    const auto mixed = RecentShreds::create(false);
    const auto alone = RecentShreds::create(false);
    for (int i = 0; i < 60'000; i++) {
      const Shred shred = shred_of(1'000'000 + random() % 20, static_cast<uint32_t>(random() % 4),
                                   static_cast<uint8_t>(random() % 64));
      const uint32_t root = random() % 4 ? 1 : 1 + static_cast<uint32_t>(random() % 4);
      const TierMask tiers = random_tiers(random, 3);
      // Sources for own use bring another valid signature over the same root.
      const Signature signature = signature_of(root, tiers == kOwnUse);
      const auto record = [&](RecentShreds& into) {
        return into.record(shred, signature.data(), root_of(root), {tiers, 0, 0});
      };
      const auto actual = record(*mixed);
      if (tiers == kOwnUse) {
        CHECK_EQ(actual.tiers, 0u);
        continue;
      }
      const auto expected = record(*alone);
      CHECK_EQ(actual.tiers, expected.tiers);
      CHECK_EQ(actual.is_new_forwardable, expected.is_new_forwardable);
      CHECK_EQ(mixed->root_count(shred, tiers), alone->root_count(shred, tiers));
      // The signature that would replace another one comes from a source that is forwarded.
      if (!actual.tiers) continue;
      const FecSetRecord* known = mixed->find_root(shred, root_of(root));
      CHECK(known && known->forwardable && known->signature[16] == 0);
    }
  }
}

// The exceptions: places that all sources share.
TEST(recent_shreds_for_own_use_share_slots_and_further_roots) {
  const auto recent = RecentShreds::create(false);
  const auto record = [&](const Shred& shred, uint32_t root, TierMask tiers) {
    return recent->record(shred, signature_of(root).data(), root_of(root), {tiers, 0, 0}).verdict;
  };
  constexpr uint64_t kFirst = 1'000'000;
  CHECK_EQ(record(shred_of(kFirst + SlotWindow::kSlots, 0, 0), 1, kOwnUse), Verdict::own_use);
  CHECK_EQ(record(shred_of(kFirst, 0, 0), 1, 1), Verdict::slot_behind);
  for (uint32_t set = 0; set < RecentShreds::kExtraRoots; set++)
    for (const uint32_t root : {1u, 2u})
      CHECK_EQ(record(shred_of(kFirst + 1, set, 0), root, kOwnUse), Verdict::own_use);
  const Shred shred = shred_of(kFirst + 2, 0, 0);
  CHECK_EQ(record(shred, 1, 1), Verdict::first);
  CHECK_EQ(record(shred, 2, 1), Verdict::equivocation_excess);
}

// ---- the relay over sockets --------------------------------------------------------------------

namespace {

// Tier 0 and 1 sources, one source for own use, and for each tier one destination that wants
// recovered shreds and one that does not.
struct OwnUseRelay : LoopbackRelay {
  Peer own_source{"127.0.0.14"};
  Peer recovered1, recovered2;
  explicit OwnUseRelay(const WorkerOptions& worker = default_worker()) : LoopbackRelay(worker) {
    publish(&Relay::publish_sources, source_table({{"127.0.0.11", 32, 0, 0},
                                                   {"127.0.0.12", 32, 1, 1},
                                                   {"127.0.0.14", 32, 0, 2, 0, true}}));
    publish(&Relay::publish_fanout, fanout_table({{tier1.endpoint(), 0, 0},
                                                  {tier2.endpoint(), 1, 1},
                                                  {recovered1.endpoint(), 0, 2, true},
                                                  {recovered2.endpoint(), 1, 3, true}}));
    publish(&Relay::publish_leaders, leader_table(batched_slot_leader(), kSlot - 100, 10'000));
  }
  std::map<std::string, uint64_t> wait(uint64_t received) const {
    const SnapshotLayout layout = relay->layout(3, 4);
    std::vector<uint64_t> words(layout.words);
    std::map<std::string, uint64_t> verdicts;
    CHECK(eventually([&] {
      relay->snapshot(layout, words.data());
      verdicts = verdict_sums(layout, words, 3);
      return sum_of(verdicts) >= received;
    }));
    return verdicts;
  }
  uint64_t deshred_counter(DeshredCounter which) const {
    return relay->deshred()->counters().counters[static_cast<size_t>(which)].get();
  }
  uint64_t recovered_sent(size_t destination) const {
    const SnapshotLayout layout = relay->layout(3, 4);
    std::vector<uint64_t> words(layout.words);
    relay->snapshot(layout, words.data());
    return words[layout.destinations_begin + destination * layout.kDestinationWords + 2 +
                 kSendFailureCount];
  }
};

std::multiset<Bytes> all_of(const std::vector<Bytes>& packets) {
  return {packets.begin(), packets.end()};
}

// The shreds that forwarded sources delivered, by tier.
struct Delivered {
  std::array<std::set<size_t>, 2> by_tier;  // indexes of packets
  void add(size_t packet, uint32_t tier) {
    for (; tier < 2; tier++) by_tier[tier].insert(packet);
  }
  size_t of_set(uint32_t tier, size_t set) const {
    return static_cast<size_t>(std::count_if(by_tier[tier].begin(), by_tier[tier].end(),
                                             [&](size_t packet) { return packet / 64 == set; }));
  }
};

void check_destination(Peer& plain, Peer& recovered, const std::vector<Bytes>& packets,
                       const Delivered& delivered, uint32_t tier) {
  std::multiset<Bytes> expected;
  for (const size_t packet : delivered.by_tier[tier]) expected.insert(packets[packet]);
  CHECK(all_of(plain.receive(expected.size())) == expected);
  // The widest tier gets every shred that its own shreds suffice to recover. A narrower tier gets
  // recovered shreds only if its own shreds sufficed at the time of the recovery.
  std::multiset<Bytes> least = expected;
  std::multiset<Bytes> most = expected;
  for (size_t set = 0; set < packets.size() / 64; set++) {
    if (delivered.of_set(tier, set) < 32) continue;
    for (size_t i = set * 64; i < set * 64 + 64; i++) {
      if (delivered.by_tier[tier].count(i)) continue;
      most.insert(packets[i]);
      if (tier == 1) least.insert(packets[i]);
    }
  }
  const std::multiset<Bytes> actual = all_of(recovered.receive(least.size()));
  CHECK(std::includes(actual.begin(), actual.end(), least.begin(), least.end()));
  CHECK(std::includes(most.begin(), most.end(), actual.begin(), actual.end()));
}

}  // namespace

TEST(relay_sends_nothing_that_only_a_source_for_own_use_delivered) {
  std::mt19937 random(1);
  const BatchedSlot slot = make_batched_slot(kSlot, {30, 300}, random);
  OwnUseRelay net;
  for (const Bytes& packet : slot.packets) net.own_source.send(net.in(), packet);
  for (const Bytes& packet : slot.packets) net.own_source.send(net.in(), packet);
  const auto verdicts = net.wait(2 * slot.packets.size());
  CHECK_EQ(verdicts.at("own_use"), slot.packets.size());
  CHECK_EQ(verdicts.at("duplicate"), slot.packets.size());
  // They are decoded.
  CHECK(eventually([&] { return net.deshred_counter(DeshredCounter::transactions) == 330; }));
  for (Peer* peer : {&net.tier1, &net.tier2, &net.recovered1, &net.recovered2})
    CHECK(peer->receive(0).empty());
  // Each of them leaves when a source that is forwarded delivers it.
  for (const Bytes& packet : slot.packets) net.tier2_source.send(net.in(), packet);
  CHECK_EQ(net.wait(3 * slot.packets.size()).at("first_forwardable"), slot.packets.size());
  CHECK(all_of(net.tier2.receive(slot.packets.size())) == all_of(slot.packets));
  CHECK(net.tier1.receive(0).empty());
  CHECK_EQ(net.deshred_counter(DeshredCounter::transactions), 330u);
}

TEST(relay_sends_what_would_leave_without_the_source_for_own_use) {
  for (uint32_t seed = 1; seed <= 12; seed++) {
    std::mt19937 random(seed);
    const BatchedSlot slot = make_batched_slot(kSlot, {60, 200, 100}, random);
    WorkerOptions worker = LoopbackRelay::default_worker();
    worker.gso = seed % 2 == 0;
    OwnUseRelay net(worker);
    // The share of the shreds that each kind of source delivers, around the 32 of 64 that suffice.
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    const uint32_t narrow = below(50), wide = below(70), own = 50 + below(50);
    std::vector<std::pair<size_t, uint32_t>> arrivals;  // packet, source: tier 0, tier 1, own use
    Delivered delivered;
    for (size_t i = 0; i < slot.packets.size(); i++)
      for (uint32_t source = 0; source < 3; source++) {
        if (random() % 100 >= std::array{narrow, wide, own}[source]) continue;
        for (uint32_t copies = 1 + random() % 2; copies > 0; copies--)
          arrivals.emplace_back(i, source);
        if (source < 2) delivered.add(i, source);
      }
    std::shuffle(arrivals.begin(), arrivals.end(), random);
    if (seed % 3 == 0)  // the source for own use is the fastest
      std::stable_sort(arrivals.begin(), arrivals.end(),
                       [](const auto& a, const auto& b) { return a.second > b.second; });
    const std::array sources = {&net.tier1_source, &net.tier2_source, &net.own_source};
    for (const auto& [packet, source] : arrivals) {
      Bytes bytes = slot.packets[packet];
      // A signature that is not valid is replaced by the verified one only if a source that is
      // forwarded has delivered that; so it comes from the source for own use only.
      if (source == 2 && random() % 4 == 0) bytes[5] ^= 1;
      sources[source]->send(net.in(), bytes);
    }
    net.wait(arrivals.size());
    check_destination(net.tier1, net.recovered1, slot.packets, delivered, 0);
    check_destination(net.tier2, net.recovered2, slot.packets, delivered, 1);
  }
}

TEST(relay_recovers_for_destinations_from_forwarded_shreds_only) {
  std::mt19937 random(3);
  const BatchedSlot slot = make_batched_slot(kSlot, {20}, random);
  OwnUseRelay net;
  // Together the sources deliver all shreds; the forwarded one delivers 31 of them.
  for (size_t i = 0; i < 64; i++) net.own_source.send(net.in(), slot.packets[i]);
  net.wait(64);
  for (size_t i = 0; i < 31; i++) net.tier2_source.send(net.in(), slot.packets[i]);
  net.wait(64 + 31);
  CHECK_EQ(net.recovered2.receive(31).size(), 31u);
  CHECK(eventually([&] { return net.deshred_counter(DeshredCounter::transactions) == 20; }));
  CHECK_EQ(net.recovered_sent(3), 0u);
  CHECK_EQ(net.recovered2.receive(31).size(), 31u);
  // With the 32nd the others leave, although the relay has long known them.
  net.tier2_source.send(net.in(), slot.packets[40]);
  CHECK(all_of(net.recovered2.receive(64)) == all_of(slot.packets));
  CHECK(eventually([&] { return net.recovered_sent(3) == 32; }));
  CHECK(net.tier2.receive(32).size() == 32);
  CHECK(net.tier1.receive(0).empty());
  CHECK(net.recovered1.receive(0).empty());
}

TEST(relay_replaces_no_signature_by_one_from_a_source_for_own_use) {
  std::mt19937 random(4);
  const BatchedSlot slot = make_batched_slot(kSlot, {20}, random);
  OwnUseRelay net;
  for (const Bytes& packet : slot.packets) net.own_source.send(net.in(), packet);
  net.wait(64);
  // Right bytes under a wrong signature: only the source for own use proves that they are right.
  Bytes altered = slot.packets[7];
  altered[5] ^= 1;
  net.tier1_source.send(net.in(), altered);
  CHECK_EQ(net.wait(65).at("signature_invalid"), 1u);
  CHECK(net.tier1.receive(0).empty());
  // Once a forwarded source has delivered the signature, it replaces others.
  net.tier1_source.send(net.in(), slot.packets[8]);
  net.wait(66);
  net.tier2_source.send(net.in(), altered);
  net.wait(67);
  CHECK(all_of(net.tier2.receive(2)) == all_of({slot.packets[7], slot.packets[8]}));
}

TEST(relay_applies_own_use_when_the_source_table_changes) {
  OwnUseRelay net;
  std::mt19937 random(5);
  const BatchedSlot slot = make_batched_slot(kSlot, {20}, random);
  const auto publish = [&](bool own_use) {
    net.publish(&Relay::publish_sources, source_table({{"127.0.0.11", 32, 0, 0, 0, own_use}}));
  };
  for (size_t i = 0; i < 64; i++) {
    publish(i % 2 == 0);
    net.tier1_source.send(net.in(), slot.packets[i]);
    net.wait(i + 1);
  }
  std::vector<Bytes> odd;
  for (size_t i = 1; i < 64; i += 2) odd.push_back(slot.packets[i]);
  CHECK(all_of(net.tier1.receive(32)) == all_of(odd));
}

// In-kernel clones take the same lists as sockets.
TEST(relay_clones_nothing_that_only_a_source_for_own_use_delivered) {
  in_clone_lab([&](Lab& lab) {
    CloneCable cable(lab, "cable", 1);
    lead_behind_cable(lab);
    CloneReceiver receiver(lab, true);
    const auto relay = open_cloning_relay();
    if (!relay) return;
    const auto publish = [&](auto part, const Bytes& table) { publish_to(*relay, part, table); };
    std::vector<DestinationEntry> entries;
    for (uint32_t i = 0; i < 8; i++)
      entries.push_back({behind_cable(true, i, receiver.port()), 1, i});
    publish(&Relay::publish_sources,
            source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.14", 32, 0, 1, 0, true}}));
    publish(&Relay::publish_fanout, fanout_table(entries));
    publish(&Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
    const SnapshotLayout layout = relay->layout(2, 8);
    std::vector<uint64_t> words(layout.words);
    const auto wait = [&](WorkerCounter counter, uint64_t value) {
      return eventually([&] {
        relay->snapshot(layout, words.data());
        return words[size_t(counter)] == value;
      });
    };
    CHECK(wait(WorkerCounter::cloned_destinations, 8));
    const Peer forwarded("127.0.0.11");
    const Peer own_use("127.0.0.14");
    const auto slot = make_slot({.slot = kSlot});
    for (const Bytes& packet : slot.packets) own_use.send(relay->addresses()[0], packet);
    CHECK(wait(WorkerCounter::received, 64));
    CHECK(receiver.read(0).empty());
    for (size_t i = 0; i < 10; i++) forwarded.send(relay->addresses()[0], slot.packets[i]);
    CHECK(wait(WorkerCounter::received, 74));
    std::multiset<Bytes> expected;
    for (size_t i = 0; i < 80; i++) expected.insert(slot.packets[i / 8]);
    std::multiset<Bytes> actual;
    for (const CloneArrival& arrival : receiver.read(80)) actual.insert(arrival.bytes);
    CHECK(actual == expected);
    CHECK(eventually([&] {
      relay->snapshot(layout, words.data());
      return words[size_t(WorkerCounter::clone_triggers)] > 0;
    }));
  });
}
