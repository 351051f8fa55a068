// Proofs lead to the root of their tree, in any mix of lanes.
//
// The tree is checked against a simple recomputation from the definition; shred_captures_test.cc
// checks real captures.
#include "shred/merkle.h"

#include <cstring>
#include <string>

#include "check.h"

namespace {

using namespace shredway;
using Bytes = std::vector<uint8_t>;

constexpr uint16_t kProofBegin = 1000;

std::vector<Bytes> random_packets(size_t count, uint32_t seed) {
  std::vector<Bytes> packets(count, Bytes(kPacketBytesMax + 100));
  for (Bytes& packet : packets)
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>((seed = seed * 1664525 + 7) >> 24);
  return packets;
}

std::vector<MerkleTree::Leaf> leaves_of(const std::vector<Bytes>& packets) {
  std::vector<MerkleTree::Leaf> leaves;
  for (const Bytes& packet : packets) leaves.push_back({packet.data(), kProofBegin});
  return leaves;
}

Root hash(const std::string& prefix, const Bytes& body) {
  const Bytes head(prefix.begin(), prefix.end());
  Root out;
  sha256(head.data(), head.size(), body.data(), body.size(), out);
  return out;
}

// The definition: levels of nodes over the first 20 bytes of their children.
Root root_by_definition(const std::vector<Bytes>& packets) {
  std::vector<Root> level;
  for (const Bytes& packet : packets)
    level.push_back(hash(std::string("\0SOLANA_MERKLE_SHREDS_LEAF", 26),
                         Bytes(packet.begin() + 64, packet.begin() + kProofBegin)));
  while (level.size() > 1) {
    std::vector<Root> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      const Root& right = i + 1 < level.size() ? level[i + 1] : level[i];
      Bytes children(level[i].begin(), level[i].begin() + 20);
      children.insert(children.end(), right.begin(), right.begin() + 20);
      above.push_back(hash("\1SOLANA_MERKLE_SHREDS_NODE", children));
    }
    level = above;
  }
  return level[0];
}

MerkleInput input_of(const Bytes& packet, size_t leaf, size_t entries) {
  return {packet.data(), kProofBegin, static_cast<uint8_t>(entries), static_cast<uint8_t>(leaf)};
}

size_t log2_ceiling(size_t count) {
  size_t levels = 0;
  while (size_t{1} << levels < count) levels++;
  return levels;
}

}  // namespace

TEST(merkle_tree_and_proofs_of_any_leaf_count) {
  for (const bool portable : {false, true}) {
    sha256_force_portable(portable);
    for (const size_t count : {1u, 2u, 3u, 5u, 7u, 28u, 63u, 64u, 65u, 68u, 100u, 255u}) {
      std::vector<Bytes> packets = random_packets(count, static_cast<uint32_t>(count));
      const MerkleTree tree(leaves_of(packets));
      CHECK_EQ(tree.proof_entries(), log2_ceiling(count));
      CHECK(tree.root() == root_by_definition(packets));
      for (size_t leaf = 0; leaf < count; leaf++) {
        tree.write_proof(leaf, packets[leaf].data() + kProofBegin);
        const MerkleInput input = input_of(packets[leaf], leaf, tree.proof_entries());
        Root root;
        merkle_roots(&input, 1, &root);
        CHECK(root == tree.root());
      }
    }
  }
  sha256_force_portable(false);
}

TEST(merkle_lanes_of_different_proof_size) {
  // Trees of 1, 2, 34 and 256 leaves: proofs of 0, 1, 6 and 8 entries side by side.
  constexpr size_t kCounts[kMerkleLanes] = {1, 2, 34, 256};
  std::vector<std::vector<Bytes>> packets;
  std::vector<MerkleTree> trees;
  for (const size_t count : kCounts) {
    packets.push_back(random_packets(count, static_cast<uint32_t>(7 * count)));
    trees.emplace_back(leaves_of(packets.back()));
    for (size_t leaf = 0; leaf < count; leaf++)
      trees.back().write_proof(leaf, packets.back()[leaf].data() + kProofBegin);
  }
  for (size_t round = 0; round < 256; round++) {
    for (size_t lanes = 1; lanes <= kMerkleLanes; lanes++) {
      MerkleInput inputs[kMerkleLanes];
      Root roots[kMerkleLanes];
      for (size_t i = 0; i < lanes; i++) {
        const size_t which = (i + round) % kMerkleLanes;
        const size_t leaf = round % kCounts[which];
        inputs[i] = input_of(packets[which][leaf], leaf, trees[which].proof_entries());
      }
      merkle_roots(inputs, lanes, roots);
      for (size_t i = 0; i < lanes; i++)
        CHECK(roots[i] == trees[(i + round) % kMerkleLanes].root());
    }
  }
}

TEST(merkle_every_altered_byte_changes_the_root) {
  std::vector<Bytes> packets = random_packets(64, 5);
  const MerkleTree tree(leaves_of(packets));
  constexpr size_t kLeaf = 37;
  Bytes& packet = packets[kLeaf];
  tree.write_proof(kLeaf, packet.data() + kProofBegin);
  const size_t proof_end = kProofBegin + tree.proof_entries() * kProofEntryBytes;
  const MerkleInput input = input_of(packet, kLeaf, tree.proof_entries());
  Root root;
  for (size_t i = 0; i < packet.size(); i++) {
    packet[i] ^= 1;
    merkle_roots(&input, 1, &root);
    CHECK_EQ(root == tree.root(), i < 64 || i >= proof_end);
    packet[i] ^= 1;
  }
  for (size_t leaf = 0; leaf < 64; leaf++) {
    const MerkleInput moved = input_of(packet, leaf, tree.proof_entries());
    merkle_roots(&moved, 1, &root);
    CHECK_EQ(root == tree.root(), leaf == kLeaf);
  }
}
