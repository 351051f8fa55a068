// Entry traffic: batches of entries as in real blocks, for all code that reads entries.
//
// Used by ShredStream. Entries of 1 to 16 transactions of about 215 to 355 bytes: half of them
// votes, a quarter plain transfers, a quarter version 0 with a table lookup. They parse like real
// ones but do not verify; all signatures differ. The sequence is the same in every run.
#pragma once

#include <cstdint>
#include <vector>

#include "relay/landings.h"

namespace shredway::bench {

class EntryMaker {
 public:
  EntryMaker();
  // Replaces `batch` by a well-formed one of at most `bytes_max` bytes, filled up to less than one
  // transaction. bytes_max >= 1000.
  void make(size_t bytes_max, std::vector<uint8_t>& batch);
  // Number of transactions in all batches so far.
  uint64_t transactions() const { return transactions_; }
  // Signatures of the last batch, in order, without votes.
  const std::vector<TransactionSignature>& signatures() const { return signatures_; }

 private:
  uint64_t random();
  void add_entry_header(std::vector<uint8_t>& batch, uint64_t transaction_count);

  uint64_t state_ = 0x2545f4914f6cdd1du;
  uint64_t transactions_ = 0;
  std::vector<std::vector<uint8_t>> kinds_;  // transactions with an empty signature
  std::vector<TransactionSignature> signatures_;
};

}  // namespace shredway::bench
