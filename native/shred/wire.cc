#include "shred/wire.h"

namespace shredway {
namespace {

Verdict check_variant(uint8_t bits) {
  if (bits & kVariantAccepted) return Verdict::first;
  if (bits & kVariantLegacy) return Verdict::legacy_variant;
  if (!(bits & kVariantMerkle)) return Verdict::unknown_variant;
  return bits & kVariantChained ? Verdict::proof_size_invalid : Verdict::unchained_variant;
}

Verdict check_data_header(const uint8_t* packet, Shred& shred) {
  const uint16_t parent_offset = load_u16(packet + offset::kParentOffset);
  const uint16_t data_bytes = load_u16(packet + offset::kSize);
  const size_t data_bytes_max = shred.proof_begin - kRootBytes;  // 1051; if resigned 987
  shred.flags = packet[offset::kFlags];
  if (!are_flags_valid(shred.flags)) return Verdict::flags_invalid;
  if (is_data_complete(shred.flags) && !is_last_of_fec_set(shred.index))
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
  // index - FEC set index is below 32, so equality bounds the position as well.
  if (load_u16(packet + offset::kPosition) != shred.index - shred.fec_set_index)
    return Verdict::code_position_invalid;
  return Verdict::first;
}

}  // namespace

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

  const uint8_t variant_bits = kVariantBits[packet[offset::kVariant]];
  const Verdict variant_verdict = check_variant(variant_bits);
  if (variant_verdict != Verdict::first) return variant_verdict;
  const bool data = (variant_bits & kVariantCode) == 0;
  const size_t shred_bytes = data ? kDataShredBytes : kCodeShredBytes;
  if (length < shred_bytes) return Verdict::too_short;

  shred.slot = load_u64(packet + offset::kSlot);
  shred.index = load_u32(packet + offset::kIndex);
  shred.version = load_u16(packet + offset::kVersion);
  shred.fec_set_index = load_u32(packet + offset::kFecSetIndex);
  shred.bytes = static_cast<uint16_t>(shred_bytes);
  shred.proof_begin =
      static_cast<uint16_t>(shred_bytes - (variant_bits & kVariantResigned ? kSignatureBytes : 0) -
                            kProofEntries * kProofEntryBytes);
  shred.type = data ? ShredType::data : ShredType::code;
  shred.flags = 0;

  if (shred.index >= kShredsPerSlotMax || shred.fec_set_index > kShredsPerSlotMax - kFecSetShreds)
    return Verdict::index_too_large;
  if (position_in_fec_set(shred.fec_set_index) != 0) return Verdict::fec_set_misaligned;
  const uint32_t position = shred.index - shred.fec_set_index;  // wraps below the set
  if (position >= kFecSetShreds) return Verdict::index_outside_fec_set;
  shred.leaf = static_cast<uint8_t>(data ? position : kFecSetShreds + position);
  return data ? check_data_header(packet, shred) : check_code_header(packet, shred);
}

}  // namespace shredway
