#include "shred/wire.h"

namespace shredway {
namespace {

constexpr uint8_t kLegacyData = 0xa5;
constexpr uint8_t kLegacyCode = 0x5a;

// What the high nibble of a Merkle variant says; kind 0 is no Merkle shred.
struct Kind {
  uint8_t known;
  ShredType type;
  uint8_t chained;
  uint8_t resigned;
};
constexpr Kind kKinds[16] = {
    {},
    {},
    {},
    {},
    {1, ShredType::code, 0, 0},  // 0x4_
    {},
    {1, ShredType::code, 1, 0},  // 0x6_
    {1, ShredType::code, 1, 1},  // 0x7_
    {1, ShredType::data, 0, 0},  // 0x8_
    {1, ShredType::data, 1, 0},  // 0x9_
    {},
    {1, ShredType::data, 1, 1},  // 0xb_
    {},
    {},
    {},
    {},
};

Verdict check_variant(uint8_t byte) {
  if (byte == kLegacyData || byte == kLegacyCode) return Verdict::legacy_variant;
  const Kind kind = kKinds[byte >> 4];
  if (!kind.known) return Verdict::unknown_variant;
  if (!kind.chained) return Verdict::unchained_variant;
  if ((byte & 0x0f) != kProofEntries) return Verdict::proof_size_invalid;
  return Verdict::first;
}

Verdict check_data_header(const uint8_t* packet, Shred& shred) {
  const uint16_t parent_offset = load_u16(packet + offset::kParentOffset);
  const uint16_t data_bytes = load_u16(packet + offset::kSize);
  const size_t data_bytes_max = shred.proof_begin - kRootBytes;  // 1051, resigned 987
  shred.flags = packet[offset::kFlags];
  if ((shred.flags & kFlagLastInSlot) == 0x80) return Verdict::flags_invalid;
  if ((shred.flags & kFlagDataComplete) && shred.index % kFecSetShreds != kFecSetShreds - 1)
    return Verdict::data_complete_misplaced;
  if (parent_offset > shred.slot || (parent_offset == 0 && shred.slot != 0))
    return Verdict::parent_invalid;
  if (data_bytes < kDataHeaderBytes || data_bytes > data_bytes_max) return Verdict::size_invalid;
  return Verdict::first;
}

Verdict check_code_header(const uint8_t* packet, Shred& shred) {
  if (load_u16(packet + offset::kDataCount) != kFecSetShreds ||
      load_u16(packet + offset::kCodeCount) != kFecSetShreds)
    return Verdict::code_counts_invalid;
  // index - FEC set index is below 32 already, so equality bounds the position, too.
  if (load_u16(packet + offset::kPosition) != shred.index - shred.fec_set_index)
    return Verdict::code_position_invalid;
  return Verdict::first;
}

}  // namespace

Variant variant_of(uint8_t byte) {
  const Kind kind = kKinds[byte >> 4];
  const bool legacy = byte == kLegacyData || byte == kLegacyCode;
  return {kind.known && !legacy, kind.type, kind.chained != 0, kind.resigned != 0,
          static_cast<uint8_t>(byte & 0x0f)};
}

Layout layout_of(const Variant& variant) {
  const bool data = variant.type == ShredType::data;
  const size_t shred_bytes = data ? kDataShredBytes : kCodeShredBytes;
  const size_t proof_end = shred_bytes - (variant.resigned ? kSignatureBytes : 0);
  const size_t proof_begin = proof_end - variant.proof_entries * kProofEntryBytes;
  const size_t chained_begin = proof_begin - (variant.chained ? kRootBytes : 0);
  return {static_cast<uint16_t>(shred_bytes),
          static_cast<uint16_t>(data ? kDataHeaderBytes : kCodeHeaderBytes),
          static_cast<uint16_t>(chained_begin),
          static_cast<uint16_t>(chained_begin),
          static_cast<uint16_t>(proof_begin),
          static_cast<uint16_t>(proof_end)};
}

Verdict check_packet(const uint8_t* packet, size_t length, Shred& shred) {
  if (length > kPacketBytesMax) return Verdict::oversized;
  if (length == kPingBytes && load_u32(packet) == 4) return Verdict::ping;
  if (length <= offset::kVariant) return Verdict::too_short;

  const uint8_t variant_byte = packet[offset::kVariant];
  const Verdict variant_verdict = check_variant(variant_byte);
  if (variant_verdict != Verdict::first) return variant_verdict;
  const Kind kind = kKinds[variant_byte >> 4];
  const bool data = kind.type == ShredType::data;
  const size_t shred_bytes = data ? kDataShredBytes : kCodeShredBytes;
  if (length < shred_bytes) return Verdict::too_short;

  shred.slot = load_u64(packet + offset::kSlot);
  shred.index = load_u32(packet + offset::kIndex);
  shred.version = load_u16(packet + offset::kVersion);
  shred.fec_set_index = load_u32(packet + offset::kFecSetIndex);
  shred.bytes = static_cast<uint16_t>(shred_bytes);
  shred.proof_begin = static_cast<uint16_t>(shred_bytes - (kind.resigned ? kSignatureBytes : 0) -
                                            kProofEntries * kProofEntryBytes);
  shred.type = kind.type;
  shred.flags = 0;

  if (shred.index >= kShredsPerSlotMax || shred.fec_set_index > kShredsPerSlotMax - kFecSetShreds)
    return Verdict::index_too_large;
  if (shred.fec_set_index % kFecSetShreds != 0) return Verdict::fec_set_misaligned;
  const uint32_t position = shred.index - shred.fec_set_index;  // wraps when below the set
  if (position >= kFecSetShreds) return Verdict::index_outside_fec_set;
  shred.leaf = static_cast<uint8_t>(data ? position : kFecSetShreds + position);
  return data ? check_data_header(packet, shred) : check_code_header(packet, shred);
}

}  // namespace shredway
