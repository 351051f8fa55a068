// Wire format of shreds: the layout of the bytes, and the static rules of a valid shred.
//
// The worker calls check_packet for every packet. The bytes may be hostile: check_packet never
// reads beyond `length`, never allocates and reports errors only by its verdict. All integers are
// little-endian. Facts: Agave ledger/src/shred (b64857b5), Firedancer
// src/ballet/shred/fd_shred.h (178b48fe), SIMD-0504; checked against real captures in the tests.
//
//   common header            data header               code header
//   [ 0, 64) signature       [83, 85) parent offset    [83, 85) data shreds in the set (32)
//   [64, 65) variant         [85, 86) flags            [85, 87) code shreds in the set (32)
//   [65, 73) slot            [86, 88) size             [87, 89) position of this one
//   [73, 77) index
//   [77, 79) shred version   body, then the tail, anchored at the end of the fixed length:
//   [79, 83) FEC set index   chained root 32 | proof 20 each | retransmitter signature 64
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "shred/verdict.h"
#include "system/bytes.h"

namespace shredway {

inline constexpr size_t kPacketBytesMax = 1232;
inline constexpr size_t kDataShredBytes = 1203;
inline constexpr size_t kCodeShredBytes = 1228;
inline constexpr size_t kSignatureBytes = 64;
inline constexpr size_t kRootBytes = 32;
inline constexpr size_t kProofEntryBytes = 20;
inline constexpr size_t kDataHeaderBytes = 88;
inline constexpr size_t kCodeHeaderBytes = 89;
inline constexpr size_t kPingBytes = 132;

inline constexpr uint32_t kFecSetShreds = 32;                 // data shreds; as many code shreds
inline constexpr uint32_t kFecSetLeaves = 2 * kFecSetShreds;  // leaves of its Merkle tree
inline constexpr uint8_t kProofEntries = 6;                   // log2(64)
inline constexpr uint32_t kShredsPerSlotMax = 32768;          // of each type
inline constexpr uint32_t kFecSetsPerSlotMax = kShredsPerSlotMax / kFecSetShreds;

// Flags of a data shred. 0x80 is valid only together with kFlagDataComplete.
inline constexpr uint8_t kFlagDataComplete = 0x40;
inline constexpr uint8_t kFlagLastInSlot = 0xc0;
inline constexpr uint8_t kReferenceTickMask = 0x3f;

constexpr bool is_data_complete(uint8_t flags) { return (flags & kFlagDataComplete) != 0; }
constexpr bool is_last_in_slot(uint8_t flags) {
  return (flags & kFlagLastInSlot) == kFlagLastInSlot;
}
constexpr bool are_flags_valid(uint8_t flags) { return (flags & kFlagLastInSlot) != 0x80; }
constexpr uint8_t reference_tick(uint8_t flags) { return flags & kReferenceTickMask; }

// FEC sets of a slot are numbered from 0; each has the data shreds [32 n, 32 n + 32). Leaves of its
// Merkle tree are numbered from 0: first the data shreds, then the code shreds.
constexpr uint32_t fec_set_number(uint32_t shred_index) { return shred_index / kFecSetShreds; }
constexpr uint32_t position_in_fec_set(uint32_t shred_index) { return shred_index % kFecSetShreds; }
constexpr bool is_last_of_fec_set(uint32_t shred_index) {
  return position_in_fec_set(shred_index) == kFecSetShreds - 1;
}
constexpr bool is_data_leaf(uint32_t leaf) { return leaf < kFecSetShreds; }
constexpr size_t leaf_shred_bytes(uint32_t leaf) {
  return is_data_leaf(leaf) ? kDataShredBytes : kCodeShredBytes;
}

// Offsets from the start of the packet.
namespace offset {
inline constexpr size_t kVariant = 64, kSlot = 65, kIndex = 73, kVersion = 77, kFecSetIndex = 79;
inline constexpr size_t kParentOffset = 83, kFlags = 85, kSize = 86;
inline constexpr size_t kDataCount = 83, kCodeCount = 85, kPosition = 87;
}  // namespace offset

enum class ShredType : uint8_t { data = 0, code = 1 };

// Properties of a variant byte; kVariantBits has them for each of the 256 values.
enum VariantBits : uint8_t {
  kVariantMerkle = 1,
  kVariantLegacy = 2,     // 0xa5 or 0x5a: no Merkle proof
  kVariantCode = 4,       // else data
  kVariantChained = 8,    // contains the Merkle root of the preceding FEC set
  kVariantResigned = 16,  // ends with the signature of a retransmitter
  kVariantAccepted = 32,  // chained, with the proof of a tree of 64 leaves
};

constexpr std::array<uint8_t, 256> make_variant_bits() {
  std::array<uint8_t, 256> table{};
  const auto fill = [&table](size_t high_nibble, uint8_t bits) {
    for (size_t entries = 0; entries < 16; entries++) {
      const bool accepted = (bits & kVariantChained) != 0 && entries == kProofEntries;
      table[high_nibble << 4 | entries] =
          static_cast<uint8_t>(kVariantMerkle | bits | (accepted ? kVariantAccepted : 0));
    }
  };
  fill(0x4, kVariantCode);
  fill(0x6, kVariantCode | kVariantChained);
  fill(0x7, kVariantCode | kVariantChained | kVariantResigned);
  fill(0x8, 0);
  fill(0x9, kVariantChained);
  fill(0xb, kVariantChained | kVariantResigned);
  table[0xa5] = kVariantLegacy;
  table[0x5a] = kVariantLegacy | kVariantCode;
  return table;
}
inline constexpr std::array<uint8_t, 256> kVariantBits = make_variant_bits();

// The properties of a variant byte as a struct. `known` is false if the byte is not a variant of a
// Merkle shred.
struct Variant {
  bool known;
  ShredType type;
  bool chained;
  bool resigned;
  uint8_t proof_entries;  // 0..15
};
constexpr Variant variant_of(uint8_t byte) {
  const uint8_t bits = kVariantBits[byte];
  return {(bits & kVariantMerkle) != 0,
          (bits & kVariantCode) != 0 ? ShredType::code : ShredType::data,
          (bits & kVariantChained) != 0, (bits & kVariantResigned) != 0,
          static_cast<uint8_t>(byte & 0x0f)};
}

// The parts of a Merkle shred, as offsets from the start of the packet.
struct Layout {
  uint16_t shred_bytes;    // 1203 or 1228
  uint16_t body_begin;     // 88 or 89
  uint16_t body_end;       // end of the ledger data or parity
  uint16_t chained_begin;  // chained root (32 bytes) if the variant is chained, else proof_begin
  uint16_t proof_begin;    // end of the Merkle leaf [64, proof_begin)
  uint16_t proof_end;      // the retransmitter signature (64 bytes) follows if resigned
};
// Precondition: variant.known. Old variants (unchained, other proof sizes) have a layout as well.
Layout layout_of(const Variant& variant);

// A shred that passed every static rule. Valid while the packet does not change.
struct Shred {
  uint64_t slot;
  uint32_t index;
  uint32_t fec_set_index;
  uint16_t version;
  uint16_t bytes;        // 1203 or 1228: length of the shred; the packet may be longer
  uint16_t proof_begin;  // 1083 / 1019 (data), 1108 / 1044 (code)
  ShredType type;
  uint8_t leaf;   // index of its Merkle leaf: 0..31 data, 32..63 code
  uint8_t flags;  // flags of a data shred; 0 for a code shred

  uint16_t proof_end() const {
    return static_cast<uint16_t>(proof_begin + kProofEntries * kProofEntryBytes);
  }
  // True if the signature of a retransmitter follows the proof.
  bool resigned() const { return proof_end() < bytes; }
};

// Applies every rule that needs only the packet. Returns Verdict::first and fills `shred` if the
// packet is an acceptable shred; otherwise returns the first rule that it breaks, and `shred` is
// unspecified. `length` is the length of the datagram.
Verdict check_packet(const uint8_t* packet, size_t length, Shred& shred);

}  // namespace shredway
