// Memory lock: keeps ranges of memory in RAM, so that no page fault reads them from a disk.
//
// The relay locks the memory of its packet path with it. mlockall(2) is impossible in a process of
// Node.js: the JavaScript engine returns pages with MADV_DONTNEED, the kernel refuses that in
// locked memory, and the engine then ends the process. Rules: mlock(2).
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shredway {

class MemoryLock {
 public:
  MemoryLock() = default;
  ~MemoryLock();  // unlocks
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;

  // Both add a range, which must outlive the lock.
  void add(const void* start, size_t bytes);  // all pages are in memory after lock()
  // Pages that are in memory at lock(), and all others once they are touched.
  void add_on_touch(const void* start, size_t bytes);
  // The stack of this thread, which must run until the lock ends.
  void add_stack(pthread_t thread);
  // Code and data of the shared libraries, as far as they are used. The program itself is left out.
  void add_libraries();

  // Locks all ranges, or none. Returns an error text, empty on success.
  std::string lock();
  size_t locked_bytes() const { return locked_ ? added_bytes() : 0; }

 private:
  struct Range {
    uintptr_t start;  // the loader reports addresses as numbers
    size_t bytes;
    unsigned flags;  // of mlock2(2)
  };
  void add(uintptr_t start, size_t bytes, unsigned flags);
  size_t added_bytes() const;
  void unlock();

  std::vector<Range> ranges_;
  bool locked_ = false;
};

}  // namespace shredway
