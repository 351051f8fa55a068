#include "entry_traffic.h"

#include <algorithm>
#include <cstring>

#include "deshred/entry_stream.h"

namespace shredway::bench {
namespace {

constexpr size_t kSignatureBegin = 1;  // behind the count
constexpr uint64_t kEntryTransactionsMax = 16;

// Vote111111111111111111111111111111111111111
constexpr uint8_t kVoteProgram[kPublicKeyBytes] = {
    0x07, 0x61, 0x48, 0x1d, 0x35, 0x74, 0x74, 0xbb, 0x7c, 0x4d, 0x76, 0x24, 0xeb, 0xd3, 0xbd, 0xb3,
    0xd8, 0x35, 0x5e, 0x73, 0xd1, 0x10, 0x43, 0xfc, 0x0d, 0xa3, 0x53, 0x80, 0x00, 0x00, 0x00, 0x00};

using Bytes = std::vector<uint8_t>;

void append_bytes(Bytes& to, std::initializer_list<uint8_t> values) {
  for (const uint8_t value : values) to.push_back(value);
}

// Keys, hashes and data with arbitrary content.
void append_filling(Bytes& to, size_t count) {
  for (size_t i = 0; i < count; i++) to.push_back(static_cast<uint8_t>(to.size() * 151 + 7));
}

// One empty signature, header, `keys` keys and the lifetime.
Bytes begin_transaction(bool version_0, uint8_t keys) {
  Bytes out{1};
  out.resize(out.size() + kTransactionSignatureBytes);
  if (version_0) out.push_back(0x80);
  append_bytes(out, {1, 0, 1, keys});
  append_filling(out, keys * kPublicKeyBytes + kHashBytes);
  return out;
}

Bytes transfer() {
  Bytes out = begin_transaction(false, 3);
  append_bytes(out, {1, 2, 2, 0, 1, 12});
  append_filling(out, 12);
  return out;
}

Bytes vote() {
  constexpr uint8_t kKeys = 3, kDataBytes = 148;
  Bytes out = begin_transaction(false, kKeys);
  constexpr size_t kKeysBegin = kSignatureBegin + kTransactionSignatureBytes + 4;
  std::memcpy(&out[kKeysBegin + (kKeys - 1) * kPublicKeyBytes], kVoteProgram, kPublicKeyBytes);
  append_bytes(out, {1, 2, 2, 0, 1, (kDataBytes & 0x7f) | 0x80, kDataBytes >> 7});
  append_filling(out, kDataBytes);
  return out;
}

// Two compute budget instructions, one call with ten accounts, one table.
Bytes swap() {
  Bytes out = begin_transaction(true, 5);
  append_bytes(out, {3, 3, 0, 5});
  append_filling(out, 5);
  append_bytes(out, {3, 0, 9});
  append_filling(out, 9);
  append_bytes(out, {4, 10, 0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 24});
  append_filling(out, 24);
  out.push_back(1);
  append_filling(out, kPublicKeyBytes);
  append_bytes(out, {4, 1, 2, 3, 4, 3, 5, 6, 7});
  return out;
}

constexpr size_t kVoteKinds = 4;  // of eight

}  // namespace

EntryMaker::EntryMaker()
    : kinds_{vote(), vote(), vote(), vote(), transfer(), transfer(), swap(), swap()} {}

uint64_t EntryMaker::random() {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

void EntryMaker::add_entry_header(Bytes& batch, uint64_t transaction_count) {
  const size_t at = batch.size();
  batch.resize(at + kEntryHeaderBytes);
  const uint64_t hash_count = 1 + random() % 12'500;
  std::memcpy(&batch[at], &hash_count, sizeof hash_count);
  for (size_t i = 0; i < kHashBytes; i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(&batch[at + sizeof hash_count + i], &word, sizeof word);
  }
  std::memcpy(&batch[at + sizeof hash_count + kHashBytes], &transaction_count,
              sizeof transaction_count);
}

void EntryMaker::make(size_t bytes_max, Bytes& batch) {
  constexpr size_t kLongestBytes = 400;
  signatures_.clear();
  batch.assign(sizeof(uint64_t), 0);
  uint64_t entries = 0;
  while (batch.size() + kEntryHeaderBytes + kLongestBytes <= bytes_max) {
    const size_t fitting = (bytes_max - batch.size() - kEntryHeaderBytes) / kLongestBytes;
    const uint64_t count = std::min<uint64_t>(1 + random() % kEntryTransactionsMax, fitting);
    add_entry_header(batch, count);
    entries++;
    for (uint64_t i = 0; i < count; i++) {
      const size_t kind = random() % kinds_.size();
      const size_t at = batch.size();
      batch.insert(batch.end(), kinds_[kind].begin(), kinds_[kind].end());
      TransactionSignature signature;
      for (size_t word = 0; word < signature.size(); word += sizeof(uint64_t)) {
        const uint64_t value = random();
        std::memcpy(&signature[word], &value, sizeof value);
      }
      std::memcpy(&batch[at + kSignatureBegin], signature.data(), signature.size());
      if (kind >= kVoteKinds) signatures_.push_back(signature);
    }
    transactions_ += count;
  }
  std::memcpy(batch.data(), &entries, sizeof entries);
}

}  // namespace shredway::bench
