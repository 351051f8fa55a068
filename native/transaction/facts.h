// Facts: what a transaction asks for and offers: tips, compute budget, fee, durable nonce.
//
// One walk over the instructions, in place. Called by the inspector, on bytes that have parsed and
// passed the sanitiser. Nothing here depends on accounts: a tip that the sender cannot pay counts
// here and fails on the chain.
//
// Facts: agave programs/system/src/system_processor.rs and svm-transaction (instruction data may
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
  // Sum of System Transfer and TransferWithSeed from and to static writable keys, where the
  // recipient is one of the tip addresses and the source is none.
  uint64_t tip_lamports = 0;
  // Legacy and v0: price x limit, rounded up, at most 2^64 - 1; v1: as its configuration says.
  uint64_t priority_fee_lamports = 0;
  // Micro-lamports, as asked for; version 1 has no price, but a fee.
  uint64_t compute_unit_price = 0;
  // Asked for, or the default of the instructions (legacy, v0) or 0 (v1); at most kComputeUnitsMax.
  uint32_t compute_unit_limit = 0;
  // The first instruction advances a durable nonce.
  bool uses_nonce = false;
  // Places of their keys, when it does. The authority is the account where it usually stands, or
  // else the first signer of the instruction; which of several is the right one only the chain
  // knows.
  uint8_t nonce_account = 0, nonce_authority = 0;
  bool has_front_key = false;
};

// False when a validator would refuse the transaction for what it asks for; else `out` is filled.
bool read_facts(const uint8_t* bytes, const Transaction& transaction,
                const AddressSet& tip_addresses, const KeyRanges& front_keys, TransactionFacts& out,
                TransactionFault& fault);

}  // namespace shredway
