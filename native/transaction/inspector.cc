#include "transaction/inspector.h"

#include "transaction/sanitize.h"

namespace shredway {
namespace {

using enum TransactionRefusal;

// The counts of version 1 are single bytes, so that only their bounds can be exceeded.
bool refuse_v1_counts(const Transaction& parts, TransactionFault& fault) {
  if (parts.required_signatures > kTransactionV1SignaturesMax)
    return refuse(fault, signatures_out_of_range, kTransactionV1Header, parts.required_signatures);
  if (parts.instruction_count > kTransactionV1InstructionsMax)
    return refuse(fault, instructions_too_many, kTransactionV1InstructionCount,
                  parts.instruction_count);
  return refuse(fault, keys_too_many, kTransactionV1KeyCount, parts.key_count);
}

// Finds the reason, with the received value.
bool refuse_malformed(const uint8_t* bytes, size_t length, TransactionFault& fault) {
  const bool is_v1 = bytes[0] == kV1Prefix;
  if (bytes[0] > kV1Prefix) return refuse(fault, version_unknown, 0, bytes[0] - kVersionBit);
  if (bytes[0] == kVersionBit) return refuse(fault, signatures_not_first, 0, 0);
  const size_t message = 1 + bytes[0] * kTransactionSignatureBytes;
  if (!is_v1 && message < length && bytes[message] > kVersionBit)
    return refuse(fault, bytes[message] == kV1Prefix ? version_after_signatures : version_unknown,
                  message, bytes[message] - kVersionBit);
  if (length > (is_v1 ? kTransactionV1BytesMax : kTransactionBytesMax))
    return refuse(fault, too_long, 0, length);
  Transaction parts;
  const MalformedPart part = find_malformed_part(bytes, length, parts);
  if (part.needed > 0) return refuse(fault, parts_too_long, part.offset, part.needed);
  if (is_v1) return refuse_v1_counts(parts, fault);
  // A compact-u16: its second byte is 0, or its third byte is not 1 to 3.
  const size_t second = part.offset + 1;
  const size_t wrong = bytes[second] == 0 ? second : second + 1;
  return refuse(fault, count_invalid, wrong, bytes[wrong]);
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
