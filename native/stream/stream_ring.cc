#include "stream/stream_ring.h"

namespace shredway {

// A message is contiguous. If it does not fit before the end of the memory, a zero length there
// says that it begins at the front.
bool StreamRing::push(StreamMessageHead head, std::span<const uint16_t> filters,
                      std::span<const uint8_t> content, std::span<const uint8_t> loaded) {
  const size_t used = sizeof head + filters.size_bytes() + content.size() + loaded.size();
  const size_t bytes = (used + 7) / 8 * 8;
  if (bytes > kMessageBytesMax) return false;
  uint64_t begin = head_.load(std::memory_order_relaxed);
  const size_t skipped = to_end(begin) < bytes ? to_end(begin) : 0;
  if (begin + skipped + bytes - tail_.load(std::memory_order_acquire) > kBytes) return false;
  constexpr uint32_t kSkip = 0;
  if (skipped) std::memcpy(at(begin), &kSkip, sizeof kSkip);
  begin += skipped;
  head.bytes = static_cast<uint32_t>(bytes);
  head.filter_count = static_cast<uint16_t>(filters.size());
  head.content_bytes = static_cast<uint32_t>(content.size());
  uint8_t* to = at(begin);
  std::memcpy(to, &head, sizeof head);
  to += sizeof head;
  if (!filters.empty()) std::memcpy(to, filters.data(), filters.size_bytes());
  to += filters.size_bytes();
  if (!content.empty()) std::memcpy(to, content.data(), content.size());
  to += content.size();
  if (!loaded.empty()) std::memcpy(to, loaded.data(), loaded.size());
  std::memset(to + loaded.size(), 0, bytes - used);
  head_.store(begin + bytes, std::memory_order_release);
  return true;
}

size_t StreamRing::next_bytes() {
  uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail == head_.load(std::memory_order_acquire)) return 0;
  uint32_t bytes;
  std::memcpy(&bytes, at(tail), sizeof bytes);
  if (bytes == 0) {
    tail += to_end(tail);
    tail_.store(tail, std::memory_order_release);
    std::memcpy(&bytes, at(tail), sizeof bytes);
  }
  return bytes;
}

size_t StreamRing::drain(uint8_t* out, size_t max, size_t enough) {
  size_t drained = 0;
  while (drained < enough) {
    const size_t bytes = next_bytes();
    if (bytes == 0 || bytes > max - drained) break;
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    std::memcpy(out + drained, at(tail), bytes);
    drained += bytes;
    tail_.store(tail + bytes, std::memory_order_release);
  }
  return drained;
}

}  // namespace shredway
