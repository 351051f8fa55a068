// The shredder's output passes every check and contains the entries.
//
// shred_captures_test.cc compares it with captures of other shredders.
#include "shred/shredder.h"

#include <algorithm>
#include <cstring>

#include "check.h"

namespace {

using namespace shredway;
using Bytes = std::vector<uint8_t>;

constexpr size_t kChainedSetBytes = 32 * 963;
constexpr size_t kResignedSetBytes = 32 * 899;

const SigningKey& test_key() {
  static const SigningKey key(std::array<uint8_t, 32>{1, 2, 3});
  return key;
}

Bytes some_entries(size_t count) {
  Bytes out(count);
  uint32_t random = static_cast<uint32_t>(count) + 1;
  for (uint8_t& byte : out) byte = static_cast<uint8_t>((random = random * 1664525 + 3) >> 24);
  return out;
}

SlotPosition start_of_slot() {
  SlotPosition position = {1234567, 2, 50093, {}, 0};
  position.chained_root.fill(0x77);
  return position;
}

// Checks every rule of one set: static rules, order, equal signature, root, chaining, flags, size,
// tail. Appends the entries in its data shreds.
struct SetExpectation {
  uint32_t fec_set_index;
  bool resigned, data_complete;
  uint8_t tick;
};
Root check_set(const PacketList& list, size_t first, const SetExpectation& expected,
               const Root& chained_root, Bytes& entries) {
  Root root{};
  for (size_t i = 0; i < kFecSetLeaves; i++) {
    const uint8_t* packet = list.packet(first + i);
    Shred shred;
    CHECK(check_packet(packet, list.packet_bytes(first + i), shred) == Verdict::first);
    const Layout layout = layout_of(variant_of(packet[offset::kVariant]));
    CHECK_EQ(list.packet_bytes(first + i), shred.bytes);
    CHECK_EQ(shred.leaf, i);
    CHECK_EQ(shred.fec_set_index, expected.fec_set_index);
    CHECK_EQ(shred.index, expected.fec_set_index + i % kFecSetShreds);
    CHECK_EQ(variant_of(packet[offset::kVariant]).resigned, expected.resigned);
    CHECK(std::memcmp(packet + layout.chained_begin, chained_root.data(), kRootBytes) == 0);
    CHECK(std::memcmp(packet, list.packet(first), kSignatureBytes) == 0);
    CHECK(std::all_of(packet + layout.proof_end, packet + layout.shred_bytes,
                      [](uint8_t byte) { return byte == 0; }));
    const MerkleInput input = merkle_input(packet, shred);
    Root own;
    merkle_roots(&input, 1, &own);
    if (i == 0) root = own;
    CHECK(own == root);
    if (shred.type != ShredType::data) continue;
    uint8_t flags = expected.tick;
    if (i == 31 && expected.data_complete)
      flags |= expected.resigned ? kFlagLastInSlot : kFlagDataComplete;
    CHECK_EQ(shred.flags, flags);
    const size_t end = load_u16(packet + offset::kSize);
    entries.insert(entries.end(), packet + kDataHeaderBytes, packet + end);
    CHECK(std::all_of(packet + end, packet + layout.body_end, [](uint8_t byte) { return !byte; }));
  }
  CHECK(VerifyingKey(test_key().public_key()).verify(list.packet(first), root.data(), root.size()));
  return root;
}

void check_batch(size_t entries_bytes, bool last_in_slot, size_t sets_expected) {
  const Bytes entries = some_entries(entries_bytes);
  const Shredder shredder(test_key());
  SlotPosition position = start_of_slot();
  position.next_fec_set_index = 96;
  PacketList list;
  CHECK(shredder.shred(entries.data(), entries.size(), 200, last_in_slot, position, list));
  CHECK_EQ(list.size(), sets_expected * kFecSetLeaves);
  CHECK_EQ(list.offsets.back(), list.bytes.size());
  Bytes back;
  Root root = start_of_slot().chained_root;
  for (size_t set = 0; set < sets_expected; set++) {
    const bool last = set + 1 == sets_expected;
    root = check_set(list, set * kFecSetLeaves,
                     {static_cast<uint32_t>(96 + 32 * set), last && last_in_slot, last, 63}, root,
                     back);
  }
  CHECK(back == entries);
  CHECK(position.chained_root == root);
  CHECK_EQ(position.next_fec_set_index, 96 + 32 * sets_expected);
}

}  // namespace

TEST(shredder_batches_of_every_size) {
  if (!test_key().valid()) SKIP("no Ed25519 library here");
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{962}, size_t{963}, size_t{964},
                             size_t{20000}, kChainedSetBytes - 1, kChainedSetBytes})
    check_batch(bytes, false, 1);
  check_batch(kChainedSetBytes + 1, false, 2);
  check_batch(3 * kChainedSetBytes, false, 3);
  check_batch(3 * kChainedSetBytes + 5000, false, 4);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{899}, size_t{900}, kResignedSetBytes})
    check_batch(bytes, true, 1);
  check_batch(kResignedSetBytes + 1, true, 2);
  check_batch(kResignedSetBytes + kChainedSetBytes, true, 2);
  check_batch(kResignedSetBytes + kChainedSetBytes + 1, true, 3);
}

TEST(shredder_appends_and_continues) {
  if (!test_key().valid()) SKIP("no Ed25519 library here");
  const Shredder shredder(test_key());
  SlotPosition position = start_of_slot();
  PacketList list;
  Bytes entries = some_entries(40000), expected, back;
  Root root = position.chained_root;
  for (uint8_t batch = 0; batch < 3; batch++) {
    CHECK(shredder.shred(entries.data(), entries.size(), batch, batch == 2, position, list));
    expected.insert(expected.end(), entries.begin(), entries.end());
  }
  CHECK_EQ(list.size(), 6 * kFecSetLeaves);
  for (uint32_t set = 0; set < 6; set++)
    root = check_set(list, set * kFecSetLeaves,
                     {32 * set, set == 5, set % 2 == 1, static_cast<uint8_t>(set / 2)}, root, back);
  CHECK(back == expected);
}

TEST(shredder_refuses_batches_beyond_a_slots_capacity) {
  if (!test_key().valid()) SKIP("no Ed25519 library here");
  const Shredder shredder(test_key());
  const Bytes entries = some_entries(kChainedSetBytes + 1);
  PacketList list;
  const auto refused = [&](const SlotPosition& start) {
    SlotPosition position = start;
    const bool made = shredder.shred(entries.data(), entries.size(), 0, false, position, list);
    CHECK(position.next_fec_set_index == start.next_fec_set_index || made);
    CHECK(list.size() == 0 || made);
    return !made;
  };
  SlotPosition position = start_of_slot();
  position.next_fec_set_index = kShredsPerSlotMax - 32;  // one set fits, two are needed
  CHECK(refused(position));
  for (const uint32_t index : {1u, 31u, kShredsPerSlotMax, kShredsPerSlotMax + 32, 0xffffffe0u}) {
    position = start_of_slot();
    position.next_fec_set_index = index;
    CHECK(refused(position));
  }
  position = start_of_slot();
  position.parent_offset = 0;
  CHECK(refused(position));
  position = start_of_slot();
  position.slot = 1;  // parent offset is 2
  CHECK(refused(position));
  position.parent_offset = 1;
  position.next_fec_set_index = kShredsPerSlotMax - 64;
  CHECK(!refused(position));
}

TEST(shredder_without_a_library) {
  const Ed25519Library before = ed25519_library();
  CHECK(ed25519_use(Ed25519Library::none));
  const SigningKey key(std::array<uint8_t, 32>{});
  ed25519_use(before);
  SlotPosition position = start_of_slot();
  PacketList list;
  CHECK(!Shredder(key).shred(nullptr, 0, 0, false, position, list));
  CHECK_EQ(list.size(), size_t{0});
}
