// Votes: recognises the transactions by which validators vote.
#pragma once

#include "transaction/wire.h"

namespace shredway {

// True for a transaction that only votes. Votes of all validators fill every block.
bool is_simple_vote(const uint8_t* bytes, const Transaction& transaction);

}  // namespace shredway
