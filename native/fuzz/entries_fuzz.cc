// Fuzz target: any bytes as a batch of entries, in any pieces. The first four bytes choose the
// pieces; the stream's reports must not depend on them.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "deshred/entry_stream.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Records all reports of a stream and checks the invariants.
class Transcript final : public EntrySink {
 public:
  std::vector<uint8_t> bytes;
  uint64_t entries = 0;
  uint32_t transactions = 0;
  uint64_t owed = 0;  // transactions of the current entry
  bool marker = false;

  void on_entry(const Entry& entry) override {
    require(owed == 0 && !marker);
    entries++;
    owed = entry.transaction_count;
    note('e', &entry.hash_count, sizeof entry.hash_count);
    note('h', entry.hash, kHashBytes);
    note('n', &entry.transaction_count, sizeof entry.transaction_count);
  }
  void on_transaction(const EntryTransaction& transaction) override {
    require(owed > 0 && transaction.ordinal == transactions);
    owed--;
    transactions++;
    Transaction again;
    require(parse_transaction(transaction.bytes, transaction.transaction.bytes, again) ==
            ParseResult::complete);
    require(again.bytes == transaction.transaction.bytes);
    note('t', transaction.bytes, again.bytes);
  }
  void on_marker(const BlockMarker& block_marker) override {
    require(!marker && entries == 0);
    require(static_cast<uint8_t>(block_marker.kind) <= 3);
    require(block_marker.payload_seen <= block_marker.payload_bytes);
    require(block_marker.payload_seen <= kMarkerPayloadSeenBytesMax);
    marker = true;
    note('m', &block_marker.kind, 1);
    note('l', &block_marker.payload_bytes, sizeof block_marker.payload_bytes);
    note('p', block_marker.payload, block_marker.payload_seen);
  }

 private:
  void note(char what, const void* from, size_t count) {
    const auto* begin = static_cast<const uint8_t*>(from);
    bytes.push_back(static_cast<uint8_t>(what));
    bytes.insert(bytes.end(), begin, begin + count);
  }
};

// Feeds pieces of pseudorandom lengths up to `piece_max`; 0: a single piece.
Transcript read(EntryStream& stream, const uint8_t* batch, size_t length, uint32_t state,
                uint32_t piece_max) {
  Transcript transcript;
  stream.reset();
  bool fed = true;
  for (size_t at = 0; at < length;) {
    state = state * 1664525u + 1013904223u;
    size_t piece_bytes = piece_max ? (state >> 8) % (piece_max + 1) : length;
    if (piece_bytes > length - at) piece_bytes = length - at;
    // Exactly as long as the piece and freed after it, so that an access elsewhere is detected.
    const std::unique_ptr<uint8_t[]> piece(new uint8_t[piece_bytes]);
    std::memcpy(piece.get(), batch + at, piece_bytes);
    const bool feeds = stream.feed(piece.get(), piece_bytes, transcript);
    require(fed || !feeds);
    fed = feeds;
    at += piece_bytes;
  }
  const size_t said = transcript.bytes.size();
  const bool ended = stream.end(transcript);
  require(!ended || (fed && transcript.owed == 0 && transcript.bytes.size() == said));
  require(transcript.entries == stream.entries());
  require(transcript.transactions == stream.transactions());
  transcript.bytes.push_back(fed);
  transcript.bytes.push_back(ended);
  return transcript;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  if (length < 4) return 0;
  uint32_t state;
  std::memcpy(&state, bytes, sizeof state);
  static EntryStream stream;
  const Transcript whole = read(stream, bytes + 4, length - 4, 0, 0);
  const Transcript pieces = read(stream, bytes + 4, length - 4, state, 1 + state % 1000);
  require(whole.bytes == pieces.bytes);
  if (length < 600) {
    const Transcript small = read(stream, bytes + 4, length - 4, state, 1);
    require(whole.bytes == small.bytes);
  }
  return 0;
}
