// Memory lock: keeps ranges of memory in RAM, so that no page fault reads them from a disk.
//
// The relay locks the memory of its packet path with it. mlockall(2) is impossible in a process of
// Node.js: the JavaScript engine returns pages with MADV_DONTNEED, the kernel refuses that in
// locked memory, and the engine then ends the process. Rules: mlock(2).
#pragma once

#include <pthread.h>

#include <cstddef>
#include <string>
#include <vector>

namespace shredway {

class MemoryLock {
 public:
  MemoryLock() = default;
  ~MemoryLock();  // unlocks
  MemoryLock(const MemoryLock&) = delete;
  MemoryLock& operator=(const MemoryLock&) = delete;

  // Both lock the pages of a range, which must outlive the lock. After the first refusal they do
  // nothing.
  void add(const void* start, size_t bytes);  // all pages are in memory afterwards
  // Pages that are in memory now, and all others once they are touched.
  void add_on_touch(const void* start, size_t bytes);
  // The stack of this thread, which runs until the lock ends.
  void add_stack(pthread_t thread);
  // Code and data of the shared libraries, as far as they are used. The program itself is left out.
  void add_libraries();

  size_t bytes() const { return bytes_; }
  // Why the system refused a range; empty: it did not. Then everything is unlocked.
  const std::string& refusal() const { return refusal_; }

 private:
  struct Range {
    const void* start;
    size_t bytes;
  };
  void lock(const void* start, size_t bytes, unsigned flags);
  void unlock();

  std::vector<Range> ranges_;
  size_t bytes_ = 0;
  std::string refusal_;
};

}  // namespace shredway
