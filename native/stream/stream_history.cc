#include "stream/stream_history.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace shredway {
namespace {

constexpr size_t kHugePageBytes = 2u << 20;

}  // namespace

void StreamHistory::Free::operator()(uint8_t* bytes) const { std::free(bytes); }

std::unique_ptr<StreamHistory> StreamHistory::create(size_t capacity) {
  const size_t bytes = (capacity + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  Memory memory(static_cast<uint8_t*>(std::aligned_alloc(kHugePageBytes, bytes)));
  if (!memory) return nullptr;
  madvise(memory.get(), bytes, MADV_HUGEPAGE);  // a request: the kernel may refuse
  return std::unique_ptr<StreamHistory>(new StreamHistory(capacity / 8 * 8, std::move(memory)));
}

// A record is contiguous. A zero length says that the next one begins at the front.
void StreamHistory::append(StreamMessageHead head, std::span<const uint8_t> content) {
  const uint64_t bytes = (sizeof head + content.size() + 7) / 8 * 8;
  if (bytes > capacity_ / 4) return;
  uint64_t& oldest = oldest_[head.tier];
  if (oldest == 0) oldest = head.slot + 1;
  const uint64_t skipped = to_end(head_) < bytes ? to_end(head_) : 0;
  while (tail_ != head_) {
    StreamMessageHead first;
    std::memcpy(&first, at(tail_), sizeof first);
    const bool is_old = first.arrival_ns + kLifetime_ns < head.arrival_ns;
    if (!is_old && head_ + skipped + bytes - tail_ <= capacity_) break;
    drop_oldest();
  }
  constexpr uint32_t kSkip = 0;
  const bool was_empty = tail_ == head_;
  if (skipped) std::memcpy(at(head_), &kSkip, sizeof kSkip);
  head_ += skipped;
  if (was_empty) tail_ = head_;
  head.bytes = static_cast<uint32_t>(bytes);
  head.content_bytes = static_cast<uint32_t>(content.size());
  std::memcpy(at(head_), &head, sizeof head);
  if (!content.empty()) std::memcpy(at(head_) + sizeof head, content.data(), content.size());
  head_ += bytes;
}

StreamHistory::Record StreamHistory::read(uint64_t& position) const {
  Record record;
  std::memcpy(&record.head, at(position), sizeof record.head);
  record.content = {at(position) + sizeof record.head, record.head.content_bytes};
  position = skip_gap(position + record.head.bytes);
  return record;
}

// Every position that leaves this class is that of a record, or the end.
uint64_t StreamHistory::skip_gap(uint64_t position) const {
  if (position == head_) return position;
  uint32_t bytes;
  std::memcpy(&bytes, at(position), sizeof bytes);
  return bytes == 0 ? position + to_end(position) : position;
}

void StreamHistory::drop_oldest() {
  StreamMessageHead first;
  std::memcpy(&first, at(tail_), sizeof first);
  uint64_t& oldest = oldest_[first.tier];
  oldest = std::max(oldest, first.slot + 1);
  tail_ = skip_gap(tail_ + first.bytes);
}

}  // namespace shredway
