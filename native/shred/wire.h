// Wire format of shreds: where the bytes are, and which packets are shreds at all.
//
// Called by the worker for every packet, and by merkle, shredder, tests and fuzzers. Reads hostile
// bytes: it never looks beyond `length`, never allocates, never fails otherwise than by a verdict.
// All integers are little-endian. Facts: Agave ledger/src/shred (b64857b5), Firedancer
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

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shred/verdict.h"

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

inline constexpr uint8_t kFlagDataComplete = 0x40;
inline constexpr uint8_t kFlagLastInSlot = 0xc0;
inline constexpr uint8_t kReferenceTickMask = 0x3f;

// Offsets from the start of the packet.
namespace offset {
inline constexpr size_t kVariant = 64, kSlot = 65, kIndex = 73, kVersion = 77, kFecSetIndex = 79;
inline constexpr size_t kParentOffset = 83, kFlags = 85, kSize = 86;
inline constexpr size_t kDataCount = 83, kCodeCount = 85, kPosition = 87;
}  // namespace offset

enum class ShredType : uint8_t { data = 0, code = 1 };

// What the variant byte says. `known` is false for bytes that are no Merkle shred variant.
struct Variant {
  bool known;
  ShredType type;
  bool chained;
  bool resigned;
  uint8_t proof_entries;  // 0..15
};
Variant variant_of(uint8_t byte);

// Where the parts of a Merkle shred lie. All are offsets from the start of the packet.
struct Layout {
  uint16_t shred_bytes;  // 1203 or 1228
  uint16_t body_begin;   // 88 or 89
  uint16_t body_end;     // ledger data or parity ends here
  uint16_t
      chained_begin;     // chained root (32 bytes) when the variant is chained, else == proof_begin
  uint16_t proof_begin;  // end of the Merkle leaf [64, proof_begin)
  uint16_t proof_end;    // retransmitter signature (64 bytes) follows when resigned
};
// Precondition: variant.known. Old variants (unchained, other proof sizes) have a layout, too.
Layout layout_of(const Variant& variant);

// A shred that passed every static rule. Valid as long as nobody changes the packet.
struct Shred {
  uint64_t slot;
  uint32_t index;
  uint32_t fec_set_index;
  uint16_t version;
  uint16_t bytes;        // 1203 or 1228: its own length; the packet may be longer
  uint16_t proof_begin;  // 1083 / 1019 (data), 1108 / 1044 (code)
  ShredType type;
  uint8_t leaf;   // number of its Merkle leaf: 0..31 data, 32..63 code
  uint8_t flags;  // data shreds only, else 0
};

// Applies every rule that needs nothing but the packet. Fills `shred` and returns Verdict::first
// when the packet is an acceptable shred; otherwise returns the first rule that it breaks and
// leaves `shred` unspecified. `length` is that of the datagram, of any size.
Verdict check_packet(const uint8_t* packet, size_t length, Shred& shred);

inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
inline uint64_t load_u64(const uint8_t* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "shreds and tables are little-endian");

}  // namespace shredway
