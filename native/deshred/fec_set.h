// FEC set: the shreds of one set as they come, and the whole set from any 32 of its 64.
//
// Owned by the deshredder, one for each set in progress. Its shreds are authentic: whoever adds one
// has checked that its Merkle root is signed, so the first shred's root is the set's. What recovery
// computes is believed only when its Merkle tree has that very root and every recovered packet
// obeys the static rules; a leader who signed nonsense gets nothing through.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "shred/merkle.h"
#include "shred/reed_solomon.h"
#include "shred/wire.h"

namespace shredway {

// 79 kB; plain memory without constructor, so that a pool of them costs nothing until it is used.
class FecSet {
 public:
  static constexpr uint64_t kAllData = 0xffff'ffffu;

  // Empties it for the set of this shred.
  void begin(const uint8_t* packet, const Shred& shred);
  // The same signature, or another one over the same root.
  bool belongs(const uint8_t* packet, const Shred& shred) const;
  bool has(uint8_t leaf) const { return present_ >> leaf & 1; }
  // Precondition: belongs, not has(shred.leaf).
  void add(const uint8_t* packet, const Shred& shred);

  unsigned shred_count() const { return static_cast<unsigned>(std::popcount(present_)); }
  bool data_complete() const { return (present_ & kAllData) == kAllData; }
  bool recoverable() const { return !data_complete() && shred_count() >= kFecSetShreds; }

  // Fills in every missing shred, whole packets with proofs, and returns the bits of those that
  // were missing; 0 when the computed set has not the signed root or breaks a rule (then forget the
  // set). Precondition: recoverable.
  uint64_t recover(const ReedSolomon& reed_solomon);

  // Packet of a leaf (0..31 data, 32..63 code); meaningless unless has(leaf).
  const uint8_t* packet(uint8_t leaf) const { return packets_[leaf]; }

 private:
  Root signed_root() const;
  void complete_headers(uint64_t missing);
  bool obeys_rules(uint64_t missing) const;

  uint64_t present_;
  uint64_t slot_;
  uint32_t fec_set_index_;
  uint8_t packets_[kFecSetLeaves][kPacketBytesMax];
};

}  // namespace shredway
