// Fuzz target: any bytes as a table of stream filters, and as transactions that are matched with
// it. A table is refused with a text or accepted; every id that matches belongs to the tier.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "stream/filter_index.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

// The first two bytes are the length of the table; the rest are transactions.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  if (length < 2) return 0;
  const size_t table_bytes = std::min(size_t{bytes[0]} + size_t{bytes[1]} * 256, length - 2);
  std::string error;
  const auto index = FilterIndex::parse(bytes + 2, table_bytes, error);
  require((index == nullptr) == !error.empty());
  if (!index) return 0;
  std::vector<uint16_t> matched;
  for (size_t at = 2 + table_bytes; at < length;) {
    Transaction transaction;
    if (parse_transaction(bytes + at, length - at, transaction) != ParseResult::complete) break;
    for (uint32_t tier = 0; tier < kStreamTiersMax; tier++) {
      index->match(bytes + at, transaction, {tier}, matched);
      const std::vector<uint16_t>& ids = index->ids_of(tier);
      for (const uint16_t id : matched) require(std::find(ids.begin(), ids.end(), id) != ids.end());
      std::sort(matched.begin(), matched.end());
      require(std::adjacent_find(matched.begin(), matched.end()) == matched.end());
    }
    at += transaction.bytes;
  }
  return 0;
}
