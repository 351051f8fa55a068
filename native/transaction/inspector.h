// Inspector: parses and checks a transaction before any other use.
//
// Parses, sanitises and reads the facts, in this order; the first fault ends the inspection. Used
// on the event loop for each request, so it never allocates or waits. Any thread may use an
// instance.
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
                       std::span<const KeyRange> dont_front_keys)
      : tip_addresses_(tip_addresses), dont_front_keys_(dont_front_keys) {}

  // Expects `length` bytes of exactly one transaction, which must not change during the call. Fills
  // `transaction` and `facts` and returns true, or fills `fault` and returns false.
  bool inspect(const uint8_t* bytes, size_t length, Transaction& transaction,
               TransactionFacts& facts, TransactionFault& fault) const;

 private:
  AddressSet tip_addresses_;
  KeyRanges dont_front_keys_;
};

}  // namespace shredway
