#include "submission/memory_streams.h"

#include <algorithm>
#include <cstring>

namespace shredway {

MemoryStreams::Stream* MemoryStreams::find(int fd) {
  const auto duplicate = duplicates_.find(fd);
  const auto found = streams_.find(duplicate == duplicates_.end() ? fd : duplicate->second);
  return found == streams_.end() ? nullptr : &found->second;
}

void MemoryStreams::arrive(int fd, std::string_view bytes) {
  Stream& stream = streams_[fd];
  stream.waiting += bytes;
  if (stream.watched && !bytes.empty()) ready_.push_back(*stream.watched);
}

bool MemoryStreams::read(int fd, size_t bytes) {
  Stream* stream = find(fd);
  if (!stream || bytes > stream->waiting.size()) return false;
  stream->waiting.erase(0, bytes);
  stream->read += static_cast<uint32_t>(bytes);
  return true;
}

void MemoryStreams::end(int fd) { streams_.erase(fd); }

std::optional<uint32_t> MemoryStreams::take_ready() {
  if (ready_.empty()) return {};
  const uint32_t number = ready_.front();
  ready_.pop_front();
  return number;
}

int MemoryStreams::duplicate(int fd) {
  if (!streams_.contains(fd)) return -1;
  duplicates_[next_duplicate_] = fd;
  return next_duplicate_++;
}

void MemoryStreams::close(int fd) { duplicates_.erase(fd); }

bool MemoryStreams::watch(int, int fd, uint32_t number) {
  Stream* stream = find(fd);
  if (!stream) return false;
  stream->watched = number;
  if (!stream->waiting.empty()) ready_.push_back(number);
  return true;
}

void MemoryStreams::unwatch(int, int fd) {
  if (Stream* stream = find(fd)) stream->watched.reset();
}

ssize_t MemoryStreams::peek(int fd, void* into, size_t length) {
  const Stream* stream = find(fd);
  if (!stream) return -1;
  const size_t bytes = std::min(length, stream->waiting.size());
  std::memcpy(into, stream->waiting.data(), bytes);
  return static_cast<ssize_t>(bytes);
}

bool MemoryStreams::count_read(int fd, uint32_t& bytes) {
  const Stream* stream = find(fd);
  if (stream) bytes = stream->read;
  return stream != nullptr;
}

ssize_t MemoryStreams::write(int fd, const void* bytes, size_t length) {
  const auto duplicate = duplicates_.find(fd);
  if (duplicate == duplicates_.end() || !find(fd)) return -1;
  written_.push_back({duplicate->second, {static_cast<const char*>(bytes), length}});
  return static_cast<ssize_t>(length);
}

void MemoryStreams::shut_down(int fd) {
  const auto duplicate = duplicates_.find(fd);
  if (duplicate != duplicates_.end()) end(duplicate->second);
}

}  // namespace shredway
