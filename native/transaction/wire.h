// Wire format of transactions: the offsets of the parts of a legacy, v0 or v1 transaction.
//
// The entry stream parses every transaction of the feed with it. The bytes may be hostile: the
// parser never reads beyond `length` and never allocates. It checks only the form: lengths,
// canonical counts and the bounds below. The sanitiser checks whether a transaction may execute, so
// a complete one may still have no signature, fewer keys than signatures, instructions with invalid
// indexes, or unknown bits in the config mask. Sources: solana-sdk transaction/src/versioned,
// message/src/versions, short-vec (122f32e5), SIMD-0385 (36838d88).
//
//   legacy, v0   compact-u16 count, signatures 64 each, message
//     message    [v0: 0x80] header 3, compact-u16 count, keys 32 each, lifetime 32,
//                compact-u16 count, instructions {program u8, compact-u16 accounts, compact-u16
//                data} [v0: compact-u16 count, lookups {table 32, compact-u16 writable, compact-u16
//                readonly}]
//   v1           message, then one signature of 64 bytes for each required one, without a count
//     message    0x81, header 3, config mask u32, lifetime 32, instruction count u8, key count u8,
//                keys 32 each, 4 bytes for each set bit of the mask, instruction headers {program
//                u8, accounts u8, data bytes u16}, then per instruction its accounts and its data
//   compact-u16  7 bits a byte, lowest first, 0x80: more bytes follow; 1 to 3 bytes, at most
//                65,535, and only the shortest form is valid
//
// A first byte below 0x80 is the signature count of a legacy or v0 transaction, and 0x81 begins v1.
// All others are malformed, and so is every message version but 0x80 after signatures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shredway {

inline constexpr size_t kTransactionBytesMax = 1232;    // legacy and v0
inline constexpr size_t kTransactionV1BytesMax = 4096;  // v1
inline constexpr size_t kTransactionBytesMin = 38;      // legacy: no signature, key or instruction
// Offsets in a v1 transaction.
inline constexpr size_t kTransactionV1Header = 1;
inline constexpr size_t kTransactionV1InstructionCount = 40;
inline constexpr size_t kTransactionV1KeyCount = 41;
// Maximum of SIMD-0385 for v1 transactions; older versions are bounded only by their bytes.
inline constexpr size_t kTransactionV1SignaturesMax = 12;
inline constexpr size_t kTransactionV1KeysMax = 64;
inline constexpr size_t kTransactionV1InstructionsMax = 64;
inline constexpr size_t kTransactionSignatureBytes = 64;
inline constexpr size_t kPublicKeyBytes = 32;
inline constexpr uint8_t kVersionBit = 0x80;  // set in the first byte of a message with a version
inline constexpr uint8_t kV1Prefix = 0x81;

enum class TransactionVersion : uint8_t { legacy, v0, v1 };

// Offsets are from the transaction's first byte.
struct Transaction {
  TransactionVersion version;
  uint16_t bytes;             // length of the whole transaction
  uint16_t signatures_begin;  // signature_count x 64
  uint16_t signature_count;
  uint16_t message_begin;  // the signed bytes: [message_begin, message_end)
  uint16_t message_end;
  uint8_t required_signatures;  // header
  uint8_t readonly_signed;
  uint8_t readonly_unsigned;
  uint16_t keys_begin;  // key_count x 32
  uint16_t key_count;
  uint16_t lifetime_begin;      // 32 bytes: a recent blockhash or a durable nonce's value
  uint16_t instructions_begin;  // first instruction (v1: first instruction header)
  uint16_t instruction_count;
  uint16_t lookups_begin;  // v0: first lookup; else 0
  uint16_t lookup_count;
  uint16_t config_begin;  // v1: values of the config mask; else 0
  uint32_t config_mask;   // 0 unless v1
};

enum class ParseResult : uint8_t {
  complete,
  incomplete,  // valid so far, but bytes are missing; never at the version's largest length
  malformed,   // cannot become valid by further bytes
};

// Parses the transaction that begins at `bytes`; `length` may reach beyond its end. Fills `out`
// only if complete.
ParseResult parse_transaction(const uint8_t* bytes, size_t length, Transaction& out);
// As above. If incomplete, sets `needed` to a length below which it cannot be complete: length <
// needed <= the largest length of its version.
ParseResult parse_transaction(const uint8_t* bytes, size_t length, Transaction& out,
                              size_t& needed);

// Where the parser found a malformed transaction.
struct MalformedPart {
  size_t offset;  // of the part
  // Length that the counts and lengths require, beyond the largest one of the version; 0: the part
  // itself is invalid.
  size_t needed;
};

// For error texts: parses malformed bytes again, up to their invalid part. `parts` has the counts
// before it.
MalformedPart find_malformed_part(const uint8_t* bytes, size_t length, Transaction& parts);

// Parses the compact-u16 at `bytes`: its value and its length (1 to 3 bytes), if complete. For
// walks over the instructions of a parsed transaction.
ParseResult parse_compact_u16(const uint8_t* bytes, size_t length, uint16_t& value, size_t& used);

}  // namespace shredway
