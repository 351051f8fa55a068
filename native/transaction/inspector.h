// Inspector: the one look at a transaction before anything is done with it.
//
// Parse, sanitise, facts, in this order; the first fault ends it. Called on the event loop for each
// request, so it neither allocates nor waits; one that is made may be used by any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transaction/facts.h"
#include "transaction/refusal.h"
#include "transaction/wire.h"

namespace shredway {

class TransactionInspector {
 public:
  TransactionInspector(std::span<const PublicKey> tip_addresses,
                       std::span<const KeyRange> front_keys)
      : tip_addresses_(tip_addresses), front_keys_(front_keys) {}

  // `length` bytes that must be one transaction and nothing else. True: `transaction` and `facts`
  // are filled; false: `fault` is. Nobody else may change the bytes meanwhile.
  bool inspect(const uint8_t* bytes, size_t length, Transaction& transaction,
               TransactionFacts& facts, TransactionFault& fault) const;

 private:
  AddressSet tip_addresses_;
  KeyRanges front_keys_;
};

}  // namespace shredway
