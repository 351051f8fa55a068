#include "deshred_support.h"

#include "check.h"

namespace shredway::test {
namespace {

const SigningKey& leader() {
  static const SigningKey key(std::array<uint8_t, 32>{7});
  return key;
}

void append_bytes(Bytes& to, const Bytes& from) { to.insert(to.end(), from.begin(), from.end()); }

void append_entry(Bytes& batch, const std::vector<Bytes>& transactions) {
  append(batch, uint64_t{1});
  for (size_t i = 0; i < kHashBytes; i++) batch.push_back(static_cast<uint8_t>(batch.size()));
  append(batch, static_cast<uint64_t>(transactions.size()));
  for (const Bytes& transaction : transactions) append_bytes(batch, transaction);
}

}  // namespace

Bytes small_transaction(std::mt19937& random) {
  Bytes out{1};
  for (size_t i = 0; i < 64; i++) out.push_back(static_cast<uint8_t>(random()));
  append_bytes(out, {1, 0, 0, 1});
  out.resize(out.size() + 32 + 32, 0xab);
  out.push_back(0);
  return out;
}

Bytes entry_batch(const std::vector<std::vector<Bytes>>& entries) {
  Bytes batch;
  append(batch, static_cast<uint64_t>(2 * entries.size()));
  for (const auto& transactions : entries) {
    append_entry(batch, transactions);
    append_entry(batch, {});
  }
  return batch;
}

BatchedSlot make_batched_slot(uint64_t slot, const std::vector<Bytes>& batches) {
  BatchedSlot out{slot, {}, {}};
  SlotPosition position{slot, 1, 1, Root{}, 0};
  PacketList packets;
  for (size_t i = 0; i < batches.size(); i++) {
    BatchedSlot::Batch batch{position.next_fec_set_index, 0, {}};
    const bool last = i + 1 == batches.size();
    CHECK(
        Shredder(leader()).shred(batches[i].data(), batches[i].size(), 1, last, position, packets));
    batch.sets = (position.next_fec_set_index - batch.first_index) / kFecSetShreds;
    out.batches.push_back(batch);
  }
  for (size_t i = 0; i < packets.size(); i++)
    out.packets.emplace_back(packets.packet(i), packets.packet(i) + packets.packet_bytes(i));
  return out;
}

BatchedSlot make_batched_slot(uint64_t slot, const std::vector<size_t>& batch_transactions,
                              std::mt19937& random) {
  std::vector<Bytes> batches;
  std::vector<std::vector<std::string>> signatures;
  for (const size_t count : batch_transactions) {
    std::vector<std::vector<Bytes>> entries(1);
    signatures.emplace_back();
    for (size_t k = 0; k < count; k++) {
      const Bytes transaction = small_transaction(random);
      signatures.back().push_back(hex(&transaction[1], 64));
      if (entries.back().size() == 5) entries.emplace_back();
      entries.back().push_back(transaction);
    }
    batches.push_back(entry_batch(entries));
  }
  BatchedSlot out = make_batched_slot(slot, batches);
  for (size_t i = 0; i < batches.size(); i++) out.batches[i].signatures = signatures[i];
  return out;
}

Bytes block_marker(BlockMarkerKind kind, size_t payload_bytes) {
  Bytes batch;
  append(batch, uint64_t{0});
  append(batch, uint16_t{1});
  batch.push_back(static_cast<uint8_t>(kind));
  append(batch, static_cast<uint16_t>(payload_bytes));
  batch.resize(batch.size() + payload_bytes, 1);
  return batch;
}

PublicKey batched_slot_leader() { return leader().public_key(); }

void sign_again(std::vector<Bytes>& packets, size_t first) {
  std::vector<MerkleTree::Leaf> leaves;
  for (size_t i = 0; i < kFecSetLeaves; i++) {
    const Bytes& packet = packets[first + i];
    leaves.push_back({packet.data(), layout_of(variant_of(packet[offset::kVariant])).proof_begin});
  }
  const MerkleTree tree(leaves);
  Signature signature{};
  CHECK(leader().sign(tree.root().data(), kRootBytes, signature));
  for (size_t i = 0; i < kFecSetLeaves; i++) {
    Bytes& packet = packets[first + i];
    tree.write_proof(i, packet.data() + leaves[i].proof_begin);
    std::copy(signature.begin(), signature.end(), packet.begin());
  }
}

std::vector<std::string> DeshredRecorder::signatures_of(uint64_t slot, uint32_t batch_index) const {
  std::vector<std::string> out;
  for (const Seen& seen : transactions) {
    if (seen.slot != slot || seen.batch_index != batch_index) continue;
    CHECK_EQ(seen.ordinal, out.size());
    out.push_back(seen.signature);
  }
  return out;
}

void DeshredRecorder::on_entry(const BatchPlace& place, const Entry& entry) {
  hashes[place.slot << 16 | place.batch_index].append(reinterpret_cast<const char*>(entry.hash),
                                                      kHashBytes);
  if (entry.transaction_count == 0) ticks++;
}

void DeshredRecorder::on_transaction(const BatchPlace& place, const EntryTransaction& seen) {
  transactions.push_back({place.slot, place.batch_index, seen.ordinal, place.shred_index,
                          place.arrival_ns,
                          hex(seen.bytes + seen.transaction.signatures_begin, 64)});
}

void DeshredRecorder::on_recovered(const FecSet& set, uint64_t missing) {
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    if (!(missing >> leaf & 1)) continue;
    recovered_shreds++;
    recovered.emplace_back(set.packet(leaf), set.packet(leaf) + leaf_shred_bytes(leaf));
  }
}

void add_packet(Deshredder& deshredder, const Bytes& packet, uint64_t received_ns) {
  Shred shred;
  CHECK_EQ(check_packet(packet.data(), packet.size(), shred), Verdict::first);
  deshredder.add(packet.data(), shred, received_ns);
}

}  // namespace shredway::test
