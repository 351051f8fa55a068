#include "system/memory_lock.h"

#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

void MemoryLock::add(const void* start, size_t bytes) {
  add(reinterpret_cast<uintptr_t>(start), bytes, 0);
}

void MemoryLock::add_on_touch(const void* start, size_t bytes) {
  add(reinterpret_cast<uintptr_t>(start), bytes, MLOCK_ONFAULT);
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
      const uintptr_t start = object->dlpi_addr + segment.p_vaddr;
      static_cast<MemoryLock*>(lock)->add(start, segment.p_memsz, MLOCK_ONFAULT);
    }
    return 0;
  };
  dl_iterate_phdr(add_segments, this);
}

void MemoryLock::add(uintptr_t start, size_t bytes, unsigned flags) {
  ranges_.push_back({start, bytes, flags});
}

std::string MemoryLock::lock() {
  for (const Range& range : ranges_) {
    if (syscall(SYS_mlock2, range.start, range.bytes, range.flags) == 0) continue;
    const int error_number = errno;
    unlock();
    return std::string(std::strerror(error_number)) +
           "; expected a limit of locked memory of at least " + std::to_string(added_bytes()) +
           " bytes, got " + limit_text();
  }
  locked_ = true;
  return "";
}

size_t MemoryLock::added_bytes() const {
  size_t sum = 0;
  for (const Range& range : ranges_) sum += range.bytes;
  return sum;
}

// Without effect on ranges that are not locked.
void MemoryLock::unlock() {
  for (const Range& range : ranges_) syscall(SYS_munlock, range.start, range.bytes);
  locked_ = false;
}

}  // namespace shredway
