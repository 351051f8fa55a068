#include "shred/shredder.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace shredway {
namespace {

constexpr size_t kCodeCount = kFecSetLeaves - kFecSetShreds;
constexpr size_t kSetBytes = kFecSetShreds * kDataShredBytes + kCodeCount * kCodeShredBytes;
// Erasure shards: the data shred from its variant to the end of its body, and the code shred's
// body.
constexpr size_t kDataShardBegin = kSignatureBytes;
constexpr size_t kCodeShardBegin = kCodeHeaderBytes;

void store_u16(uint8_t* p, size_t value) {
  const auto narrow = static_cast<uint16_t>(value);
  std::memcpy(p, &narrow, sizeof narrow);
}
void store_u32(uint8_t* p, uint32_t value) { std::memcpy(p, &value, sizeof value); }
void store_u64(uint8_t* p, uint64_t value) { std::memcpy(p, &value, sizeof value); }

uint8_t variant_byte(ShredType type, bool resigned) {
  const uint8_t kind =
      type == ShredType::data ? (resigned ? 0xb0 : 0x90) : (resigned ? 0x70 : 0x60);
  return kind | kProofEntries;
}

// Properties of one FEC set.
struct SetPlan {
  uint32_t fec_set_index;
  const uint8_t* entries;
  size_t entries_bytes;
  bool resigned;       // last set of the slot
  bool data_complete;  // last set of the batch
  uint8_t reference_tick;
};

// Builds one FEC set: 32 data then 32 code shreds, consecutive, initially zero.
class SetWriter {
 public:
  SetWriter(uint8_t* bytes, const SlotPosition& position, const SetPlan& plan)
      : bytes_(bytes),
        position_(position),
        plan_(plan),
        data_(layout_of(variant_of(variant_byte(ShredType::data, plan.resigned)))),
        code_(layout_of(variant_of(variant_byte(ShredType::code, plan.resigned)))) {}

  void write_data() const {
    const uint8_t* from = plan_.entries;
    size_t left_bytes = plan_.entries_bytes;
    for (uint32_t i = 0; i < kFecSetShreds; i++) {
      uint8_t* shred = packet(i);
      const size_t part_bytes = std::min<size_t>(left_bytes, data_.body_end - data_.body_begin);
      uint8_t flags = plan_.reference_tick;
      if (plan_.data_complete && i == kFecSetShreds - 1)
        flags |= plan_.resigned ? kFlagLastInSlot : kFlagDataComplete;
      write_common(shred, ShredType::data, i);
      store_u16(shred + offset::kParentOffset, position_.parent_offset);
      shred[offset::kFlags] = flags;
      store_u16(shred + offset::kSize, kDataHeaderBytes + part_bytes);
      if (part_bytes) std::memcpy(shred + data_.body_begin, from, part_bytes);
      std::memcpy(shred + data_.chained_begin, position_.chained_root.data(), kRootBytes);
      from += part_bytes;
      left_bytes -= part_bytes;
    }
  }

  void write_code(const ReedSolomon& reed_solomon) const {
    std::array<const uint8_t*, kFecSetShreds> data_shards;
    std::array<uint8_t*, kCodeCount> code_shards;
    for (uint32_t i = 0; i < kFecSetShreds; i++) data_shards[i] = packet(i) + kDataShardBegin;
    for (uint32_t i = 0; i < kCodeCount; i++) {
      uint8_t* shred = packet(kFecSetShreds + i);
      write_common(shred, ShredType::code, i);
      store_u16(shred + offset::kDataCount, kFecSetShreds);
      store_u16(shred + offset::kCodeCount, kCodeCount);
      store_u16(shred + offset::kPosition, i);
      std::memcpy(shred + code_.chained_begin, position_.chained_root.data(), kRootBytes);
      code_shards[i] = shred + kCodeShardBegin;
    }
    reed_solomon.encode(data_shards.data(), code_shards.data(), data_.body_end - kDataShardBegin);
  }

  // Writes proofs and signatures. Returns false if the key cannot sign.
  bool seal(const SigningKey& key, Root& root) const {
    std::vector<MerkleTree::Leaf> leaves(kFecSetLeaves);
    for (uint32_t i = 0; i < kFecSetLeaves; i++) leaves[i] = {packet(i), proof_begin(i)};
    const MerkleTree tree(leaves);
    Signature signature;
    root = tree.root();
    if (!key.sign(root.data(), root.size(), signature)) return false;
    for (uint32_t i = 0; i < kFecSetLeaves; i++) {
      std::memcpy(packet(i), signature.data(), signature.size());
      tree.write_proof(i, packet(i) + proof_begin(i));
    }
    return true;
  }

 private:
  // Shred with this leaf index in the Merkle tree.
  uint8_t* packet(uint32_t leaf) const {
    if (is_data_leaf(leaf)) return bytes_ + leaf * kDataShredBytes;
    return bytes_ + kFecSetShreds * kDataShredBytes + (leaf - kFecSetShreds) * kCodeShredBytes;
  }
  uint16_t proof_begin(uint32_t leaf) const {
    return is_data_leaf(leaf) ? data_.proof_begin : code_.proof_begin;
  }
  void write_common(uint8_t* shred, ShredType type, uint32_t position_in_set) const {
    shred[offset::kVariant] = variant_byte(type, plan_.resigned);
    store_u64(shred + offset::kSlot, position_.slot);
    store_u32(shred + offset::kIndex, plan_.fec_set_index + position_in_set);
    store_u16(shred + offset::kVersion, position_.version);
    store_u32(shred + offset::kFecSetIndex, plan_.fec_set_index);
  }

  uint8_t* bytes_;
  const SlotPosition& position_;
  const SetPlan& plan_;
  Layout data_, code_;
};

size_t set_capacity_bytes(bool resigned) {
  const Layout layout = layout_of(variant_of(variant_byte(ShredType::data, resigned)));
  return kFecSetShreds * size_t{layout.body_end} - kFecSetShreds * size_t{layout.body_begin};
}

// The last set of a batch that ends its slot holds as much as fits into a resigned set. The bytes
// before it fill chained sets from the front, so that the one before the last may be partly empty.
// Firedancer does the same: the tests rebuild its capture from the entries.
struct Cut {
  size_t sets;
  size_t last_set_bytes;
};
Cut cut_entries(size_t entries_bytes, bool last_in_slot) {
  const size_t chained_bytes = set_capacity_bytes(false);
  if (last_in_slot) {
    const size_t last_bytes = std::min(entries_bytes, set_capacity_bytes(true));
    return {(entries_bytes - last_bytes + chained_bytes - 1) / chained_bytes + 1, last_bytes};
  }
  const size_t sets = std::max<size_t>(1, (entries_bytes + chained_bytes - 1) / chained_bytes);
  return {sets, entries_bytes - (sets - 1) * chained_bytes};
}

bool is_valid(const SlotPosition& position) {
  if (position.parent_offset > position.slot) return false;
  if (position.parent_offset == 0 && position.slot != 0) return false;
  return position_in_fec_set(position.next_fec_set_index) == 0 &&
         position.next_fec_set_index <= kShredsPerSlotMax;
}

}  // namespace

Shredder::Shredder(const SigningKey& key) : key_(key) {}

bool Shredder::shred(const uint8_t* entries, size_t entries_bytes, uint8_t reference_tick,
                     bool last_in_slot, SlotPosition& position, PacketList& out) const {
  if (!is_valid(position) || !key_.valid()) return false;
  const Cut cut = cut_entries(entries_bytes, last_in_slot);
  if (cut.sets > (kShredsPerSlotMax - position.next_fec_set_index) / kFecSetShreds) return false;

  const size_t bytes_before = out.bytes.size();
  if (bytes_before + cut.sets * kSetBytes > UINT32_MAX) return false;  // offsets are u32
  const size_t packets_before = out.size();
  SlotPosition next = position;
  out.bytes.resize(bytes_before + cut.sets * kSetBytes);
  const size_t before_last_bytes = entries_bytes - cut.last_set_bytes;
  size_t entries_at = 0;
  for (size_t set = 0; set < cut.sets; set++) {
    const bool last = set + 1 == cut.sets;
    const size_t set_bytes =
        last ? cut.last_set_bytes
             : std::min(set_capacity_bytes(false), before_last_bytes - entries_at);
    const SetPlan plan = {.fec_set_index = next.next_fec_set_index,
                          .entries = entries + entries_at,
                          .entries_bytes = set_bytes,
                          .resigned = last && last_in_slot,
                          .data_complete = last,
                          .reference_tick = std::min(reference_tick, kReferenceTickMask)};
    const SetWriter writer(out.bytes.data() + bytes_before + set * kSetBytes, next, plan);
    Root root;
    writer.write_data();
    writer.write_code(reed_solomon_);
    if (!writer.seal(key_, root)) {
      out.bytes.resize(bytes_before);
      out.offsets.resize(packets_before + 1);
      return false;
    }
    next.chained_root = root;
    next.next_fec_set_index += kFecSetShreds;
    entries_at += set_bytes;
    for (uint32_t i = 0; i < kFecSetLeaves; i++)
      out.offsets.push_back(out.offsets.back() + static_cast<uint32_t>(leaf_shred_bytes(i)));
  }
  position = next;
  return true;
}

}  // namespace shredway
