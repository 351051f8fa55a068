// Facts: the tips, compute budget, fee and durable nonce of a transaction.
//
// One walk over the instructions, in place. Used by the inspector on bytes that were parsed and
// passed the sanitiser. No fact depends on accounts: a tip that the sender cannot pay counts here
// and fails on chain.
//
// Sources: agave programs/system/src/system_processor.rs and svm-transaction (instruction data may
// be longer than needed), compute-budget-instruction, builtins-default-costs (4.2), SIMD-0170,
// SIMD-0242, SIMD-0385.
#pragma once

#include <cstdint>

#include "transaction/key_sets.h"
#include "transaction/refusal.h"
#include "transaction/wire.h"

namespace shredway {

inline constexpr uint32_t kComputeUnitsMax = 1'400'000;
inline constexpr uint32_t kBuiltinComputeUnits = 3'000;
inline constexpr uint32_t kProgramComputeUnits = 200'000;

struct TransactionFacts {
  // Sum of System Transfer and TransferWithSeed instructions between static writable keys, to a tip
  // address and not from one.
  uint64_t tip_lamports = 0;
  // Legacy and v0: price x limit, rounded up, at most 2^64 - 1; v1: value of the configuration.
  uint64_t priority_fee_lamports = 0;
  // Requested price in micro-lamports; version 1 has a fee instead of a price.
  uint64_t compute_unit_price = 0;
  // The requested limit, or the default of the instructions (legacy, v0) or 0 (v1); at most
  // kComputeUnitsMax.
  uint32_t compute_unit_limit = 0;
  // True if the first instruction advances a durable nonce.
  bool uses_nonce = false;
  // Indexes of their keys if uses_nonce. The authority is the account at its usual index, or else
  // the first signer of the instruction. If several could be the authority, only the chain knows
  // the right one.
  uint8_t nonce_account = 0, nonce_authority = 0;
  bool has_dont_front_key = false;
};

// Fills `out`, or returns false if a validator would refuse the transaction for its requests.
bool read_facts(const uint8_t* bytes, const Transaction& transaction,
                const AddressSet& tip_addresses, const KeyRanges& dont_front_keys,
                TransactionFacts& out, TransactionFault& fault);

}  // namespace shredway
