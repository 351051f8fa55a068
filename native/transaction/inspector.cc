#include "transaction/inspector.h"

#include "transaction/sanitize.h"

namespace shredway {
namespace {

using enum TransactionRefusal;

// Finds the reason: an unknown version and a wrong length have their own refusals.
bool refuse_malformed(const uint8_t* bytes, size_t length, TransactionFault& fault) {
  const bool is_v1 = bytes[0] == kV1Prefix;
  if (bytes[0] > kV1Prefix) return refuse(fault, version_unknown, 0, bytes[0] - kVersionBit);
  const size_t message = 1 + bytes[0] * kTransactionSignatureBytes;
  if (bytes[0] < kVersionBit && message < length && bytes[message] > kV1Prefix)
    return refuse(fault, version_unknown, message, bytes[message] - kVersionBit);
  if (length > (is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax))
    return refuse(fault, too_long, 0, length);
  return refuse(fault, malformed, 0, 0);
}

}  // namespace

bool TransactionInspector::inspect(const uint8_t* bytes, size_t length, Transaction& transaction,
                                   TransactionFacts& facts, TransactionFault& fault) const {
  if (length > kTransactionV1BytesMax) return refuse(fault, too_long, 0, length);
  switch (parse_transaction(bytes, length, transaction)) {
    case ParseResult::complete:
      break;
    case ParseResult::incomplete:
      return refuse(fault, cut_short, length, length);
    case ParseResult::malformed:
      return refuse_malformed(bytes, length, fault);
  }
  if (transaction.bytes != length)
    return refuse(fault, trailing_bytes, transaction.bytes, length - transaction.bytes);
  return sanitize(bytes, transaction, fault) &&
         read_facts(bytes, transaction, tip_addresses_, dont_front_keys_, facts, fault);
}

}  // namespace shredway
