// Co-signing: checks whether the authority of a durable nonce may sign a transaction, and finds the
// place for its signature.
//
// For nonce accounts with the service's own authority. The addon passes untrusted bytes before the
// key is used. The check succeeds only if the signature can do one thing: let the first instruction
// advance this nonce. The caller must check what the bytes do not show: that the lifetime is the
// nonce's current value, and that the other signatures are valid.
//
// Why the signature can have no other effect, by the validators' rules (agave, 4.2):
//   - A program sees only the accounts of its own instruction as signers, and can pass on no more
//     than those (transaction-context, program-runtime invoke_context). Only the advance has the
//     authority, so no transfer, withdrawal, change of authority or foreign program has it.
//   - It is read-only and pays no fees, so even the runtime cannot take its lamports.
//   - The advance has no parameters: it consists of the account, the sysvar and the authority
//     (programs/system). Four bytes of data and three accounts leave no ambiguity.
//   - Lookup tables load no signers: an authority from a table does not sign. The keys that tables
//     load are not visible here. If one of them is the authority or the nonce again, validators
//     refuse the whole transaction before it runs (AccountLoadedTwice, accounts-db account_locks),
//     without a fee. The sysvar must be a static key, so that every account of the advance is
//     known.
//   - The signature covers the whole message, from its first byte to the end of the transaction:
//     exactly what validators verify (transaction-view message_data). In version 1, signatures
//     follow the message and a configuration has more effects: never signed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/ed25519.h"
#include "system/named_enum.h"
#include "transaction/inspector.h"
#include "transaction/refusal.h"

namespace shredway {

// X(name, expected, received: # stands for the received number)
#define SHREDWAY_CO_SIGNING_REFUSALS(X)                                                           \
  X(accepted, "", "")                                                                             \
  X(transaction_refused, "a transaction that validators accept", "one that they refuse")          \
  X(version_1, "version legacy or 0", "version 1")                                                \
  /* the advance */                                                                               \
  X(not_an_advance, "the advance of a durable nonce first", "another instruction, or none")       \
  X(advance_data, "4 bytes of data in the advance", "#")                                          \
  X(advance_accounts, "the nonce, the sysvar of recent blockhashes and the authority, no others", \
    "other accounts (# in total)")                                                                \
  X(nonce_account_loaded, "the nonce account among the static keys", "one of a lookup table")     \
  X(other_nonce_account, "the advance of the nonce account in question",                          \
    "the advance of the key at index #")                                                          \
  X(nonce_account_readonly, "a writable nonce account", "a read-only one")                        \
  /* the authority */                                                                             \
  X(authority_loaded, "the authority among the static keys", "one of a lookup table")             \
  X(other_authority, "the authority of the nonce account", "the key at index #")                  \
  X(authority_not_signer, "the authority among the signers", "the authority at index #")          \
  X(authority_pays_fees, "another fee payer", "the authority as fee payer")                       \
  X(authority_writable, "a read-only authority", "a writable one")                                \
  X(authority_used_elsewhere, "the authority in the advance alone",                               \
    "the authority in instruction #")                                                             \
  X(authority_as_table, "lookup tables that are not the authority",                               \
    "the authority as lookup table #")                                                            \
  /* signatures */                                                                                \
  X(nothing_missing, "the authority's signature missing (zeros)", "a signature")                  \
  X(other_signature_missing, "all signatures but the authority's", "no signature at index #")

SHREDWAY_NAMED_ENUM(CoSigningRefusal, uint8_t, kCoSigningRefusalCount, co_signing_refusal_name,
                    SHREDWAY_CO_SIGNING_REFUSALS)

const char* co_signing_refusal_expected(CoSigningRefusal refusal);
const char* co_signing_refusal_got(CoSigningRefusal refusal);

// The place of the fault and the received value. For `transaction_refused`, `transaction` has the
// reason.
struct CoSigningFault {
  CoSigningRefusal refusal = CoSigningRefusal::accepted;
  uint16_t offset = 0;  // from the transaction's first byte
  uint64_t got = 0;
  TransactionFault transaction;
};

// Offsets are from the transaction's first byte.
struct CoSigningPlace {
  uint16_t signature_at;   // 64 bytes, zeros
  uint16_t message_begin;  // the bytes to sign: [message_begin, message_end)
  uint16_t message_end;
  uint16_t lifetime_begin;  // 32 bytes
};

// Never allocates or waits; any thread may use an instance.
class CoSigningCheck {
 public:
  CoSigningCheck() : inspector_({}, {}) {}

  // Expects `length` bytes of exactly one transaction, which must not change until they are signed.
  // Fills `out` and returns true, or fills `fault` and returns false.
  bool place(const uint8_t* bytes, size_t length, const PublicKey& nonce_account,
             const PublicKey& authority, CoSigningPlace& out, CoSigningFault& fault) const;

 private:
  TransactionInspector inspector_;  // without tip addresses, which are not needed here
};

}  // namespace shredway
