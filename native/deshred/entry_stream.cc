#include "deshred/entry_stream.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "shred/wire.h"

namespace shredway {
namespace {

// More than the data shreds of a slot can hold, whatever their variant.
constexpr uint64_t kSlotBytesMax = uint64_t{kShredsPerSlotMax} * kDataShredBytes;
constexpr uint64_t kEntriesMax = kSlotBytesMax / kEntryHeaderBytes;
constexpr uint64_t kTransactionsMax = kSlotBytesMax / kTransactionBytesMin;

constexpr uint16_t kMarkerVersion = 1;
constexpr uint8_t kMarkerKindMax = static_cast<uint8_t>(BlockMarkerKind::genesis_certificate);

// A carried part is copied and parsed again in steps of at least this many bytes, so that hostile
// instructions of 3 bytes each do not cost one more parse each. It is small compared with a piece
// of 963 bytes, so that most of a batch is parsed in place.
constexpr size_t kCopyStepBytes = 128;

// Precondition: `head` has kMarkerHeaderBytes bytes.
bool is_marker(const uint8_t* head) {
  return load_u16(head) == kMarkerVersion && head[2] <= kMarkerKindMax;
}

BlockMarker marker_at(const uint8_t* head, size_t length) {
  const uint16_t payload_bytes = load_u16(head + 3);
  const size_t seen =
      std::min({length - kMarkerHeaderBytes, size_t{payload_bytes}, kMarkerPayloadSeenBytesMax});
  return {static_cast<BlockMarkerKind>(head[2]), payload_bytes, head + kMarkerHeaderBytes,
          static_cast<uint16_t>(seen)};
}

}  // namespace

void EntryStream::reset() {
  entries_ = 0;
  transactions_ = 0;
  part_ = Part::count;
  carried_ = 0;
}

bool EntryStream::feed(const uint8_t* bytes, size_t length, EntrySink& sink) {
  while (length > 0 && reads_on()) {
    if (carried_ == 0) {
      const size_t used = take_part(bytes, length, sink);
      if (used == kUnfinished) {
        if (!reads_on()) break;
        assert(length < needed_ && needed_ <= kCarryBytesMax);
        std::memcpy(carry_.data(), bytes, length);
        carried_ = length;
        break;
      }
      bytes += used;
      length -= used;
      continue;
    }
    const size_t copied =
        std::min({length, std::max(needed_ - carried_, kCopyStepBytes), kCarryBytesMax - carried_});
    std::memcpy(carry_.data() + carried_, bytes, copied);
    const size_t used = take_part(carry_.data(), carried_ + copied, sink);
    // The part was unfinished without the copied bytes, so it ends within them.
    const size_t from_piece = used == kUnfinished ? copied : used - carried_;
    carried_ = used == kUnfinished ? carried_ + copied : 0;
    bytes += from_piece;
    length -= from_piece;
  }
  return part_ != Part::malformed;
}

bool EntryStream::end(EntrySink& sink) {
  switch (part_) {
    case Part::count:
      return carried_ == 0;
    case Part::ignored:
      return true;
    case Part::marker:
      if (carried_ < kMarkerHeaderBytes) return true;
      sink.on_marker(marker_at(carry_.data(), carried_));
      malformed();
      return false;
    case Part::entry_header:
    case Part::transaction:
    case Part::marker_rest:
    case Part::malformed:
      break;
  }
  return false;
}

size_t EntryStream::unfinished(size_t needed) {
  needed_ = needed;
  return kUnfinished;
}

size_t EntryStream::malformed() {
  part_ = Part::malformed;
  return kUnfinished;
}

size_t EntryStream::take_part(const uint8_t* bytes, size_t length, EntrySink& sink) {
  switch (part_) {
    case Part::transaction:
      return take_transaction(bytes, length, sink);
    case Part::entry_header:
      return take_entry_header(bytes, length, sink);
    case Part::count:
      return take_count(bytes, length);
    case Part::marker:
      return take_marker(bytes, length, sink);
    case Part::marker_rest:
      return take_marker_rest(length);
    case Part::ignored:
    case Part::malformed:
      break;
  }
  return kUnfinished;
}

size_t EntryStream::take_count(const uint8_t* bytes, size_t length) {
  if (length < sizeof entries_left_) return unfinished(sizeof entries_left_);
  entries_left_ = load_u64(bytes);
  if (entries_left_ > kEntriesMax) return malformed();
  part_ = entries_left_ == 0 ? Part::marker : Part::entry_header;
  return sizeof entries_left_;
}

void EntryStream::end_entry() { part_ = entries_left_ == 0 ? Part::ignored : Part::entry_header; }

size_t EntryStream::take_entry_header(const uint8_t* bytes, size_t length, EntrySink& sink) {
  if (length < kEntryHeaderBytes) return unfinished(kEntryHeaderBytes);
  const Entry entry = {load_u64(bytes), bytes + 8, load_u64(bytes + 8 + kHashBytes)};
  if (entry.transaction_count > kTransactionsMax) return malformed();
  sink.on_entry(entry);
  entries_++;
  entries_left_--;
  transactions_left_ = entry.transaction_count;
  if (transactions_left_ == 0) end_entry();
  else part_ = Part::transaction;
  return kEntryHeaderBytes;
}

size_t EntryStream::take_transaction(const uint8_t* bytes, size_t length, EntrySink& sink) {
  EntryTransaction transaction;
  size_t needed;
  const ParseResult result = parse_transaction(bytes, length, transaction.transaction, needed);
  if (result == ParseResult::incomplete) return unfinished(needed);
  if (result == ParseResult::malformed) return malformed();
  transaction.bytes = bytes;
  transaction.ordinal = transactions_;
  sink.on_transaction(transaction);
  transactions_++;
  transactions_left_--;
  if (transactions_left_ == 0) end_entry();
  return transaction.transaction.bytes;
}

size_t EntryStream::take_marker(const uint8_t* bytes, size_t length, EntrySink& sink) {
  if (length < kMarkerHeaderBytes) return unfinished(kMarkerHeaderBytes);
  if (!is_marker(bytes)) {
    part_ = Part::ignored;
    return kUnfinished;
  }
  const BlockMarker marker = marker_at(bytes, length);
  const size_t reported = std::min(size_t{marker.payload_bytes}, kMarkerPayloadSeenBytesMax);
  if (marker.payload_seen < reported) return unfinished(kMarkerHeaderBytes + reported);
  sink.on_marker(marker);
  marker_rest_bytes_ = static_cast<uint16_t>(marker.payload_bytes - reported);
  part_ = marker_rest_bytes_ == 0 ? Part::ignored : Part::marker_rest;
  return kMarkerHeaderBytes + reported;
}

size_t EntryStream::take_marker_rest(size_t length) {
  const size_t used = std::min(length, size_t{marker_rest_bytes_});
  marker_rest_bytes_ = static_cast<uint16_t>(marker_rest_bytes_ - used);
  if (marker_rest_bytes_ == 0) part_ = Part::ignored;
  return used;
}

}  // namespace shredway
