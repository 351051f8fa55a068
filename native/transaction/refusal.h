// Refusals: the one name of each way in which a transaction can be no valid one.
//
// Answers: "what was expected of this transaction, and what came?" Given by the inspector, the
// sanitiser and the reader of facts; told to whoever sent it. The list below is the only one:
// names, order and texts all come from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include "system/named_enum.h"

namespace shredway {

// X(name, what was expected, what came: # stands for the number that came with it)
#define SHREDWAY_TRANSACTION_REFUSALS(X)                                                        \
  X(accepted, "", "")                                                                           \
  /* the form */                                                                                \
  X(too_long, "at most 1232 bytes, or 4096 in version 1", "# bytes")                            \
  X(cut_short, "a whole transaction", "# bytes of one")                                         \
  X(malformed, "counts and lengths as the format has them", "others")                           \
  X(trailing_bytes, "nothing behind the transaction", "# bytes more")                           \
  X(version_unknown, "version legacy, 0 or 1", "version #")                                     \
  /* the header */                                                                              \
  X(signatures_out_of_range, "1 to 12 required signatures", "#")                                \
  X(signature_count_wrong, "as many signatures as the header requires", "#")                    \
  X(keys_too_few, "a key for each signer and read-only account of the header", "# keys")        \
  X(fee_payer_readonly, "a writable fee payer", "# read-only signers, who are all")             \
  X(key_repeated, "keys that all differ", "the key at place # for a second time")               \
  X(accounts_too_many, "at most 256 accounts, those of lookup tables included", "#")            \
  X(lookup_empty, "at least one account from each lookup table", "#")                           \
  /* the configuration of version 1 */                                                          \
  X(config_mask_unknown, "no bits of the config mask but the lowest five", "mask #")            \
  X(config_fee_bits, "the lowest two bits of the config mask both set or both clear", "mask #") \
  /* instructions */                                                                            \
  X(instructions_too_many, "at most 64 instructions", "#")                                      \
  X(program_is_fee_payer, "a program that is not the fee payer", "place #")                     \
  X(program_out_of_range, "a program among the static keys", "place #")                         \
  X(account_out_of_range, "accounts that the transaction has", "place #")                       \
  X(instruction_accounts_too_many, "at most 255 accounts in an instruction", "#")               \
  /* what the instructions ask for */                                                           \
  X(compute_budget_unknown, "a compute budget instruction that is known and whole", "tag #")    \
  X(compute_budget_repeated, "each compute budget instruction once", "tag # for a second time") \
  X(heap_size_invalid, "a heap of 32768 to 262144 bytes, a multiple of 1024", "# bytes")        \
  X(loaded_bytes_zero, "a limit of loaded account data above 0 bytes", "#")                     \
  X(tips_overflow, "tips of less than 2^64 lamports in all", "more")

SHREDWAY_NAMED_ENUM(TransactionRefusal, uint8_t, kTransactionRefusalCount, transaction_refusal_name,
                    SHREDWAY_TRANSACTION_REFUSALS)

// What was expected, e.g. "keys that all differ".
const char* transaction_refusal_expected(TransactionRefusal refusal);
// What came, e.g. "the key at place # for a second time".
const char* transaction_refusal_got(TransactionRefusal refusal);

// Where and by how much.
struct TransactionFault {
  TransactionRefusal refusal = TransactionRefusal::accepted;
  uint16_t offset = 0;  // from the transaction's first byte
  uint64_t got = 0;
};

}  // namespace shredway
