// Co-signing: may the authority of a durable nonce sign this transaction, and where?
//
// For accounts whose authority is the service's own. Called by the addon with bytes of hostile
// origin, before that key touches them. A place is given only when the signature can do one thing:
// let the first instruction advance this very nonce. What the bytes cannot tell is the caller's:
// whether the lifetime is the nonce's present value, and whether the other signatures hold.
//
// Why nothing else can follow from the signature, as validators have it (agave, 4.2):
//   - A program sees as signers only accounts of its own instruction, and can pass on no more than
//     that (transaction-context, program-runtime invoke_context). The authority's place stands in
//     the advance alone, so no transfer, withdrawal, change of authority or foreign program has it.
//   - It is read-only and pays no fees, so its own lamports are out of reach even of the runtime.
//   - The advance takes no values: account, sysvar and authority are all that it is made of
//     (programs/system). Four bytes of data and three accounts leave nothing to be misread.
//   - Lookup tables load no signers: an authority that only a table names does not sign. What they
//     load cannot be seen here. Should that be the authority or the nonce once more, validators
//     refuse the whole transaction before it runs (AccountLoadedTwice, accounts-db account_locks),
//     without a fee; the sysvar must be a static key, so that the advance is known to the last
//     account.
//   - What is signed is the whole message, from its first byte to the last of the transaction:
//     exactly what validators verify (transaction-view message_data). In version 1 signatures stand
//     behind the message and more is decided by configuration: never signed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "crypto/ed25519.h"
#include "system/named_enum.h"
#include "transaction/inspector.h"
#include "transaction/refusal.h"

namespace shredway {

// X(name, what was expected, what came: # stands for the number that came with it)
#define SHREDWAY_CO_SIGNING_REFUSALS(X)                                                           \
  X(accepted, "", "")                                                                             \
  X(transaction_refused, "a transaction that validators take", "one that they refuse")            \
  X(version_1, "version legacy or 0", "version 1")                                                \
  /* the advance */                                                                               \
  X(not_an_advance, "the advance of a durable nonce first", "another instruction, or none")       \
  X(advance_data, "4 bytes of data in the advance", "#")                                          \
  X(advance_accounts, "the nonce, the sysvar of recent blockhashes and the authority, no others", \
    "others, # in all")                                                                           \
  X(nonce_account_loaded, "the nonce account among the static keys", "one of a lookup table")     \
  X(other_nonce_account, "the advance of the nonce account in question", "of the key at place #") \
  X(nonce_account_readonly, "a writable nonce account", "a read-only one")                        \
  /* the authority */                                                                             \
  X(authority_loaded, "the authority among the static keys", "one of a lookup table")             \
  X(other_authority, "the authority of the nonce account", "the key at place #")                  \
  X(authority_not_signer, "the authority among the signers", "it at place #")                     \
  X(authority_pays_fees, "fees paid by somebody else", "the authority as fee payer")              \
  X(authority_writable, "a read-only authority", "a writable one")                                \
  X(authority_used_elsewhere, "the authority in the advance alone", "it in instruction #, too")   \
  X(authority_as_table, "lookup tables that are not the authority", "it as lookup table #")       \
  /* signatures */                                                                                \
  X(nothing_missing, "the authority's signature missing (zeros)", "one that is there")            \
  X(other_signature_missing, "all signatures but the authority's", "none at place #")

SHREDWAY_NAMED_ENUM(CoSigningRefusal, uint8_t, kCoSigningRefusalCount, co_signing_refusal_name,
                    SHREDWAY_CO_SIGNING_REFUSALS)

const char* co_signing_refusal_expected(CoSigningRefusal refusal);
const char* co_signing_refusal_got(CoSigningRefusal refusal);

// Where and by how much. Of `transaction_refused`: `transaction` says why.
struct CoSigningFault {
  CoSigningRefusal refusal = CoSigningRefusal::accepted;
  uint16_t offset = 0;  // from the transaction's first byte
  uint64_t got = 0;
  TransactionFault transaction;
};

// Offsets are from the transaction's first byte.
struct CoSigningPlace {
  uint16_t signature_at;   // 64 bytes, zeros
  uint16_t message_begin;  // what is to be signed: [message_begin, message_end)
  uint16_t message_end;
  uint16_t lifetime_begin;  // 32 bytes
};

// Neither allocates nor waits; one that is made may be used by any thread.
class CoSigningCheck {
 public:
  CoSigningCheck() : inspector_({}, {}) {}

  // `length` bytes that must be one transaction and nothing else; nobody else may change them
  // meanwhile, nor until they are signed. True: `out` is filled; false: `fault` is.
  bool place(const uint8_t* bytes, size_t length, const PublicKey& nonce_account,
             const PublicKey& authority, CoSigningPlace& out, CoSigningFault& fault) const;

 private:
  TransactionInspector inspector_;  // without tips: they are not asked for here
};

}  // namespace shredway
