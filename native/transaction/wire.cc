#include "transaction/wire.h"

#include <bit>
#include <cstring>

namespace shredway {
namespace {

constexpr uint8_t kV0Prefix = 0x80;
constexpr size_t kHeaderBytes = 3;
constexpr size_t kLifetimeBytes = 32;
constexpr size_t kProgramBytes = 1;

// Further offsets in a v1 transaction up to its first part of variable length.
constexpr size_t kV1ConfigMask = 4, kV1Lifetime = 8;
constexpr size_t kV1FixedBytes = 42;
constexpr size_t kV1ConfigValueBytes = 4;
constexpr size_t kV1InstructionHeaderBytes = 4;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the config mask is little-endian");

// Reads the bytes in order and decides only by bytes that it has read, so that the result for a
// prefix never contradicts the result for more bytes.
class Cursor {
 public:
  // `bytes_max`: maximum length of this version's transactions.
  Cursor(const uint8_t* bytes, size_t length, size_t bytes_max)
      : bytes_(bytes), limit_(length < bytes_max ? length : bytes_max), bytes_max_(bytes_max) {}

  uint16_t at() const { return static_cast<uint16_t>(at_); }
  ParseResult failure() const { return failure_; }
  size_t needed() const { return needed_; }

  // Skips `count` bytes, which may be read afterwards. Returns false if some are missing.
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
  // Skips a compact-u16 and that many bytes.
  bool skip_byte_list() {
    size_t count;
    return read_compact_u16(count) && skip(count);
  }
  // Sets the minimum number of bytes after the next part. It raises `needed`, so that a transaction
  // of many small parts is not parsed again for each part. It must not exceed what the following
  // parts require; otherwise a prefix of a valid transaction would be malformed.
  void expect_behind(size_t count) { expected_behind_ = count; }

 private:
  bool refuse(size_t count) {
    needed_ = at_ + count + expected_behind_;
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
  size_t expected_behind_ = 0;
  size_t needed_ = 0;
  ParseResult failure_ = ParseResult::malformed;
};

// Skips a list of elements that each begin with `fixed_bytes` and end with two byte lists; at least
// `behind` bytes follow the list.
bool parse_elements(Cursor& cursor, size_t count, size_t fixed_bytes, size_t behind) {
  for (size_t left = count; left > 0; left--) {
    const size_t rest = (left - 1) * (fixed_bytes + 2) + behind;
    cursor.expect_behind(rest + 2);
    if (!cursor.skip(fixed_bytes)) return false;
    cursor.expect_behind(rest + 1);
    if (!cursor.skip_byte_list()) return false;
    cursor.expect_behind(rest);
    if (!cursor.skip_byte_list()) return false;
  }
  cursor.expect_behind(0);
  return true;
}

void read_header(const uint8_t* header, Transaction& out) {
  out.required_signatures = header[0];
  out.readonly_signed = header[1];
  out.readonly_unsigned = header[2];
}

bool parse_legacy_or_v0(Cursor& cursor, const uint8_t* bytes, Transaction& out) {
  if (!cursor.skip(1)) return false;
  out.signature_count = bytes[0];
  out.signatures_begin = cursor.at();
  const size_t signatures_bytes = out.signature_count * kTransactionSignatureBytes;
  out.message_begin = static_cast<uint16_t>(out.signatures_begin + signatures_bytes);
  if (!cursor.skip(signatures_bytes + kHeaderBytes)) return false;
  if (bytes[out.message_begin] & kVersionBit) {
    if (bytes[out.message_begin] != kV0Prefix) return cursor.malformed();
    out.version = TransactionVersion::v0;
    if (!cursor.skip(1)) return false;
  }
  read_header(bytes + cursor.at() - kHeaderBytes, out);

  size_t key_count;
  if (!cursor.read_compact_u16(key_count)) return false;
  out.keys_begin = cursor.at();
  out.key_count = static_cast<uint16_t>(key_count);
  if (!cursor.skip(key_count * kPublicKeyBytes + kLifetimeBytes)) return false;
  out.lifetime_begin = static_cast<uint16_t>(cursor.at() - kLifetimeBytes);
  const bool is_v0 = out.version == TransactionVersion::v0;
  size_t instruction_count;
  if (!cursor.read_compact_u16(instruction_count)) return false;
  out.instructions_begin = cursor.at();
  out.instruction_count = static_cast<uint16_t>(instruction_count);
  if (!parse_elements(cursor, instruction_count, kProgramBytes, is_v0 ? 1 : 0)) return false;
  if (is_v0) {
    size_t lookup_count;
    if (!cursor.read_compact_u16(lookup_count)) return false;
    out.lookups_begin = cursor.at();
    out.lookup_count = static_cast<uint16_t>(lookup_count);
    if (!parse_elements(cursor, lookup_count, kPublicKeyBytes, 0)) return false;
  }
  out.message_end = cursor.at();
  out.bytes = cursor.at();
  return true;
}

bool parse_v1(Cursor& cursor, const uint8_t* bytes, Transaction& out) {
  if (!cursor.skip(kV1FixedBytes)) return false;
  out.version = TransactionVersion::v1;
  read_header(bytes + kTransactionV1Header, out);
  std::memcpy(&out.config_mask, bytes + kV1ConfigMask, sizeof out.config_mask);
  out.lifetime_begin = kV1Lifetime;
  out.instruction_count = bytes[kTransactionV1InstructionCount];
  out.key_count = bytes[kTransactionV1KeyCount];
  out.signature_count = out.required_signatures;
  if (out.signature_count > kTransactionV1SignaturesMax || out.key_count > kTransactionV1KeysMax ||
      out.instruction_count > kTransactionV1InstructionsMax)
    return cursor.malformed();

  const size_t keys_bytes = out.key_count * kPublicKeyBytes;
  const size_t config_bytes =
      static_cast<size_t>(std::popcount(out.config_mask)) * kV1ConfigValueBytes;
  const size_t headers_bytes = out.instruction_count * kV1InstructionHeaderBytes;
  if (!cursor.skip(keys_bytes + config_bytes + headers_bytes)) return false;
  out.keys_begin = kV1FixedBytes;
  out.config_begin = static_cast<uint16_t>(out.keys_begin + keys_bytes);
  out.instructions_begin = static_cast<uint16_t>(out.config_begin + config_bytes);

  size_t payload_bytes = 0;  // at most 64 x (255 + 65,535)
  for (size_t i = 0; i < out.instruction_count; i++) {
    const uint8_t* header = bytes + out.instructions_begin + i * kV1InstructionHeaderBytes;
    payload_bytes += size_t{header[1]} + header[2] + (size_t{header[3]} << 8);
  }
  const size_t signatures_bytes = out.signature_count * kTransactionSignatureBytes;
  if (!cursor.skip(payload_bytes + signatures_bytes)) return false;
  out.bytes = cursor.at();
  out.message_end = static_cast<uint16_t>(out.bytes - signatures_bytes);
  out.signatures_begin = out.message_end;
  return true;
}

Cursor cursor_over(const uint8_t* bytes, size_t length) {
  return {bytes, length, bytes[0] == kV1Prefix ? kTransactionV1BytesMax : kTransactionBytesMax};
}

bool parse_parts(Cursor& cursor, const uint8_t* bytes, Transaction& out) {
  return bytes[0] == kV1Prefix ? parse_v1(cursor, bytes, out)
                               : parse_legacy_or_v0(cursor, bytes, out);
}

}  // namespace

ParseResult parse_compact_u16(const uint8_t* bytes, size_t length, uint16_t& value, size_t& used) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 3; i++) {
    if (i == length) return ParseResult::incomplete;
    // A zero byte at the end adds nothing: the canonical form omits it.
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
  if ((bytes[0] & kVersionBit) && bytes[0] != kV1Prefix) return ParseResult::malformed;
  Cursor cursor = cursor_over(bytes, length);
  Transaction transaction{};
  if (parse_parts(cursor, bytes, transaction)) {
    out = transaction;
    return ParseResult::complete;
  }
  needed = cursor.needed();
  return cursor.failure();
}

MalformedPart find_malformed_part(const uint8_t* bytes, size_t length, Transaction& parts) {
  Cursor cursor = cursor_over(bytes, length);
  parts = {};
  parse_parts(cursor, bytes, parts);
  return {cursor.at(), cursor.needed()};
}

ParseResult parse_transaction(const uint8_t* bytes, size_t length, Transaction& out) {
  size_t needed;
  return parse_transaction(bytes, length, out, needed);
}

}  // namespace shredway
