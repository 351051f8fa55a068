// FEC set: collects the shreds of one set and recovers the whole set from any 32 of its 64 shreds.
//
// The deshredder owns one for each set in progress. Its shreds are authentic: the caller of add()
// has checked that their Merkle root is signed, so the first shred's root is the set's. A recovered
// set is accepted only if its Merkle tree has the same root and every recovered packet follows the
// static rules, so that a leader cannot inject invalid shreds.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "shred/merkle.h"
#include "shred/reed_solomon.h"
#include "shred/wire.h"

namespace shredway {

// 79 kB of plain memory without a constructor, so that a pool costs nothing until it is used.
class FecSet {
 public:
  static constexpr uint64_t kAllData = 0xffff'ffffu;

  // Resets it for the set of this shred.
  void begin(const uint8_t* packet, const Shred& shred);
  // True if the shred has the same signature, or another one over the same root.
  bool belongs(const uint8_t* packet, const Shred& shred) const;
  bool has(uint8_t leaf) const { return present_ >> leaf & 1; }
  // Precondition: belongs, not has(shred.leaf).
  void add(const uint8_t* packet, const Shred& shred);

  unsigned shred_count() const { return static_cast<unsigned>(std::popcount(present_)); }
  bool data_complete() const { return (present_ & kAllData) == kAllData; }
  bool recoverable() const { return !data_complete() && shred_count() >= kFecSetShreds; }

  // Computes every missing shred as a whole packet with its proof, and returns the bits of those
  // leaves. Returns 0 if the computed set does not have the signed root or breaks a rule; then
  // discard the set. Precondition: recoverable.
  uint64_t recover(const ReedSolomon& reed_solomon);

  // Packet of a leaf (0..31 data, 32..63 code); unspecified unless has(leaf).
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
