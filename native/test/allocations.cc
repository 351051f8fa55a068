#include "allocations.h"

#include <sys/prctl.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<bool> counting{false};
std::atomic<uint64_t> worker_allocations{0};

bool is_worker() {
  char name[16] = {};
  prctl(PR_GET_NAME, name);
  constexpr char kPrefix[] = "shredway-";
  const char digit = name[sizeof kPrefix - 1];
  return std::strncmp(name, kPrefix, sizeof kPrefix - 1) == 0 && digit >= '0' && digit <= '9';
}

void* allocate(size_t bytes, size_t alignment) {
  if (counting.load(std::memory_order_relaxed) && is_worker()) worker_allocations++;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes ? bytes : 1) != 0) std::abort();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<size_t>(alignment));
}
// All forms are replaced, because a sanitizer provides the missing ones and refuses to mix them.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return operator new(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return operator new(bytes, alignment);
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return operator new(bytes, alignment);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace shredway::test {

WorkerAllocations::WorkerAllocations() {
  worker_allocations = 0;
  counting = true;
}
WorkerAllocations::~WorkerAllocations() { counting = false; }
uint64_t WorkerAllocations::count() const { return worker_allocations; }

}  // namespace shredway::test
