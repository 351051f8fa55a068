#include "deshred/fec_set.h"

#include <cstring>
#include <vector>

namespace shredway {
namespace {

// Offset of the Reed-Solomon shard in a packet; a data shred's shard includes its own header.
size_t shard_begin(uint8_t leaf) {
  return is_data_leaf(leaf) ? offset::kVariant : kCodeHeaderBytes;
}

// The data variant with the same chaining, resigning and proof: 0x66 -> 0x96, 0x76 -> 0xb6.
uint8_t data_variant_beside(uint8_t code_variant) {
  const Variant variant = variant_of(code_variant);
  const unsigned kind = variant.resigned ? 0xb0u : variant.chained ? 0x90u : 0x80u;
  return static_cast<uint8_t>(kind | variant.proof_entries);
}

Layout layout_of_packet(const uint8_t* packet) {
  return layout_of(variant_of(packet[offset::kVariant]));
}

}  // namespace

void FecSet::begin(const uint8_t* packet, const Shred& shred) {
  present_ = 0;
  slot_ = shred.slot;
  fec_set_index_ = shred.fec_set_index;
  add(packet, shred);
}

bool FecSet::belongs(const uint8_t* packet, const Shred& shred) const {
  const auto first = static_cast<uint8_t>(std::countr_zero(present_));
  if (std::memcmp(packets_[first], packet, kSignatureBytes) == 0) return true;
  const MerkleInput input = merkle_input(packet, shred);
  Root root;
  merkle_roots(&input, 1, &root);
  return root == signed_root();
}

void FecSet::add(const uint8_t* packet, const Shred& shred) {
  std::memcpy(packets_[shred.leaf], packet, shred.bytes);
  present_ |= uint64_t{1} << shred.leaf;
}

Root FecSet::signed_root() const {
  const auto leaf = static_cast<uint8_t>(std::countr_zero(present_));
  const Layout layout = layout_of_packet(packets_[leaf]);
  const MerkleInput input = {packets_[leaf], layout.proof_begin, kProofEntries, leaf};
  Root root;
  merkle_roots(&input, 1, &root);
  return root;
}

uint64_t FecSet::recover(const ReedSolomon& reed_solomon) {
  const Root root = signed_root();
  const uint64_t missing = ~present_;
  const auto code_leaf = static_cast<uint8_t>(std::countr_zero(present_ & ~kAllData));
  const Layout code_layout = layout_of_packet(packets_[code_leaf]);

  std::array<uint8_t*, kFecSetLeaves> shards;
  std::array<bool, kFecSetLeaves> present;
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    shards[leaf] = packets_[leaf] + shard_begin(leaf);
    present[leaf] = has(leaf);
  }
  const size_t shard_bytes = code_layout.body_end - code_layout.body_begin;
  if (!reed_solomon.recover(shards.data(), present.data(), shard_bytes)) return 0;
  complete_headers(missing);

  const uint8_t data_variant = data_variant_beside(packets_[code_leaf][offset::kVariant]);
  std::vector<MerkleTree::Leaf> leaves(kFecSetLeaves);
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    // With another layout than the code shreds', the set would have bytes that were never written.
    if (is_data_leaf(leaf) && packets_[leaf][offset::kVariant] != data_variant) return 0;
    leaves[leaf] = {packets_[leaf], layout_of_packet(packets_[leaf]).proof_begin};
  }
  const MerkleTree tree(leaves);
  if (tree.root() != root || !obeys_rules(missing)) return 0;
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++)
    if (missing >> leaf & 1) tree.write_proof(leaf, packets_[leaf] + leaves[leaf].proof_begin);
  present_ = ~uint64_t{0};
  return missing;
}

// Fills the parts outside the Reed-Solomon shards: signature, a code shred's header, the chained
// root and the retransmitter's signature.
void FecSet::complete_headers(uint64_t missing) {
  const auto code_leaf = static_cast<uint8_t>(std::countr_zero(present_ & ~kAllData));
  const uint8_t* code = packets_[code_leaf];
  const Variant code_variant = variant_of(code[offset::kVariant]);
  const Layout code_layout = layout_of(code_variant);
  // The data shreds' layout follows from the code shreds' variant, because both have the same
  // properties.
  const Layout data_layout = layout_of({true, ShredType::data, code_variant.chained,
                                        code_variant.resigned, code_variant.proof_entries});
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    if (!(missing >> leaf & 1)) continue;
    uint8_t* packet = packets_[leaf];
    const Layout& layout = is_data_leaf(leaf) ? data_layout : code_layout;
    std::memcpy(packet, code, kSignatureBytes);
    if (!is_data_leaf(leaf)) {
      const auto position = static_cast<uint16_t>(leaf - kFecSetShreds);
      const uint32_t index = fec_set_index_ + position;
      std::memcpy(packet + offset::kVariant, code + offset::kVariant,
                  kCodeHeaderBytes - offset::kVariant);
      std::memcpy(packet + offset::kIndex, &index, sizeof index);
      std::memcpy(packet + offset::kPosition, &position, sizeof position);
    }
    if (code_variant.chained)
      std::memcpy(packet + layout.chained_begin, code + code_layout.chained_begin, kRootBytes);
    std::memcpy(packet + layout.proof_end, code + code_layout.proof_end,
                layout.shred_bytes - layout.proof_end);
  }
}

// The root proves that the leader signed these bytes, not that they are valid.
bool FecSet::obeys_rules(uint64_t missing) const {
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    if (!(missing >> leaf & 1)) continue;
    Shred shred;
    if (check_packet(packets_[leaf], leaf_shred_bytes(leaf), shred) != Verdict::first) return false;
    if (shred.slot != slot_ || shred.fec_set_index != fec_set_index_ || shred.leaf != leaf)
      return false;
  }
  return true;
}

}  // namespace shredway
