// Sanitiser: may this transaction execute at all, as far as its own bytes say?
//
// Refuses what every validator refuses before it looks at an account: what it accepts may still
// fail, what it refuses can never land. Called by the inspector, on bytes that have parsed
// (wire.h). No allocation, no memory. Signatures are not checked here
// (verify/signature_verifier.h).
//
// Facts: agave transaction-view/src/sanitize.rs, solana-sdk message/src/versions/{v0,v1}
// (122f32e5), SIMD-0385 (36838d88); SIMD-0160 (64 instructions) and SIMD-0406 (255 accounts in an
// instruction) are active on every cluster. Repeated keys are refused by validators when they lock
// the accounts; here at once. How many accounts may be locked is the cluster's choice, so not
// asked.
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

// What a v1 transaction asks for in its configuration; absent values are 0, as the SIMD says.
struct TransactionConfig {
  uint64_t priority_fee_lamports = 0;
  uint32_t compute_unit_limit = 0;
  uint32_t heap_bytes = kHeapBytesMin;
};
// Of a v1 transaction whose mask has no unknown bits and both or none of bits 0 and 1.
TransactionConfig read_config(const uint8_t* bytes, const Transaction& transaction);
// Whether programs may have a heap of this size.
bool is_heap_size(uint32_t bytes);

// Whether the static key at this place is writable, as the header says.
inline bool is_writable(const Transaction& transaction, size_t place) {
  if (place < transaction.required_signatures)
    return place + transaction.readonly_signed < transaction.required_signatures;
  return place + transaction.readonly_unsigned < transaction.key_count;
}

// True when there is nothing to refuse; else `fault` says what.
bool sanitize(const uint8_t* bytes, const Transaction& transaction, TransactionFault& fault);

}  // namespace shredway
