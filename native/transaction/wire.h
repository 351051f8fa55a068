// Wire format of transactions: where the parts of a legacy, v0 or v1 transaction lie.
//
// Called by the entry stream for every transaction of the feed. Reads hostile bytes: it never looks
// beyond `length`, never allocates. Only the form is checked (what every node must be able to
// decode); whether a transaction may execute is the sanitiser's question. Facts: solana-sdk
// transaction/src/versioned, message/src/versions (122f32e5), SIMD-0385.
//
//   legacy, v0   compact-u16 count, signatures 64 each, message
//     message    [v0: 0x80] header 3, compact-u16 count, keys 32 each, lifetime 32,
//                compact-u16 count, instructions {program u8, compact-u16 accounts, compact-u16
//                data} [v0: compact-u16 count, lookups {table 32, compact-u16 writable, compact-u16
//                readonly}]
//   v1           message, then one signature of 64 bytes for each required one, without a count
//     message    0x81, header 3, config mask u32, lifetime 32, instruction count u8, key count u8,
//                keys 32 each, 4 bytes for each bit of the mask, instruction headers {program u8,
//                accounts u8, data bytes u16}, then per instruction its accounts and its data
#pragma once

#include <cstddef>
#include <cstdint>

namespace shredway {

inline constexpr size_t kTransactionBytesMax = 1232;    // legacy and v0
inline constexpr size_t kTransactionV1BytesMax = 4096;  // v1
inline constexpr size_t kTransactionSignatureBytes = 64;
inline constexpr size_t kPublicKeyBytes = 32;

enum class TransactionVersion : uint8_t { legacy, v0, v1 };

// Offsets are from the transaction's first byte.
struct Transaction {
  TransactionVersion version;
  uint16_t bytes;             // of the whole transaction
  uint16_t signatures_begin;  // signature_count x 64
  uint16_t signature_count;
  uint16_t message_begin;  // what is signed: [message_begin, message_end)
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
  uint32_t config_mask;   // v1, else 0
};

enum class ParseResult : uint8_t {
  complete,
  incomplete,  // nothing wrong yet, but bytes are missing
  malformed,
};

// Parses the transaction that begins at `bytes`; `length` may reach beyond its end. Fills `out`
// only when complete.
ParseResult parse_transaction(const uint8_t* bytes, size_t length, Transaction& out);

}  // namespace shredway
