// Counts the allocations of worker threads. During a count, the test program's operator new checks
// whether the calling thread is a worker (name "shredway-" and a digit).
#pragma once

#include <cstdint>

namespace shredway::test {

// Only one instance at a time.
class WorkerAllocations {
 public:
  WorkerAllocations();  // starts counting
  ~WorkerAllocations();
  WorkerAllocations(const WorkerAllocations&) = delete;
  WorkerAllocations& operator=(const WorkerAllocations&) = delete;
  uint64_t count() const;
};

}  // namespace shredway::test
