// recent_shreds against a simple model over long random histories.
#include "relay/recent_shreds.h"

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "check.h"
#include "crypto/ed25519.h"
#include "recent_shreds_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

// The specification with containers: per identity the roots in order, and per root the served
// tiers.
struct RecentModel {
  std::map<std::tuple<uint64_t, uint32_t, uint8_t>, std::map<uint32_t, TierMask>> seen;

  RecentShreds::Outcome record(const Shred& shred, uint32_t root, TierMask covers) {
    auto& roots = seen[{shred.slot, shred.fec_set_index, shred.leaf}];
    const bool known = roots.count(root) != 0;
    if (!known && roots.size() >= 2) return {Verdict::equivocation_excess, 0};
    const Verdict fresh = roots.empty() ? Verdict::first : Verdict::equivocation;
    TierMask& served = roots[root];
    const auto tiers = static_cast<TierMask>(covers & ~served);
    served |= tiers;
    if (!tiers) return {Verdict::duplicate, 0};
    return {known ? Verdict::new_tier : fresh, tiers};
  }
};

}  // namespace

TEST(recent_shreds_matches_the_model) {
  for (uint64_t seed = 1; seed <= 6; seed++) {
    std::mt19937_64 random(seed);
    const auto recent = RecentShreds::create(false);
    RecentModel model;
    const uint32_t roots_max = seed % 2 ? 2 : 5;
    for (int i = 0; i < 60'000; i++) {
      const Shred shred = shred_of(1'000'000 + random() % 40, static_cast<uint32_t>(random() % 5),
                                   static_cast<uint8_t>(random() % 64));
      // Few identities have more than one root, as in practice.
      const uint32_t root = random() % 10 ? 1 : 1 + static_cast<uint32_t>(random() % roots_max);
      const TierMask covers = random() % 2 ? 3 : 2;
      const auto expected = model.record(shred, root, covers);
      const auto actual =
          recent->record(shred, signature_of(root).data(), root_of(root), {covers, 0, 0});
      CHECK_EQ(verdict_name(actual.verdict), std::string(verdict_name(expected.verdict)));
      CHECK_EQ(actual.tiers, expected.tiers);
      const FecSetRecord* record = recent->find(shred, signature_of(root).data());
      if (expected.verdict != Verdict::equivocation_excess) CHECK(record != nullptr);
    }
  }
}

TEST(recent_shreds_a_later_slot_overwrites_a_slot_one_window_older) {
  const auto recent = RecentShreds::create(false);
  const Signature signature = signature_of(1);
  const auto record = [&](uint64_t slot) {
    return recent->record(shred_of(slot, 3, 7), signature.data(), root_of(1), {1, 0, 0}).verdict;
  };
  for (uint64_t slot = 0; slot < 3 * SlotWindow::kSlots; slot++) {
    CHECK_EQ(record(slot), Verdict::first);
    CHECK_EQ(record(slot), Verdict::duplicate);
    if (slot >= SlotWindow::kSlots)
      CHECK(recent->find(shred_of(slot - SlotWindow::kSlots, 3, 7), signature.data()) == nullptr);
  }
}

TEST(recent_shreds_a_lower_slot_does_not_overwrite_a_higher_one_in_use) {
  const auto recent = RecentShreds::create(false);
  const Signature signature = signature_of(1);
  uint64_t now_ns = 1'700'000'000'000'000'000;
  const auto record = [&](uint64_t slot) {
    return recent
        ->record(shred_of(slot, 3, 7), signature.data(), root_of(1), {1, 0, arrival_time(now_ns)})
        .verdict;
  };
  CHECK_EQ(record(5000), Verdict::first);
  CHECK_EQ(record(5000 + SlotWindow::kSlots), Verdict::first);
  for (int i = 0; i < 1000; i++) {  // two shreds whose records share a place, in turn
    CHECK(recent->outranked(shred_of(5000, 3, 7), arrival_time(now_ns)));
    CHECK_EQ(record(5000), Verdict::slot_behind);
    CHECK_EQ(record(5000 + SlotWindow::kSlots), Verdict::duplicate);
    now_ns += 7'000'000;
  }
  now_ns += RecentShreds::kOverwriteAfter_ns;
  CHECK(!recent->outranked(shred_of(5000, 3, 7), arrival_time(now_ns)));
  CHECK_EQ(record(5000), Verdict::first);
}

TEST(recent_shreds_at_the_edges_of_u64) {
  const auto recent = RecentShreds::create(false);
  const Signature none{};
  for (const uint64_t slot : {uint64_t{0}, ~uint64_t{0}}) {
    for (const uint32_t set : {0u, 1023u}) {
      const Shred shred = shred_of(slot, set, 63);
      CHECK(recent->find(shred, none.data()) == nullptr);
      CHECK_EQ(recent->record(shred, none.data(), Root{}, {1, 0, 0}).verdict, Verdict::first);
      CHECK_EQ(recent->record(shred, none.data(), Root{}, {1, 0, 0}).verdict, Verdict::duplicate);
      CHECK_EQ(recent->record(shred, none.data(), root_of(1), {1, 0, 0}).verdict,
               Verdict::equivocation);
      CHECK_EQ(recent->record(shred, none.data(), root_of(1), {1, 0, 0}).verdict,
               Verdict::duplicate);
    }
  }
}

TEST(recent_shreds_another_signature_over_the_same_root_is_a_duplicate) {
  const auto recent = RecentShreds::create(false);
  const Shred shred = shred_of(9, 0, 0);
  CHECK_EQ(recent->record(shred, signature_of(1).data(), root_of(1), {1, 0, 0}).verdict,
           Verdict::first);
  CHECK_EQ(recent->record(shred, signature_of(2).data(), root_of(1), {1, 0, 0}).verdict,
           Verdict::duplicate);
  CHECK(recent->find(shred, signature_of(2).data()) == nullptr);
}

TEST(recent_shreds_without_authentication_the_signature_identifies_the_root) {
  const auto recent = RecentShreds::create(false);
  const Shred shred = shred_of(9, 0, 0);
  const auto record = [&](uint32_t signature) {
    return recent->record(shred, signature_of(signature).data(), Root{}, {1, 0, 0}, false).verdict;
  };
  CHECK_EQ(record(1), Verdict::first);
  CHECK_EQ(record(1), Verdict::duplicate);
  CHECK_EQ(record(2), Verdict::equivocation);
  CHECK_EQ(record(3), Verdict::equivocation_excess);
}

TEST(recent_shreds_the_pool_of_further_roots_is_bounded_and_reused) {
  const auto recent = RecentShreds::create(false);
  const auto record = [&](uint64_t slot, uint32_t fec_set, uint32_t root) {
    return recent
        ->record(shred_of(slot, fec_set, 0), signature_of(root).data(), root_of(root), {1, 0, 0})
        .verdict;
  };
  uint32_t refused = 0;
  for (uint32_t set = 0; set < 1024; set++) {
    for (const uint64_t slot : {uint64_t{100}, uint64_t{101}}) {
      CHECK_EQ(record(slot, set, 1), Verdict::first);
      const Verdict second = record(slot, set, 2);
      if (second == Verdict::equivocation_excess) refused++;
      else CHECK_EQ(second, Verdict::equivocation);
    }
  }
  CHECK_EQ(refused, 1024u);
  // A window later the pool's records are free again, and old chains do not lead into new sets.
  for (uint32_t set = 0; set < 1024; set++) {
    CHECK_EQ(record(700, set, 3), Verdict::first);
    CHECK_EQ(record(700, set, 4), Verdict::equivocation);
  }
  CHECK_EQ(record(101, 5, 1), Verdict::duplicate);
}
