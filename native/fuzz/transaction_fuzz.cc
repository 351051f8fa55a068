// Fuzz target: any bytes as a transaction. The parts of a parsed transaction lie inside it, in
// order, and it parses again.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "transaction/wire.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A copy of exactly the requested size, so that a read beyond it is detected.
ParseResult parse_exact(const uint8_t* bytes, size_t length, Transaction& out, size_t& needed) {
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[length]);
  if (length) std::memcpy(copy.get(), bytes, length);
  return parse_transaction(copy.get(), length, out, needed);
}

bool equal(const Transaction& a, const Transaction& b) {
  return a.version == b.version && a.bytes == b.bytes && a.signatures_begin == b.signatures_begin &&
         a.signature_count == b.signature_count && a.message_begin == b.message_begin &&
         a.message_end == b.message_end && a.required_signatures == b.required_signatures &&
         a.readonly_signed == b.readonly_signed && a.readonly_unsigned == b.readonly_unsigned &&
         a.keys_begin == b.keys_begin && a.key_count == b.key_count &&
         a.lifetime_begin == b.lifetime_begin && a.instructions_begin == b.instructions_begin &&
         a.instruction_count == b.instruction_count && a.lookups_begin == b.lookups_begin &&
         a.lookup_count == b.lookup_count && a.config_begin == b.config_begin &&
         a.config_mask == b.config_mask;
}

// End of a list of `count` elements, each with fixed bytes and two byte lists.
size_t walk(const uint8_t* bytes, const Transaction& t, size_t at, size_t count, size_t fixed) {
  for (size_t i = 0; i < count; i++) {
    at += fixed;
    for (int list = 0; list < 2; list++) {
      uint16_t length;
      size_t used;
      require(at < t.message_end);
      require(parse_compact_u16(bytes + at, t.message_end - at, length, used) ==
              ParseResult::complete);
      at += used + length;
    }
  }
  return at;
}

void check_legacy_or_v0(const uint8_t* bytes, const Transaction& t) {
  const bool is_v0 = t.version == TransactionVersion::v0;
  require(t.signatures_begin == 1 && t.signature_count == bytes[0]);
  require(t.message_begin == 1 + t.signature_count * kTransactionSignatureBytes);
  require(t.message_end == t.bytes && t.bytes <= kTransactionBytesMax);
  require(t.bytes >= kTransactionBytesMin);
  require((bytes[t.message_begin] == 0x80) == is_v0 && bytes[t.message_begin] <= 0x80);
  require(t.lifetime_begin == t.keys_begin + t.key_count * kPublicKeyBytes);
  require(t.config_begin == 0 && t.config_mask == 0);
  const size_t end = walk(bytes, t, t.instructions_begin, t.instruction_count, 1);
  if (!is_v0) {
    require(end == t.message_end && t.lookups_begin == 0 && t.lookup_count == 0);
    return;
  }
  require(end < t.lookups_begin);
  require(walk(bytes, t, t.lookups_begin, t.lookup_count, kPublicKeyBytes) == t.message_end);
}

void check_v1(const uint8_t* bytes, const Transaction& t) {
  require(bytes[0] == 0x81 && t.message_begin == 0 && t.lifetime_begin == 8);
  require(t.key_count <= 64 && t.instruction_count <= 64 && t.signature_count <= 12);
  require(t.signature_count == t.required_signatures && t.bytes <= kTransactionV1BytesMax);
  require(t.signatures_begin == t.message_end);
  require(t.bytes == t.message_end + t.signature_count * kTransactionSignatureBytes);
  size_t end = t.instructions_begin + t.instruction_count * size_t{4};
  for (size_t i = 0; i < t.instruction_count; i++) {
    const uint8_t* header = bytes + t.instructions_begin + i * 4;
    end += size_t{header[1]} + header[2] + header[3] * size_t{256};
  }
  require(end == t.message_end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  Transaction t{}, again{};
  size_t needed = 0, ignored;
  const ParseResult result = parse_exact(bytes, length, t, needed);
  const bool is_v1 = length && bytes[0] == 0x81;
  if (result == ParseResult::incomplete) {
    require(length < needed && needed <= (is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax));
    return 0;
  }
  // A shorter prefix never contradicts the result.
  const ParseResult cut = parse_exact(bytes, length * bytes[length - 1] / 256, again, needed);
  require(cut == ParseResult::incomplete || cut == result);
  if (result == ParseResult::malformed) {
    // Bytes after a malformed transaction do not make it valid.
    const std::unique_ptr<uint8_t[]> longer(new uint8_t[length + 100]());
    std::memcpy(longer.get(), bytes, length);
    require(parse_exact(longer.get(), length + 100, again, ignored) == ParseResult::malformed);
    return 0;
  }
  require(t.bytes <= length);
  if (t.version == TransactionVersion::v1) check_v1(bytes, t);
  else check_legacy_or_v0(bytes, t);
  require(parse_exact(bytes, t.bytes, again, ignored) == ParseResult::complete && equal(t, again));
  require(parse_exact(bytes, t.bytes - 1u, again, needed) == ParseResult::incomplete);
  require(needed == t.bytes);
  require(parse_exact(bytes, t.bytes / 2u, again, needed) == ParseResult::incomplete);
  require(needed > t.bytes / 2u && needed <= t.bytes);
  return 0;
}
