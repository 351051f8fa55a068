// The project's roots, signatures, parity and shredder agree with shreds of other implementations.
//
// Reads the captures (SHREDWAY_TESTDATA) with their kat.json: the known roots, leaders and sets,
// from an independent checker. Old formats (other proof sizes, unchained, 34 shreds per set) are
// included: the arithmetic is the same, only today's rules refuse them.
#include <algorithm>
#include <cstring>
#include <map>

#include "check.h"
#include "shred/shredder.h"

namespace {

using namespace shredway;
using test::hex;
using Bytes = std::vector<uint8_t>;
using Packets = std::vector<Bytes>;

// ---- kat.json ----

struct KnownSet {
  std::string root, leader;  // hexadecimal, base58; empty if unknown
};
using KnownSets = std::map<std::string, KnownSet>;  // by "slot:FEC set index"

// Value of a string or number field in one flat JSON object, or empty.
std::string field(const std::string& object, const std::string& name) {
  const size_t at = object.find('"' + name + "\":");
  if (at == std::string::npos) return "";
  const size_t begin = object.find_first_not_of(" \"", at + name.size() + 3);
  return object.substr(begin, object.find_first_of("\",\n}", begin) - begin);
}

// The `sets` of one capture: an array of flat objects. Omits sets whose shreds have several roots
// (a format before the release).
KnownSets known_sets(const std::string& folder, const std::string& capture) {
  const Bytes bytes = test::read_file(folder + "/kat.json");
  const std::string text(bytes.begin(), bytes.end());
  KnownSets out;
  size_t at = text.find('"' + capture + "\": {");
  if (at == std::string::npos) return out;
  at = text.find("\"sets\": [", at);
  const size_t end = text.find(']', at);
  while ((at = text.find('{', at)) < end) {
    const size_t close = text.find('}', at);
    const std::string object = text.substr(at, close - at);
    if (field(object, "roots") == "1")
      out[field(object, "k")] = {field(object, "root"), field(object, "leader")};
    at = close;
  }
  return out;
}

PublicKey from_base58(const std::string& text) {
  const std::string alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
  PublicKey out{};
  for (const char digit : text) {
    size_t carry = alphabet.find(digit);
    for (size_t i = out.size(); i-- > 0;) {
      carry += size_t{out[i]} * 58;
      out[i] = static_cast<uint8_t>(carry);
      carry >>= 8;
    }
  }
  return out;
}

// ---- packets ----

Layout layout_of_packet(const Bytes& packet) {
  return layout_of(variant_of(packet[offset::kVariant]));
}

uint32_t leaf_of(const Bytes& packet) {
  if (variant_of(packet[offset::kVariant]).type == ShredType::code)
    return load_u16(&packet[offset::kDataCount]) + load_u16(&packet[offset::kPosition]);
  return load_u32(&packet[offset::kIndex]) - load_u32(&packet[offset::kFecSetIndex]);
}

std::string set_of(const Bytes& packet) {
  return std::to_string(load_u64(&packet[offset::kSlot])) + ":" +
         std::to_string(load_u32(&packet[offset::kFecSetIndex]));
}

struct Capture {
  const char* folder;
  const char* name;
  size_t packets, sets, signed_sets;  // expected by kat.json and the data's README
};
constexpr Capture kCaptures[] = {
    {"firedancer-demo", "demo-shreds", 512, 8, 8},
    {"firedancer-testnet-385970984", "chained_resigned", 307, 5, 5},
    {"sig-testnet-356797362", "data", 992, 31, 31},
    {"sig-testnet-356797362", "code-reconstructed", 992, 31, 31},
    {"sig-mainnet-2024-08", "mainnet_shreds", 99, 88, 0},
    {"sig-agave-fec34", "fec34", 68, 1, 0},
    {"firedancer-localnet", "localnet-slot0", 4, 0, 0},
};

std::string folder_of(const std::string& name) { return test::testdata() + "/shreds/" + name; }

Packets packets_of(const std::string& folder, const std::string& name) {
  return test::read_lpb(folder_of(folder) + "/" + name + ".lpb");
}

// Roots of all packets, four packets at a time.
std::vector<Root> roots_of(const Packets& packets) {
  std::vector<Root> roots(packets.size());
  for (size_t begin = 0; begin < packets.size(); begin += kMerkleLanes) {
    const size_t count = std::min(kMerkleLanes, packets.size() - begin);
    MerkleInput inputs[kMerkleLanes];
    for (size_t i = 0; i < count; i++) {
      const Bytes& packet = packets[begin + i];
      const Variant variant = variant_of(packet[offset::kVariant]);
      CHECK(variant.known);
      CHECK(leaf_of(packet) < 1u << variant.proof_entries);
      inputs[i] = {packet.data(), layout_of(variant).proof_begin, variant.proof_entries,
                   static_cast<uint8_t>(leaf_of(packet))};
    }
    merkle_roots(inputs, count, &roots[begin]);
  }
  return roots;
}

// ---- code shreds from data shreds ----

// The variant of the code shreds for a data variant with the same proof size.
uint8_t code_variant(uint8_t data_variant) {
  const Variant variant = variant_of(data_variant);
  const uint8_t kind = variant.resigned ? 0x70 : variant.chained ? 0x60 : 0x40;
  return kind | variant.proof_entries;
}

// Rebuilds the code shreds of one set from as many data shreds; retransmitter signatures are zero.
Packets rebuilt_code(const Packets& data, Root& root) {
  const size_t count = data.size();
  const Layout from = layout_of_packet(data[0]);
  Packets code(count, Bytes(kCodeShredBytes));
  std::vector<const uint8_t*> data_shards;
  std::vector<uint8_t*> code_shards;
  std::vector<MerkleTree::Leaf> leaves;
  for (const Bytes& packet : data) {
    data_shards.push_back(packet.data() + kSignatureBytes);
    leaves.push_back({packet.data(), from.proof_begin});
  }
  for (uint16_t i = 0; i < count; i++) {
    uint8_t* packet = code[i].data();
    std::memcpy(packet, data[0].data(), offset::kDataCount);
    packet[offset::kVariant] = code_variant(data[0][offset::kVariant]);
    const uint32_t index = load_u32(&data[0][offset::kFecSetIndex]) + i;
    const uint16_t counts[3] = {static_cast<uint16_t>(count), static_cast<uint16_t>(count), i};
    std::memcpy(packet + offset::kIndex, &index, sizeof index);
    std::memcpy(packet + offset::kDataCount, counts, sizeof counts);
    const Layout layout = layout_of_packet(code[i]);
    std::memcpy(packet + layout.chained_begin, &data[0][from.chained_begin], kRootBytes);
    code_shards.push_back(packet + kCodeHeaderBytes);
    leaves.push_back({packet, layout.proof_begin});
  }
  ReedSolomon(count, count)
      .encode(data_shards.data(), code_shards.data(), from.body_end - kSignatureBytes);
  const MerkleTree tree(leaves);
  root = tree.root();
  for (size_t i = 0; i < count; i++)
    tree.write_proof(count + i, code[i].data() + layout_of_packet(code[i]).proof_begin);
  return code;
}

bool equal_but_retransmitter(const Bytes& left, const Bytes& right) {
  const size_t end = layout_of_packet(left).proof_end;
  return left.size() == right.size() &&
         std::equal(left.begin(), left.begin() + long(end), right.begin());
}

// ---- shredding again ----

Bytes entries_of(const Packets& data, size_t begin, size_t end) {
  Bytes entries;
  for (size_t i = begin; i < end; i++)
    entries.insert(entries.end(), data[i].begin() + kDataHeaderBytes,
                   data[i].begin() + load_u16(&data[i][offset::kSize]));
  return entries;
}

SlotPosition position_at(const Bytes& data) {
  SlotPosition position = {load_u64(&data[offset::kSlot]),
                           load_u16(&data[offset::kParentOffset]),
                           load_u16(&data[offset::kVersion]),
                           {},
                           load_u32(&data[offset::kFecSetIndex])};
  std::memcpy(position.chained_root.data(), &data[layout_of_packet(data).chained_begin],
              kRootBytes);
  return position;
}

// Compares all bytes except the signature, which another key made.
bool equal_but_signature(const PacketList& list, size_t i, const Bytes& packet) {
  return list.packet_bytes(i) == packet.size() &&
         std::memcmp(list.packet(i) + kSignatureBytes, packet.data() + kSignatureBytes,
                     packet.size() - kSignatureBytes) == 0;
}

}  // namespace

TEST(captures_roots_and_signatures) {
  if (test::testdata().empty()) SKIP("no testdata");
  for (const Capture& capture : kCaptures) {
    const Packets packets = packets_of(capture.folder, capture.name);
    const KnownSets known = known_sets(folder_of(capture.folder), capture.name);
    CHECK_EQ(packets.size(), capture.packets);
    CHECK_EQ(known.size(), capture.sets);
    const std::vector<Root> roots = roots_of(packets);
    std::map<std::string, bool> signed_sets;
    for (size_t i = 0; i < packets.size(); i++) {
      const auto set = known.find(set_of(packets[i]));
      if (set == known.end()) continue;
      CHECK_EQ(hex(roots[i].data(), kRootBytes), set->second.root);
      if (set->second.leader.empty() || signed_sets.contains(set->first)) continue;
      const VerifyingKey leader(from_base58(set->second.leader));
      Root other = roots[i];
      other[31] ^= 1;
      signed_sets[set->first] = leader.verify(packets[i].data(), roots[i].data(), kRootBytes);
      CHECK(!leader.verify(packets[i].data(), other.data(), kRootBytes));
    }
    CHECK_EQ(signed_sets.size(), capture.signed_sets);
    for (const auto& [name, verified] : signed_sets) CHECK(verified);
  }
}

TEST(captures_legacy_shreds_are_refused) {
  if (test::testdata().empty()) SKIP("no testdata");
  for (const auto& [folder, name] : {std::pair{"radiance-mainnet-102815960", "legacy-shreds"},
                                     std::pair{"firedancer-localnet", "localnet-slot50"}}) {
    const Packets packets = packets_of(folder, name);
    CHECK(!packets.empty());
    for (const Bytes& packet : packets) CHECK(!variant_of(packet[offset::kVariant]).known);
  }
}

TEST(captures_code_shreds_of_a_real_slot_rebuilt) {
  if (test::testdata().empty()) SKIP("no testdata");
  const std::string folder = "sig-testnet-356797362";
  const Packets data = packets_of(folder, "data"), code = packets_of(folder, "code-reconstructed");
  const KnownSets known = known_sets(folder_of(folder), "data");
  CHECK_EQ(data.size(), code.size());
  for (size_t begin = 0; begin + kFecSetShreds <= data.size(); begin += kFecSetShreds) {
    const Packets set(data.begin() + long(begin), data.begin() + long(begin + kFecSetShreds));
    Root root;
    const Packets rebuilt = rebuilt_code(set, root);
    CHECK_EQ(hex(root.data(), kRootBytes), known.at(set_of(set[0])).root);
    for (size_t i = 0; i < rebuilt.size(); i++)
      CHECK(equal_but_retransmitter(rebuilt[i], code[begin + i]));
  }
}

TEST(captures_code_shreds_of_other_set_sizes_rebuilt) {
  if (test::testdata().empty()) SKIP("no testdata");
  // 34 data and 34 code shreds: 68 leaves, proofs of 7 entries, odd nodes.
  const Packets packets = packets_of("sig-agave-fec34", "fec34");
  Packets data, code;
  for (const Bytes& packet : packets)
    (variant_of(packet[offset::kVariant]).type == ShredType::data ? data : code).push_back(packet);
  const auto by_leaf = [](const Bytes& a, const Bytes& b) { return leaf_of(a) < leaf_of(b); };
  std::sort(data.begin(), data.end(), by_leaf);
  std::sort(code.begin(), code.end(), by_leaf);
  CHECK_EQ(data.size(), size_t{34});
  Root root;
  const Packets rebuilt = rebuilt_code(data, root);
  const KnownSets known = known_sets(folder_of("sig-agave-fec34"), "fec34");
  CHECK_EQ(hex(root.data(), kRootBytes), known.at("1:0").root);
  CHECK_EQ(rebuilt.size(), code.size());
  for (size_t i = 0; i < rebuilt.size(); i++) CHECK(equal_but_retransmitter(rebuilt[i], code[i]));
}

TEST(captures_demo_block_shredded_again) {
  if (test::testdata().empty()) SKIP("no testdata");
  const SigningKey key(std::array<uint8_t, 32>{9});
  if (!key.valid()) SKIP("no Ed25519 library here");
  const Packets packets = packets_of("firedancer-demo", "demo-shreds");
  Packets data;
  for (const Bytes& packet : packets)
    if (variant_of(packet[offset::kVariant]).type == ShredType::data) data.push_back(packet);
  const Bytes entries = entries_of(data, 0, data.size());
  SlotPosition position = position_at(data[0]);
  PacketList list;
  CHECK(Shredder(key).shred(entries.data(), entries.size(), 0, true, position, list));
  CHECK_EQ(list.size(), packets.size());
  for (size_t i = 0; i < std::min(list.size(), packets.size()); i++)
    CHECK(equal_but_signature(list, i, packets[i]));
  const KnownSets known = known_sets(folder_of("firedancer-demo"), "demo-shreds");
  CHECK_EQ(hex(position.chained_root.data(), kRootBytes), known.at("0:224").root);
}

TEST(captures_real_batches_shredded_again) {
  if (test::testdata().empty()) SKIP("no testdata");
  const SigningKey key(std::array<uint8_t, 32>{9});
  if (!key.valid()) SKIP("no Ed25519 library here");
  const std::string folder = "sig-testnet-356797362";
  const Packets data = packets_of(folder, "data"), code = packets_of(folder, "code-reconstructed");
  SlotPosition position = position_at(data[0]);
  PacketList list;
  // Batches end with DATA_COMPLETE. The last batch of this old slot spans three resigned sets,
  // which current leaders do not make.
  size_t begin = 0;
  for (size_t i = 0; i < 896; i++) {
    if (!(data[i][offset::kFlags] & kFlagDataComplete)) continue;
    const Bytes entries = entries_of(data, begin, i + 1);
    const uint8_t tick = data[begin][offset::kFlags] & kReferenceTickMask;
    CHECK(Shredder(key).shred(entries.data(), entries.size(), tick, false, position, list));
    begin = i + 1;
  }
  CHECK_EQ(begin, size_t{896});
  CHECK_EQ(list.size(), 2 * begin);
  for (size_t i = 0; i < list.size(); i++) {
    const size_t leaf = i % kFecSetLeaves, at = i / kFecSetLeaves * kFecSetShreds;
    CHECK(equal_but_signature(
        list, i, leaf < kFecSetShreds ? data[at + leaf] : code[at + leaf - kFecSetShreds]));
  }
}
