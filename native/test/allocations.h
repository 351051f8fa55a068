// Counts what the worker threads allocate: the test program's operator new asks, while a count
// runs, whether the calling thread is a worker ("shredway-" and a digit).
#pragma once

#include <cstdint>

namespace shredway::test {

// One at a time.
class WorkerAllocations {
 public:
  WorkerAllocations();  // starts to count
  ~WorkerAllocations();
  WorkerAllocations(const WorkerAllocations&) = delete;
  WorkerAllocations& operator=(const WorkerAllocations&) = delete;
  uint64_t count() const;
};

}  // namespace shredway::test
