// Sanitiser: checks whether a transaction can execute, as far as its own bytes show.
//
// Refuses what every validator refuses before it loads an account: an accepted transaction may
// still fail; a refused one can never land. Used by the inspector on parsed bytes (wire.h). No
// allocation, no state. Signatures are checked elsewhere (verify/signature_verifier.h).
//
// Sources: agave transaction-view/src/sanitize.rs, solana-sdk message/src/versions/{v0,v1}
// (122f32e5), SIMD-0385 (36838d88); SIMD-0160 (64 instructions) and SIMD-0406 (255 accounts in an
// instruction) are active on every cluster. Validators refuse repeated keys when they lock the
// accounts; this check refuses them at once. The maximum of locked accounts depends on the cluster,
// so it is not checked.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transaction/refusal.h"
#include "transaction/wire.h"

namespace shredway {

inline constexpr size_t kTransactionSignaturesMax = 12;
inline constexpr size_t kTransactionInstructionsMax = 64;
inline constexpr size_t kTransactionAccountsMax = 256;
inline constexpr size_t kInstructionAccountsMax = 255;
inline constexpr uint32_t kHeapBytesMin = 32 * 1024;
inline constexpr uint32_t kHeapBytesMax = 256 * 1024;
inline constexpr uint32_t kHeapBytesStep = 1024;

// Values of a v1 transaction's configuration; absent values are 0, as in the SIMD.
struct TransactionConfig {
  uint64_t priority_fee_lamports = 0;
  uint32_t compute_unit_limit = 0;
  uint32_t heap_bytes = kHeapBytesMin;
};
// Precondition: a v1 transaction whose mask has no unknown bits and both or none of bits 0 and 1.
TransactionConfig read_config(const uint8_t* bytes, const Transaction& transaction);
// True if programs may have a heap of this size.
bool is_heap_size(uint32_t bytes);

// True if the header marks the static key at this index as writable.
inline bool is_writable(const Transaction& transaction, size_t place) {
  if (place < transaction.required_signatures)
    return place + transaction.readonly_signed < transaction.required_signatures;
  return place + transaction.readonly_unsigned < transaction.key_count;
}

// Returns true if the transaction is acceptable; otherwise fills `fault`.
bool sanitize(const uint8_t* bytes, const Transaction& transaction, TransactionFault& fault);

}  // namespace shredway
