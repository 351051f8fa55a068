#include "system/memory_lock.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace shredway {
namespace {

std::string limit_text() {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "no limit" : std::to_string(limit.rlim_cur) + " bytes";
}

}  // namespace

MemoryLock::~MemoryLock() { unlock(); }

void MemoryLock::add(const void* start, size_t bytes) { lock(start, bytes, 0); }

void MemoryLock::add_on_touch(const void* start, size_t bytes) {
  lock(start, bytes, MLOCK_ONFAULT);
}

void MemoryLock::add_stack(pthread_t thread) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(thread, &attributes) != 0) return;
  void* start = nullptr;
  size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) add_on_touch(start, bytes);
  pthread_attr_destroy(&attributes);
}

void MemoryLock::add_libraries() {
  const auto add_segments = [](dl_phdr_info* object, size_t, void* lock) {
    // The program has no name. It is Node.js, and the packet path runs none of its code.
    if (!object->dlpi_name || !*object->dlpi_name) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
      const auto& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD) continue;
      const auto* start = reinterpret_cast<const void*>(object->dlpi_addr + segment.p_vaddr);
      static_cast<MemoryLock*>(lock)->add_on_touch(start, segment.p_memsz);
    }
    return 0;
  };
  dl_iterate_phdr(add_segments, this);
}

void MemoryLock::lock(const void* start, size_t bytes, unsigned flags) {
  if (!refusal_.empty() || bytes == 0) return;
  if (mlock2(start, bytes, flags) == 0) {
    ranges_.push_back({start, bytes});
    bytes_ += bytes;
    return;
  }
  refusal_ = std::string(std::strerror(errno)) + "; expected a limit of locked memory above " +
             std::to_string(bytes_ + bytes) + " bytes, got " + limit_text();
  unlock();
}

void MemoryLock::unlock() {
  for (const Range& range : ranges_) munlock(range.start, range.bytes);
  ranges_.clear();
  bytes_ = 0;
}

}  // namespace shredway
