// The deshredder reports everything that can be decoded, once, as early as possible, within its
// memory limits.
#include "deshred/deshredder.h"

#include <set>

#include "check.h"
#include "deshred_support.h"

namespace {

using namespace shredway;
using test::add_packet;
using test::BatchedSlot;
using test::Bytes;
using test::DeshredRecorder;

constexpr uint64_t kSecond_ns = 1'000'000'000;

// Adds the shreds of one set with these leaves.
void add_set(Deshredder& deshredder, const BatchedSlot& slot, size_t set, uint64_t leaves,
             uint64_t now_ns = 1) {
  for (size_t leaf = 0; leaf < kFecSetLeaves; leaf++)
    if (leaves >> leaf & 1)
      add_packet(deshredder, slot.packets[set * kFecSetLeaves + leaf], now_ns);
}
constexpr uint64_t kData = 0xffff'ffff;
constexpr uint64_t kCode = kData << 32;

bool all_reported(const DeshredRecorder& sink, const BatchedSlot& slot) {
  return std::all_of(slot.batches.begin(), slot.batches.end(), [&](const auto& batch) {
    return sink.signatures_of(slot.slot, batch.first_index) == batch.signatures;
  });
}

}  // namespace

TEST(deshred_reports_each_transaction_with_its_last_byte) {
  std::mt19937 random(1);
  const BatchedSlot slot = test::make_batched_slot(9, {300}, random);
  CHECK_EQ(slot.batches[0].sets, 2u);
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  uint64_t body_bytes = 0;
  for (size_t i = 0; i < 64; i++) {
    const Bytes& packet = slot.packets[i < 32 ? i : i + 32];
    add_packet(deshredder, packet, i + 1);
    body_bytes += load_u16(&packet[offset::kSize]) - kDataHeaderBytes;
    // 8 bytes of count, then per entry with five transactions 48 + 5 x 134 and a tick of 48.
    const uint64_t in_entries = body_bytes - 8;
    const uint64_t whole = in_entries / 766, rest = in_entries % 766;
    const uint64_t readable = std::min<uint64_t>(
        300, whole * 5 + (rest < 48 ? 0 : std::min<uint64_t>(5, (rest - 48) / 134)));
    CHECK_EQ(sink.transactions.size(), readable);
    for (const auto& seen : sink.transactions) CHECK(seen.arrival_ns <= i + 1);
    if (!sink.transactions.empty() && sink.transactions.back().arrival_ns == i + 1)
      CHECK_EQ(sink.transactions.back().shred_index, i);
  }
  CHECK(all_reported(sink, slot));
  CHECK_EQ(deshredder.counts().sets_whole, 2u);
  CHECK_EQ(deshredder.counts().sets_recovered, 0u);
}

TEST(deshred_batches_do_not_wait_for_each_other) {
  std::mt19937 random(2);
  const BatchedSlot slot = test::make_batched_slot(9, {20, 300, 20, 20}, random);
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  // Set 0 ends batch 0; sets 1 and 2 are batch 1, set 3 batch 2, set 4 batch 3.
  add_set(deshredder, slot, 4, kData);
  CHECK(sink.transactions.empty());  // the beginning of its batch is not known yet
  add_set(deshredder, slot, 3, kData);
  CHECK(sink.signatures_of(9, 128) == slot.batches[3].signatures);
  CHECK(sink.signatures_of(9, 96).empty());
  add_set(deshredder, slot, 2, uint64_t{1} << 31);  // the last shred of batch 1 shows it
  CHECK(sink.signatures_of(9, 96) == slot.batches[2].signatures);
  add_set(deshredder, slot, 0, kCode);
  CHECK(sink.signatures_of(9, 0) == slot.batches[0].signatures);
  add_set(deshredder, slot, 1, kData);
  add_set(deshredder, slot, 2, kCode);
  CHECK(all_reported(sink, slot));
  CHECK_EQ(deshredder.counts().batches, 4u);
  CHECK_EQ(deshredder.counts().sets_recovered, 2u);
  CHECK_EQ(deshredder.counts().shreds_recovered, 32u + 32u);  // immediately with the 32nd shred
}

TEST(deshred_repeated_and_late_shreds_change_nothing) {
  std::mt19937 random(3);
  const BatchedSlot slot = test::make_batched_slot(9, {20, 20}, random);
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  for (int round = 0; round < 3; round++)
    for (const Bytes& packet : slot.packets) add_packet(deshredder, packet, 1);
  CHECK(all_reported(sink, slot));
  CHECK_EQ(sink.transactions.size(), 40u);
  CHECK_EQ(deshredder.counts().shreds, 64u);  // the code shreds came after the set was finished
  CHECK_EQ(deshredder.counts().shreds_late, 64u * 6 - 64u);
}

TEST(deshred_ignores_a_second_root_of_a_set) {
  std::mt19937 random(4);
  const BatchedSlot slot = test::make_batched_slot(9, {20}, random);
  const BatchedSlot other = test::make_batched_slot(9, {20}, random);
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  add_set(deshredder, slot, 0, 1);
  add_set(deshredder, other, 0, kData);
  add_set(deshredder, slot, 0, kData);
  CHECK(all_reported(sink, slot));
  CHECK_EQ(deshredder.counts().shreds_conflicting, 32u);
}

// A leader can sign anything: code shreds that fit nothing, data shreds without entries.
TEST(deshred_refuses_signed_invalid_data) {
  std::mt19937 random(5);
  BatchedSlot slot = test::make_batched_slot(9, {20, 20, 20}, random);
  slot.packets[40][200] ^= 1;
  test::sign_again(slot.packets, 0);
  BatchedSlot garbage = test::make_batched_slot(10, {20, 20}, random);
  for (size_t i = kDataHeaderBytes; i < 900; i++) garbage.packets[0][i] = 0xff;
  test::sign_again(garbage.packets, 0);

  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  add_set(deshredder, slot, 0, kCode);
  CHECK_EQ(deshredder.counts().sets_refused, 1u);
  add_set(deshredder, slot, 0, kData);  // too late: the set is not needed any more
  CHECK(sink.transactions.empty());
  add_set(deshredder, slot, 1, kData);
  add_set(deshredder, slot, 2, kData);
  CHECK(sink.signatures_of(9, 64) == slot.batches[2].signatures);
  add_set(deshredder, garbage, 0, kData);
  add_set(deshredder, garbage, 1, kCode);
  CHECK_EQ(deshredder.counts().batches_malformed, 1u);
  CHECK(sink.signatures_of(10, 32) == garbage.batches[1].signatures);
}

// Header fields of data shreds are inside the Reed-Solomon shards, so a leader could make recovery
// produce invalid headers.
TEST(deshred_recovered_headers_obey_the_rules) {
  std::mt19937 random(6);
  for (const size_t at : {offset::kSlot, offset::kIndex, offset::kFecSetIndex, offset::kSize + 1,
                          offset::kVariant, offset::kFlags}) {
    BatchedSlot slot = test::make_batched_slot(9, {20}, random);
    // The variant becomes another valid one.
    slot.packets[3][at] ^= at == offset::kVariant ? 0x20 : 0x40;
    const ReedSolomon reed_solomon(32, 32);
    std::vector<const uint8_t*> data;
    std::vector<uint8_t*> code;
    for (size_t i = 0; i < 32; i++) data.push_back(&slot.packets[i][offset::kVariant]);
    for (size_t i = 32; i < 64; i++) code.push_back(&slot.packets[i][kCodeHeaderBytes]);
    reed_solomon.encode(data.data(), code.data(), 923);
    test::sign_again(slot.packets, 0);
    DeshredRecorder sink;
    Deshredder deshredder({}, sink);
    add_set(deshredder, slot, 0, kCode);
    CHECK_EQ(deshredder.counts().sets_refused, 1u);
    CHECK_EQ(deshredder.counts().sets_given_up, 0u);
    CHECK(sink.transactions.empty());
  }
}

TEST(deshred_evicts_from_the_slot_with_the_most_sets) {
  std::mt19937 random(7);
  const BatchedSlot honest = test::make_batched_slot(20, {20, 20}, random);
  const BatchedSlot flood = test::make_batched_slot(21, std::vector<size_t>(40, 1), random);
  DeshredRecorder sink;
  Deshredder deshredder({8, 4, 10 * kSecond_ns}, sink);
  add_set(deshredder, honest, 0, kData >> 1);
  add_set(deshredder, honest, 1, kData >> 1);
  for (size_t set = 0; set < 40; set++) add_set(deshredder, flood, set, 1u | uint64_t{1} << 31);
  CHECK(deshredder.counts().sets_given_up >= 40 - 6);
  add_set(deshredder, honest, 0, kData);
  add_set(deshredder, honest, 1, kData);
  CHECK(all_reported(sink, honest));
}

TEST(deshred_without_batches_recovers_sets_and_reports_nothing_else) {
  std::mt19937 random(12);
  const BatchedSlot slot = test::make_batched_slot(9, {20, 20, 300}, random);
  DeshredRecorder sink;
  Deshredder deshredder({.sets_max = 1, .reads_batches = false}, sink);
  // One place for sets suffices, because each finished set is released.
  constexpr uint64_t kHalves = 0xffff | uint64_t{0xffff} << 32;
  add_set(deshredder, slot, 0, kHalves);
  add_set(deshredder, slot, 1, kData);
  add_set(deshredder, slot, 1, kCode);
  add_set(deshredder, slot, 3, kHalves);  // in the middle of a batch
  const DeshredCounts& counts = deshredder.counts();
  CHECK_EQ(sink.recovered_shreds, 64u);
  CHECK_EQ(counts.sets_recovered, 2u);
  CHECK_EQ(counts.sets_whole, 1u);
  CHECK_EQ(counts.shreds_late, 32u);
  CHECK_EQ(counts.sets_given_up, 0u);
  CHECK_EQ(counts.batches + counts.batches_given_up + counts.entries + counts.transactions, 0u);
  CHECK_EQ(sink.transactions.size() + sink.ticks + sink.markers, 0u);
}

TEST(deshred_expires_silent_slots) {
  std::mt19937 random(8);
  const BatchedSlot slot = test::make_batched_slot(9, {20, 300}, random);
  const BatchedSlot later = test::make_batched_slot(10, {20}, random);
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  add_set(deshredder, slot, 0, 0xff, kSecond_ns);
  add_set(deshredder, slot, 2, 0xff, kSecond_ns);
  add_set(deshredder, later, 0, 1, 11 * kSecond_ns);
  CHECK_EQ(deshredder.counts().sets_given_up, 0u);
  add_set(deshredder, later, 0, 2, 20 * kSecond_ns);
  CHECK_EQ(deshredder.counts().sets_given_up, 2u);
  CHECK_EQ(deshredder.counts().batches_given_up, 1u);
  add_set(deshredder, slot, 0, kData, 20 * kSecond_ns);
  CHECK_EQ(deshredder.counts().shreds_late, 32u);
  add_set(deshredder, later, 0, kData, 20 * kSecond_ns);
  CHECK(all_reported(sink, later));
  // A clock that was set back expires nothing.
  add_set(deshredder, slot, 1, 0xff, kSecond_ns);
  add_set(deshredder, slot, 1, 0xf00, 5 * kSecond_ns);
  CHECK_EQ(deshredder.counts().sets_given_up, 2u);
}

TEST(deshred_newer_slots_replace_old_ones) {
  std::mt19937 random(9);
  const BatchedSlot old = test::make_batched_slot(100, {20, 20}, random);
  const BatchedSlot young = test::make_batched_slot(100 + 2 * Deshredder::kSlots, {20}, random);
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  add_set(deshredder, old, 0, 0xf);
  add_set(deshredder, young, 0, 0xf);
  CHECK_EQ(deshredder.counts().sets_given_up, 1u);
  add_set(deshredder, old, 1, kData);
  CHECK_EQ(deshredder.counts().shreds_late, 32u);
  add_set(deshredder, young, 0, kData);
  CHECK(all_reported(sink, young));
  // After silence a lower slot may be the current one again.
  add_set(deshredder, old, 0, kData, 9 * kSecond_ns);
  CHECK_EQ(deshredder.counts().shreds_late, 32u + 4 + 32);
  const BatchedSlot again = test::make_batched_slot(100 + Deshredder::kSlots, {20}, random);
  add_set(deshredder, again, 0, kData, 12 * kSecond_ns);
  CHECK(all_reported(sink, again));
}

// A leader can sign one root any number of times.
TEST(deshred_other_signatures_over_the_same_root_are_one_set) {
  std::mt19937 random(12);
  BatchedSlot slot = test::make_batched_slot(9, {20, 300}, random);
  for (size_t i = 0; i < slot.packets.size(); i++) slot.packets[i][i % 64] ^= 1;
  DeshredRecorder sink;
  Deshredder deshredder({}, sink);
  for (size_t i = 0; i < slot.packets.size(); i += 2) add_packet(deshredder, slot.packets[i], 1);
  CHECK(all_reported(sink, slot));
  CHECK_EQ(deshredder.counts().shreds_conflicting, 0u);
  CHECK_EQ(deshredder.counts().sets_recovered, 3u);
}

// Random slots, losses, orders and copies against the maximum that can be decoded: sets with 32
// shreds or all their data, and batches with a known beginning and all their sets.
TEST(deshred_reports_exactly_what_can_be_decoded) {
  std::mt19937 random(10);
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (int round = 0; round < 60; round++) {
    DeshredRecorder sink;
    Deshredder deshredder({}, sink);
    std::vector<BatchedSlot> slots;
    std::vector<std::pair<const Bytes*, size_t>> deliveries;
    std::set<std::pair<uint64_t, uint32_t>> knowable;
    for (uint64_t number = 50; number < 53; number++) {
      std::vector<size_t> batches;
      for (size_t i = 1 + below(5); i-- > 0;) batches.push_back(below(4) ? below(60) : 250);
      slots.push_back(test::make_batched_slot(number, batches, random));
    }
    for (const BatchedSlot& slot : slots) {
      const size_t set_count = slot.packets.size() / kFecSetLeaves;
      std::vector<uint64_t> received(set_count);
      for (size_t set = 0; set < set_count; set++) {
        const size_t percent = below(3) ? 45 + below(50) : 100;
        for (size_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
          if (below(100) >= percent) continue;
          received[set] |= uint64_t{1} << leaf;
          for (size_t copies = 1 + below(2); copies-- > 0;)
            deliveries.emplace_back(&slot.packets[set * kFecSetLeaves + leaf], random());
        }
      }
      const auto readable = [&](size_t set) {
        return (received[set] & kData) == kData || std::popcount(received[set]) >= 32;
      };
      for (const auto& batch : slot.batches) {
        const size_t first = batch.first_index / kFecSetShreds;
        bool known = first == 0 || readable(first - 1) || (received[first - 1] >> 31 & 1);
        for (size_t set = first; set < first + batch.sets; set++) known = known && readable(set);
        if (known) knowable.emplace(slot.slot, batch.first_index);
      }
    }
    std::sort(deliveries.begin(), deliveries.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    for (const auto& [packet, order] : deliveries) add_packet(deshredder, *packet, 1);
    for (const BatchedSlot& slot : slots)
      for (const auto& batch : slot.batches) {
        const auto seen = sink.signatures_of(slot.slot, batch.first_index);
        if (knowable.contains({slot.slot, batch.first_index})) CHECK(seen == batch.signatures);
        else  // the readable part, from its beginning
          CHECK(seen.size() <= batch.signatures.size() &&
                std::equal(seen.begin(), seen.end(), batch.signatures.begin()));
      }
    CHECK_EQ(deshredder.counts().batches, knowable.size());
    CHECK_EQ(deshredder.counts().batches_malformed, 0u);
  }
}
