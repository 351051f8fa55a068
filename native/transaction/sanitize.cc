#include "transaction/sanitize.h"

#include <array>
#include <cstring>

#include "system/bytes.h"
#include "transaction/instructions.h"

namespace shredway {
namespace {

using enum TransactionRefusal;

constexpr uint32_t kConfigFeeBits = 0b00011;
constexpr uint32_t kConfigUnitsBit = 0b00100;
constexpr uint32_t kConfigLoadedBytesBit = 0b01000;
constexpr uint32_t kConfigHeapBit = 0b10000;
constexpr uint32_t kConfigKnownBits = 0b11111;
constexpr size_t kV1ConfigMaskOffset = 4;
constexpr size_t kKeysMax = kTransactionAccountsMax;

size_t header_offset(const Transaction& t) {
  return t.message_begin + (t.version == TransactionVersion::legacy ? 0u : 1u);
}

bool check_header(const Transaction& t, TransactionFault& fault) {
  const size_t header = header_offset(t);
  if (t.required_signatures == 0 || t.required_signatures > kTransactionSignaturesMax)
    return refuse(fault, signatures_out_of_range, header, t.required_signatures);
  if (t.signature_count != t.required_signatures)
    return refuse(fault, signature_count_wrong, t.signatures_begin, t.signature_count);
  if (size_t{t.required_signatures} + t.readonly_unsigned > t.key_count)
    return refuse(fault, keys_too_few, header, t.key_count);
  if (t.readonly_signed >= t.required_signatures)
    return refuse(fault, fee_payer_readonly, header + 1, t.readonly_signed);
  return true;
}

bool check_config(const uint8_t* bytes, const Transaction& t, TransactionFault& fault) {
  if (t.config_mask & ~kConfigKnownBits)
    return refuse(fault, config_mask_unknown, kV1ConfigMaskOffset, t.config_mask);
  const uint32_t fee_bits = t.config_mask & kConfigFeeBits;
  if (fee_bits != 0 && fee_bits != kConfigFeeBits)
    return refuse(fault, config_fee_bits, kV1ConfigMaskOffset, t.config_mask);
  const uint32_t heap_bytes = read_config(bytes, t).heap_bytes;
  if (!is_heap_size(heap_bytes))
    return refuse(fault, heap_size_invalid, t.instructions_begin - sizeof heap_bytes, heap_bytes);
  return true;
}

// Counts the accounts that the lookups load.
bool check_lookups(const uint8_t* bytes, const Transaction& t, size_t& accounts,
                   TransactionFault& fault) {
  size_t at = t.lookups_begin;
  for (size_t i = 0; i < t.lookup_count; i++) {
    const size_t begin = at;
    size_t loaded = 0;
    at += kPublicKeyBytes;
    for (int list = 0; list < 2; list++) {
      uint16_t count = 0;
      size_t used = 0;
      (void)parse_compact_u16(bytes + at, t.message_end - at, count, used);  // parsed before
      loaded += count;
      at += used + count;
    }
    if (loaded == 0) return refuse(fault, lookup_empty, begin, 0);
    accounts += loaded;
  }
  return true;
}

// Compares whole keys only if their first eight bytes agree.
bool check_keys(const uint8_t* bytes, const Transaction& t, TransactionFault& fault) {
  std::array<uint64_t, kKeysMax> heads;
  const uint8_t* keys = bytes + t.keys_begin;
  for (size_t i = 0; i < t.key_count; i++) {
    const uint8_t* key = keys + i * kPublicKeyBytes;
    const auto head = load_u64(key);
    for (size_t j = 0; j < i; j++) {
      if (heads[j] == head && std::memcmp(keys + j * kPublicKeyBytes, key, kPublicKeyBytes) == 0)
        return refuse(fault, key_repeated, t.keys_begin + i * kPublicKeyBytes, i);
    }
    heads[i] = head;
  }
  return true;
}

bool check_instructions(const uint8_t* bytes, const Transaction& t, size_t accounts,
                        TransactionFault& fault) {
  if (t.instruction_count > kTransactionInstructionsMax)
    return refuse(fault, instructions_too_many, t.instructions_begin, t.instruction_count);
  InstructionWalk walk(bytes, t);
  Instruction instruction;
  while (walk.next(instruction)) {
    if (instruction.program == 0) return refuse(fault, program_is_fee_payer, instruction.begin, 0);
    if (instruction.program >= t.key_count)
      return refuse(fault, program_out_of_range, instruction.begin, instruction.program);
    if (instruction.account_count > kInstructionAccountsMax)
      return refuse(fault, instruction_accounts_too_many, instruction.begin,
                    instruction.account_count);
    for (size_t i = 0; i < instruction.account_count; i++) {
      const uint8_t* account = instruction.accounts + i;
      if (*account >= accounts)
        return refuse(fault, account_out_of_range, static_cast<size_t>(account - bytes), *account);
    }
  }
  return true;
}

}  // namespace

TransactionConfig read_config(const uint8_t* bytes, const Transaction& transaction) {
  TransactionConfig config;
  const uint8_t* value = bytes + transaction.config_begin;
  const uint32_t mask = transaction.config_mask;
  if (mask & kConfigFeeBits) {
    config.priority_fee_lamports = load_u64(value);
    value += sizeof config.priority_fee_lamports;
  }
  if (mask & kConfigUnitsBit) {
    config.compute_unit_limit = load_u32(value);
    value += sizeof config.compute_unit_limit;
  }
  if (mask & kConfigLoadedBytesBit) value += sizeof(uint32_t);
  if (mask & kConfigHeapBit) config.heap_bytes = load_u32(value);
  return config;
}

bool is_heap_size(uint32_t bytes) {
  return bytes >= kHeapBytesMin && bytes <= kHeapBytesMax && bytes % kHeapBytesStep == 0;
}

bool sanitize(const uint8_t* bytes, const Transaction& t, TransactionFault& fault) {
  if (!check_header(t, fault)) return false;
  if (t.version == TransactionVersion::v1 && !check_config(bytes, t, fault)) return false;
  size_t accounts = t.key_count;
  if (!check_lookups(bytes, t, accounts, fault)) return false;
  if (accounts > kTransactionAccountsMax)
    return refuse(fault, accounts_too_many, t.keys_begin, accounts);
  return check_keys(bytes, t, fault) && check_instructions(bytes, t, accounts, fault);
}

}  // namespace shredway
