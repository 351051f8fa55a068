#include "transaction/wire.h"

#include <bit>
#include <cstring>

namespace shredway {
namespace {

constexpr uint8_t kVersionBit = 0x80;
constexpr uint8_t kV0Prefix = 0x80;
constexpr uint8_t kV1Prefix = 0x81;
constexpr size_t kLifetimeBytes = 32;

// Offsets in a v1 transaction up to its first part of variable length.
constexpr size_t kV1ConfigMask = 4, kV1Lifetime = 8, kV1InstructionCount = 40, kV1KeyCount = 41;
constexpr size_t kV1FixedBytes = 42;
constexpr size_t kV1InstructionHeaderBytes = 4;

// Walks over the bytes in their order and decides by nothing else than the bytes that it walked
// over: so the result for a prefix never contradicts the result for more bytes.
class Cursor {
 public:
  // `bytes_max`: no transaction of this version is longer.
  Cursor(const uint8_t* bytes, size_t length, size_t bytes_max)
      : bytes_(bytes), limit_(length < bytes_max ? length : bytes_max), bytes_max_(bytes_max) {}

  uint16_t at() const { return static_cast<uint16_t>(at_); }
  uint8_t last() const { return bytes_[at_ - 1]; }
  ParseResult failure() const { return failure_; }
  size_t needed() const { return needed_; }

  // Steps over `count` bytes, which may then be read. False when they are not all there.
  bool skip(size_t count) {
    if (count > limit_ - at_) return refuse(count);
    at_ += count;
    return true;
  }
  bool malformed() {
    failure_ = ParseResult::malformed;
    return false;
  }
  bool read_compact_u16(size_t& value) {
    if (at_ < limit_ && bytes_[at_] < 0x80) {
      value = bytes_[at_++];
      return true;
    }
    return read_long_compact_u16(value);
  }
  // A compact-u16 and as many elements of `element_bytes`.
  bool skip_list(size_t element_bytes) {
    size_t count;
    return read_compact_u16(count) && skip(count * element_bytes);
  }

 private:
  bool refuse(size_t count) {
    needed_ = at_ + count;
    failure_ = needed_ > bytes_max_ ? ParseResult::malformed : ParseResult::incomplete;
    return false;
  }
  bool read_long_compact_u16(size_t& value) {
    uint16_t parsed;
    size_t used;
    const ParseResult result = parse_compact_u16(bytes_ + at_, limit_ - at_, parsed, used);
    if (result == ParseResult::malformed) return malformed();
    if (result == ParseResult::incomplete) return refuse(limit_ - at_ + 1);
    value = parsed;
    return skip(used);
  }

  const uint8_t* bytes_;
  size_t at_ = 0;
  size_t limit_;
  size_t bytes_max_;
  size_t needed_ = 0;
  ParseResult failure_ = ParseResult::malformed;
};

bool parse_instructions(Cursor& cursor, Transaction& out) {
  size_t count;
  if (!cursor.read_compact_u16(count)) return false;
  out.instructions_begin = cursor.at();
  out.instruction_count = static_cast<uint16_t>(count);
  for (size_t i = 0; i < count; i++)
    if (!cursor.skip(1) || !cursor.skip_list(1) || !cursor.skip_list(1)) return false;
  return true;
}

bool parse_lookups(Cursor& cursor, Transaction& out) {
  size_t count;
  if (!cursor.read_compact_u16(count)) return false;
  out.lookups_begin = cursor.at();
  out.lookup_count = static_cast<uint16_t>(count);
  for (size_t i = 0; i < count; i++)
    if (!cursor.skip(kPublicKeyBytes) || !cursor.skip_list(1) || !cursor.skip_list(1)) return false;
  return true;
}

bool parse_legacy_or_v0(Cursor& cursor, Transaction& out) {
  if (!cursor.skip(1)) return false;
  out.signature_count = cursor.last();
  out.signatures_begin = cursor.at();
  if (!cursor.skip(out.signature_count * kTransactionSignatureBytes)) return false;
  out.message_begin = cursor.at();
  if (!cursor.skip(1)) return false;
  if (cursor.last() & kVersionBit) {
    if (cursor.last() != kV0Prefix) return cursor.malformed();
    out.version = TransactionVersion::v0;
    if (!cursor.skip(1)) return false;
  }
  out.required_signatures = cursor.last();
  if (!cursor.skip(1)) return false;
  out.readonly_signed = cursor.last();
  if (!cursor.skip(1)) return false;
  out.readonly_unsigned = cursor.last();

  size_t key_count;
  if (!cursor.read_compact_u16(key_count)) return false;
  out.keys_begin = cursor.at();
  out.key_count = static_cast<uint16_t>(key_count);
  if (!cursor.skip(key_count * kPublicKeyBytes)) return false;
  out.lifetime_begin = cursor.at();
  if (!cursor.skip(kLifetimeBytes) || !parse_instructions(cursor, out)) return false;
  if (out.version == TransactionVersion::v0 && !parse_lookups(cursor, out)) return false;
  out.message_end = cursor.at();
  out.bytes = cursor.at();
  return true;
}

bool parse_v1(Cursor& cursor, const uint8_t* bytes, Transaction& out) {
  if (!cursor.skip(kV1FixedBytes)) return false;
  out.version = TransactionVersion::v1;
  out.required_signatures = bytes[1];
  out.readonly_signed = bytes[2];
  out.readonly_unsigned = bytes[3];
  std::memcpy(&out.config_mask, bytes + kV1ConfigMask, sizeof out.config_mask);
  out.lifetime_begin = kV1Lifetime;
  out.instruction_count = bytes[kV1InstructionCount];
  out.key_count = bytes[kV1KeyCount];
  out.signature_count = out.required_signatures;
  if (out.signature_count > kTransactionV1SignaturesMax || out.key_count > kTransactionV1KeysMax ||
      out.instruction_count > kTransactionV1InstructionsMax)
    return cursor.malformed();

  out.keys_begin = cursor.at();
  if (!cursor.skip(out.key_count * kPublicKeyBytes)) return false;
  out.config_begin = cursor.at();
  if (!cursor.skip(static_cast<size_t>(std::popcount(out.config_mask)) * 4)) return false;
  out.instructions_begin = cursor.at();
  if (!cursor.skip(out.instruction_count * kV1InstructionHeaderBytes)) return false;
  size_t payload_bytes = 0;  // at most 64 x (255 + 65,535)
  for (size_t i = 0; i < out.instruction_count; i++) {
    const uint8_t* header = bytes + out.instructions_begin + i * kV1InstructionHeaderBytes;
    payload_bytes += size_t{header[1]} + header[2] + (size_t{header[3]} << 8);
  }
  if (!cursor.skip(payload_bytes)) return false;
  out.message_end = cursor.at();
  out.signatures_begin = cursor.at();
  if (!cursor.skip(out.signature_count * kTransactionSignatureBytes)) return false;
  out.bytes = cursor.at();
  return true;
}

}  // namespace

ParseResult parse_compact_u16(const uint8_t* bytes, size_t length, uint16_t& value, size_t& used) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 3; i++) {
    if (i == length) return ParseResult::incomplete;
    // A zero byte at the end says nothing: the form without it is the canonical one.
    if (i > 0 && bytes[i] == 0) return ParseResult::malformed;
    sum |= (bytes[i] & 0x7fu) << 7 * i;
    if (bytes[i] >= 0x80) continue;
    if (sum > 0xffff) return ParseResult::malformed;
    value = static_cast<uint16_t>(sum);
    used = i + 1;
    return ParseResult::complete;
  }
  return ParseResult::malformed;
}

ParseResult parse_transaction(const uint8_t* bytes, size_t length, Transaction& out,
                              size_t& needed) {
  needed = 1;
  if (length == 0) return ParseResult::incomplete;
  const bool is_v1 = bytes[0] == kV1Prefix;
  if ((bytes[0] & kVersionBit) && !is_v1) return ParseResult::malformed;
  Cursor cursor(bytes, length, is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax);
  Transaction transaction{};
  if (is_v1 ? parse_v1(cursor, bytes, transaction) : parse_legacy_or_v0(cursor, transaction)) {
    out = transaction;
    return ParseResult::complete;
  }
  needed = cursor.needed();
  return cursor.failure();
}

ParseResult parse_transaction(const uint8_t* bytes, size_t length, Transaction& out) {
  size_t needed;
  return parse_transaction(bytes, length, out, needed);
}

}  // namespace shredway
