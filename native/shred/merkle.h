// Merkle trees of FEC sets: computes the root that the leader signed from a shred and its proof.
//
// Used by the worker (proof to root, up to four shreds at once), by the shredder (whole trees) and
// by tests. Pure functions; merkle_roots does not allocate. Agave ledger/src/shred/merkle_tree.rs
// (b64857b5):
//   leaf = SHA-256(0x00 "SOLANA_MERKLE_SHREDS_LEAF" || packet[64, proof_begin))
//   node = SHA-256(0x01 "SOLANA_MERKLE_SHREDS_NODE" || left[0, 20) || right[0, 20))
// An odd last node is paired with itself. The root is the full 32 bytes of the top node.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "crypto/sha256.h"
#include "shred/wire.h"

namespace shredway {

using Root = std::array<uint8_t, kRootBytes>;

struct MerkleInput {
  const uint8_t* packet;  // whole shred; the leaf is packet[64, proof_begin)
  uint16_t proof_begin;   // the proof follows: proof_entries x 20 bytes
  uint8_t proof_entries;  // 0..15
  uint8_t leaf;           // index of the leaf
};
inline MerkleInput merkle_input(const uint8_t* packet, const Shred& shred) {
  return {packet, shred.proof_begin, kProofEntries, shred.leaf};
}

inline constexpr size_t kMerkleLanes = kSha256Lanes;

// Computes the roots of the proofs. Precondition: 1 <= count <= kMerkleLanes, every leaf index is
// below 2^proof_entries. A wrong proof gives a wrong root, never an error.
void merkle_roots(const MerkleInput* inputs, size_t count, Root* roots);

// Whole tree over the leaves of one set, for making and recovering shreds.
class MerkleTree {
 public:
  // The leaf covers packet[64, proof_begin). At least one leaf.
  struct Leaf {
    const uint8_t* packet;
    uint16_t proof_begin;
  };
  explicit MerkleTree(const std::vector<Leaf>& leaves);
  const Root& root() const { return levels_.back().front(); }
  size_t proof_entries() const { return levels_.size() - 1; }
  // Writes proof_entries() x 20 bytes.
  void write_proof(size_t leaf, uint8_t* out) const;

 private:
  std::vector<std::vector<Root>> levels_;  // leaves first, root last
};

}  // namespace shredway
