// Entry traffic: batches of entries as blocks hold them, for everything that reads the chain.
//
// Used by ShredStream. Entries of 1 to 16 transactions, some 215 to 355 bytes each: half of them
// votes, a quarter plain transfers, a quarter version 0 with a table lookup. They parse as real
// ones do and verify as nothing; every signature is another one. The same sequence in every run.
#pragma once

#include <cstdint>
#include <vector>

#include "relay/landings.h"

namespace shredway::bench {

class EntryMaker {
 public:
  EntryMaker();
  // Replaces `batch` by a well-formed one of at most `bytes_max` bytes, which it fills but for less
  // than one transaction. bytes_max >= 1000.
  void make(size_t bytes_max, std::vector<uint8_t>& batch);
  // Of all batches so far.
  uint64_t transactions() const { return transactions_; }
  // Of the last batch, in order, without the votes.
  const std::vector<TransactionSignature>& signatures() const { return signatures_; }

 private:
  uint64_t random();
  void add_entry_header(std::vector<uint8_t>& batch, uint64_t transaction_count);

  uint64_t state_ = 0x2545f4914f6cdd1du;
  uint64_t transactions_ = 0;
  std::vector<std::vector<uint8_t>> kinds_;  // transactions whose signature is still to come
  std::vector<TransactionSignature> signatures_;
};

}  // namespace shredway::bench
