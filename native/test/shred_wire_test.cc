// wire: every variant byte, every length, every rule of SIMD-0504, and the headers of real
// captures.
#include "shred/wire.h"

#include <random>

#include "check.h"
#include "support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

Verdict verdict_of(const std::vector<uint8_t>& packet) {
  // A copy of exactly the packet's size, so that the sanitizer detects a read beyond it.
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[packet.size()]);
  std::copy(packet.begin(), packet.end(), exact.get());
  Shred shred;
  return check_packet(exact.get(), packet.size(), shred);
}

// An acceptable shred with the given variant; `change` changes one field.
template <typename Change>
Verdict verdict_with(uint8_t variant, Change change) {
  std::vector<uint8_t> packet = plain_shred(variant);
  change(packet);
  return verdict_of(packet);
}

Verdict expected_of_variant(uint8_t byte) {
  switch (byte) {
    case 0x96:
    case 0xb6:
    case 0x66:
    case 0x76:
      return Verdict::first;
    case 0xa5:
    case 0x5a:
      return Verdict::legacy_variant;
    default:
      break;
  }
  switch (byte & 0xf0) {
    case 0x80:
    case 0x40:
      return Verdict::unchained_variant;
    case 0x90:
    case 0xb0:
    case 0x60:
    case 0x70:
      return Verdict::proof_size_invalid;
    default:
      return Verdict::unknown_variant;
  }
}

}  // namespace

TEST(wire_all_variants_and_lengths) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    const auto variant = static_cast<uint8_t>(byte);
    const bool code = (variant & 0xc0) == 0x40;
    std::vector<uint8_t> whole = plain_shred(code ? 0x66 : 0x96);
    whole[offset::kVariant] = variant;
    whole.resize(1300, 0xee);
    const size_t shred_bytes = code ? kCodeShredBytes : kDataShredBytes;
    for (size_t length = 0; length <= whole.size(); length++) {
      Verdict expected = expected_of_variant(variant);
      if (length > kPacketBytesMax) expected = Verdict::oversized;
      else if (length <= 64) expected = Verdict::too_short;
      else if (expected == Verdict::first && length < shred_bytes) expected = Verdict::too_short;
      const std::vector<uint8_t> packet(whole.begin(), whole.begin() + long(length));
      const Verdict verdict = verdict_of(packet);
      if (verdict != expected) {
        CHECK_EQ(verdict_name(verdict), std::string(verdict_name(expected)));
        return;
      }
    }
  }
}

TEST(wire_variant_bits_of_every_byte) {
  for (int byte = 0; byte < 256; byte++) {
    const Variant variant = variant_of(static_cast<uint8_t>(byte));
    const int family = byte >> 4;
    const bool legacy = byte == 0xa5 || byte == 0x5a;
    const bool code = family == 4 || family == 6 || family == 7;
    const bool data = family == 8 || family == 9 || family == 11;
    CHECK(variant.known == (code || data));
    CHECK(variant.type == (code || byte == 0x5a ? ShredType::code : ShredType::data));
    CHECK(variant.chained == (family == 6 || family == 7 || family == 9 || family == 11));
    CHECK(variant.resigned == (family == 7 || family == 11));
    CHECK(variant.proof_entries == byte % 16);
    const uint8_t bits = kVariantBits[byte];
    CHECK(((bits & kVariantLegacy) != 0) == legacy);
    const bool accepted = byte == 0x66 || byte == 0x76 || byte == 0x96 || byte == 0xb6;
    CHECK(((bits & kVariantAccepted) != 0) == accepted);
  }
}

TEST(wire_flags_of_every_byte) {
  for (int byte = 0; byte < 256; byte++) {
    const auto flags = static_cast<uint8_t>(byte);
    const int high = byte / 64;  // 0: none, 1: data complete, 2: invalid, 3: last in slot
    CHECK(is_data_complete(flags) == (high == 1 || high == 3));
    CHECK(is_last_in_slot(flags) == (high == 3));
    CHECK(are_flags_valid(flags) == (high != 2));
    CHECK(reference_tick(flags) == byte % 64);
  }
}

TEST(wire_fec_sets_and_leaves) {
  uint32_t index = 0;
  for (uint32_t set = 0; set < kFecSetsPerSlotMax; set++) {
    for (uint32_t position = 0; position < 32; position++, index++) {
      CHECK(fec_set_number(index) == set);
      CHECK(position_in_fec_set(index) == position);
      CHECK(is_last_of_fec_set(index) == (position == 31));
    }
  }
  CHECK(index == kShredsPerSlotMax);
  for (uint32_t leaf = 0; leaf < 64; leaf++)
    CHECK(leaf_shred_bytes(leaf) == (leaf < 32 ? 1203U : 1228U));
}

TEST(wire_variants_have_the_layouts_of_the_table) {
  const struct {
    uint8_t variant;
    Layout layout;
  } table[] = {
      {0x96, {1203, 88, 1051, 1051, 1083, 1203}}, {0xb6, {1203, 88, 987, 987, 1019, 1139}},
      {0x66, {1228, 89, 1076, 1076, 1108, 1228}}, {0x76, {1228, 89, 1012, 1012, 1044, 1164}},
      {0x86, {1203, 88, 1083, 1083, 1083, 1203}}, {0xb7, {1203, 88, 967, 967, 999, 1139}},
  };
  for (const auto& row : table) {
    const Layout layout = layout_of(variant_of(row.variant));
    CHECK(std::memcmp(&layout, &row.layout, sizeof layout) == 0);
  }
  CHECK(!variant_of(0xa5).known);
  CHECK(!variant_of(0x5a).known);
}

TEST(wire_index_rules) {
  const auto with = [](uint32_t index, uint32_t fec_set_index) {
    return verdict_with(0x96, [&](auto& packet) {
      store(packet, offset::kIndex, index);
      store(packet, offset::kFecSetIndex, fec_set_index);
    });
  };
  CHECK_EQ(with(0, 0), Verdict::first);
  CHECK_EQ(with(32767, 32736), Verdict::first);
  CHECK_EQ(with(32768, 32768), Verdict::index_too_large);
  CHECK_EQ(with(32767, 32767), Verdict::index_too_large);
  CHECK_EQ(with(0xffffffff, 0xffffffe0), Verdict::index_too_large);
  CHECK_EQ(with(33, 33), Verdict::fec_set_misaligned);
  CHECK_EQ(with(33, 1), Verdict::fec_set_misaligned);
  CHECK_EQ(with(31, 32), Verdict::index_outside_fec_set);
  CHECK_EQ(with(64, 32), Verdict::index_outside_fec_set);
  CHECK_EQ(with(63, 32), Verdict::first);
}

TEST(wire_data_rules) {
  for (const uint8_t variant : {uint8_t{0x96}, uint8_t{0xb6}}) {
    const uint16_t size_max = variant == 0x96 ? 1051 : 987;
    const auto with = [&](uint64_t slot, uint16_t parent, uint8_t flags, uint16_t bytes) {
      return verdict_with(variant, [&](auto& packet) {
        store(packet, offset::kSlot, slot);
        store(packet, offset::kParentOffset, parent);
        store(packet, offset::kIndex, uint32_t{31});
        store(packet, offset::kFecSetIndex, uint32_t{0});
        packet[offset::kFlags] = flags;
        store(packet, offset::kSize, bytes);
      });
    };
    CHECK_EQ(with(7, 1, 0, 88), Verdict::first);
    CHECK_EQ(with(7, 7, 0xc0, size_max), Verdict::first);
    CHECK_EQ(with(7, 7, 0x7f, 100), Verdict::first);
    CHECK_EQ(with(0, 0, 0xff, 100), Verdict::first);
    CHECK_EQ(with(7, 8, 0, 100), Verdict::parent_invalid);
    CHECK_EQ(with(7, 0, 0, 100), Verdict::parent_invalid);
    CHECK_EQ(with(0, 1, 0, 100), Verdict::parent_invalid);
    CHECK_EQ(with(7, 1, 0x80, 100), Verdict::flags_invalid);
    CHECK_EQ(with(7, 1, 0xbf, 100), Verdict::flags_invalid);
    CHECK_EQ(with(7, 1, 0, 87), Verdict::size_invalid);
    CHECK_EQ(with(7, 1, 0, static_cast<uint16_t>(size_max + 1)), Verdict::size_invalid);
  }
  const auto complete_at = [](uint32_t index) {
    return verdict_with(0x96, [&](auto& packet) {
      store(packet, offset::kIndex, index);
      packet[offset::kFlags] = kFlagDataComplete;
    });
  };
  for (uint32_t index = 0; index < 32; index++)
    CHECK_EQ(complete_at(index), index == 31 ? Verdict::first : Verdict::data_complete_misplaced);
}

TEST(wire_code_rules) {
  const auto with = [](uint16_t data, uint16_t code, uint16_t position) {
    return verdict_with(0x76, [&](auto& packet) {
      store(packet, offset::kIndex, uint32_t{5});
      store(packet, offset::kDataCount, data);
      store(packet, offset::kCodeCount, code);
      store(packet, offset::kPosition, position);
    });
  };
  CHECK_EQ(with(32, 32, 5), Verdict::first);
  CHECK_EQ(with(31, 32, 5), Verdict::code_counts_invalid);
  CHECK_EQ(with(32, 33, 5), Verdict::code_counts_invalid);
  CHECK_EQ(with(0, 0, 5), Verdict::code_counts_invalid);
  CHECK_EQ(with(32, 32, 4), Verdict::code_position_invalid);
  CHECK_EQ(with(32, 32, 37), Verdict::code_position_invalid);
}

TEST(wire_fields_and_trailing_bytes) {
  std::vector<uint8_t> packet = plain_shred(0x66);
  store(packet, offset::kSlot, uint64_t{0x0102030405060708});
  store(packet, offset::kIndex, uint32_t{64 + 9});
  store(packet, offset::kFecSetIndex, uint32_t{64});
  store(packet, offset::kVersion, uint16_t{50093});
  store(packet, offset::kPosition, uint16_t{9});
  packet.resize(kPacketBytesMax, 0x77);  // a repair nonce or other trailing bytes
  Shred shred;
  CHECK_EQ(check_packet(packet.data(), packet.size(), shred), Verdict::first);
  CHECK_EQ(shred.slot, 0x0102030405060708u);
  CHECK_EQ(shred.index, 73u);
  CHECK_EQ(shred.fec_set_index, 64u);
  CHECK_EQ(shred.version, 50093u);
  CHECK_EQ(shred.bytes, 1228u);
  CHECK_EQ(shred.leaf, 32 + 9);
  CHECK(shred.type == ShredType::code);
}

TEST(wire_recognises_pings) {
  std::vector<uint8_t> ping(kPingBytes, 0x96);
  store(ping, 0, uint32_t{4});
  CHECK_EQ(verdict_of(ping), Verdict::ping);
  store(ping, 0, uint32_t{5});
  CHECK_EQ(verdict_of(ping), Verdict::too_short);
}

TEST(wire_random_packets_are_refused) {
  std::mt19937_64 random(20261121);
  for (int i = 0; i < 200'000; i++) {
    std::vector<uint8_t> packet(random() % 1400);
    for (auto& byte : packet) byte = static_cast<uint8_t>(random());
    if (packet.size() > 64 && i % 2) packet[64] = i % 4 == 1 ? 0x96 : 0x76;
    Shred shred;
    if (check_packet(packet.data(), packet.size(), shred) != Verdict::first) continue;
    CHECK(shred.fec_set_index % 32 == 0 && shred.index - shred.fec_set_index < 32);
    CHECK(shred.leaf < 64 && shred.bytes <= packet.size());
  }
}

TEST(wire_verdicts_of_the_captures) {
  if (testdata().empty()) SKIP("real captures missing");
  const struct {
    const char* file;
    Verdict verdict;
    size_t packets;
  } captures[] = {
      {"firedancer-demo/demo-shreds.lpb", Verdict::first, 512},
      {"firedancer-testnet-385970984/chained_resigned.lpb", Verdict::first, 307},
      {"sig-testnet-356797362/data.lpb", Verdict::first, 992},
      {"sig-testnet-356797362/code-reconstructed.lpb", Verdict::first, 992},
      {"sig-mainnet-2024-08/mainnet_shreds.lpb", Verdict::unchained_variant, 99},
      {"sig-agave-fec34/fec34.lpb", Verdict::proof_size_invalid, 68},
      {"firedancer-localnet/localnet-slot0.lpb", Verdict::unchained_variant, 4},
      {"firedancer-localnet/localnet-slot50.lpb", Verdict::legacy_variant, 8},
      {"radiance-mainnet-102815960/legacy-shreds.lpb", Verdict::legacy_variant, 2047},
  };
  for (const auto& capture : captures) {
    const auto packets = read_lpb(testdata() + "/shreds/" + capture.file);
    CHECK_EQ(packets.size(), capture.packets);
    for (const auto& packet : packets)
      CHECK_EQ(verdict_name(verdict_of(packet)), std::string(verdict_name(capture.verdict)));
  }
}
