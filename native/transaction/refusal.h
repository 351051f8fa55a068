// Refusals: the reasons why a transaction is invalid, with one name each.
//
// Each has a text for the expected and the received value. The inspector, the sanitiser and the
// facts reader return them; the sender of the transaction gets the texts. All names, orders and
// texts come from the list below.
#pragma once

#include <cstddef>
#include <cstdint>
#include "system/named_enum.h"

namespace shredway {

// X(name, expected, received: # stands for the received number)
#define SHREDWAY_TRANSACTION_REFUSALS(X)                                                          \
  X(accepted, "", "")                                                                             \
  /* the form */                                                                                  \
  X(too_long, "at most 1232 bytes, or 4096 in version 1", "# bytes")                              \
  X(cut_short, "a whole transaction", "# bytes of a longer one")                                  \
  X(parts_too_long, "counts and lengths for at most 1232 bytes, or 4096 in version 1", "# bytes") \
  X(count_invalid, "a count up to 65535 in its shortest form", "the byte #")                      \
  X(trailing_bytes, "no bytes after the transaction", "# bytes")                                  \
  X(version_unknown, "version legacy, 0 or 1", "version #")                                       \
  X(signatures_not_first, "signatures before a message of version 0", "the message first")        \
  X(version_after_signatures, "a message of version legacy or 0 after signatures", "version #")   \
  /* the header */                                                                                \
  X(signatures_out_of_range, "1 to 12 required signatures", "#")                                  \
  X(signature_count_wrong, "the number of signatures that the header requires", "#")              \
  X(keys_too_many, "at most 64 keys", "#")                                                        \
  X(keys_too_few, "a key for each signer and read-only account of the header", "# keys")          \
  X(fee_payer_readonly, "a writable fee payer", "only the # read-only signers")                   \
  X(key_repeated, "unique keys", "the key at index # twice")                                      \
  X(accounts_too_many, "at most 256 accounts, those of lookup tables included", "#")              \
  X(lookup_empty, "at least one account from each lookup table", "#")                             \
  /* the configuration of version 1 */                                                            \
  X(config_mask_unknown, "no bits of the config mask but the lowest five", "mask #")              \
  X(config_fee_bits, "the lowest two bits of the config mask both set or both clear", "mask #")   \
  /* instructions */                                                                              \
  X(instructions_too_many, "at most 64 instructions", "#")                                        \
  X(program_is_fee_payer, "a program that is not the fee payer", "place #")                       \
  X(program_out_of_range, "a program among the static keys", "place #")                           \
  X(account_out_of_range, "account indexes within the transaction", "place #")                    \
  X(instruction_accounts_too_many, "at most 255 accounts in an instruction", "#")                 \
  /* requests of the instructions */                                                              \
  X(compute_budget_unknown, "a known and complete compute budget instruction", "tag #")           \
  X(compute_budget_repeated, "each compute budget instruction once", "tag # twice")               \
  X(heap_size_invalid, "a heap of 32768 to 262144 bytes, a multiple of 1024", "# bytes")          \
  X(loaded_bytes_zero, "a limit of loaded account data above 0 bytes", "#")                       \
  X(tips_overflow, "a sum of tips below 2^64 lamports", "more")

SHREDWAY_NAMED_ENUM(TransactionRefusal, uint8_t, kTransactionRefusalCount, transaction_refusal_name,
                    SHREDWAY_TRANSACTION_REFUSALS)

struct RefusalText {
  const char* expected;
  const char* got;
};

// Expected value, e.g. "unique keys".
const char* transaction_refusal_expected(TransactionRefusal refusal);
// Received value, e.g. "the key at index # twice".
const char* transaction_refusal_got(TransactionRefusal refusal);

// The place of the fault and the received value.
struct TransactionFault {
  TransactionRefusal refusal = TransactionRefusal::accepted;
  uint16_t offset = 0;  // from the transaction's first byte
  uint64_t got = 0;
};

// Fills `fault` and returns false.
inline bool refuse(TransactionFault& fault, TransactionRefusal refusal, size_t offset,
                   uint64_t got) {
  fault = {refusal, static_cast<uint16_t>(offset), got};
  return false;
}

}  // namespace shredway
