// UntouchedArray: an array without constructors, whose pages the kernel provides when they are
// used.
//
// `new T[n]` does the same for a large T, but sanitizers then read or write memory for all of it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <type_traits>

namespace shredway {

template <typename T>
class UntouchedArray {
  static_assert(std::is_trivially_default_constructible_v<T> &&
                std::is_trivially_destructible_v<T>);

 public:
  // `count` >= 1. Aborts if there is no address space, as `new` does.
  explicit UntouchedArray(size_t count) : bytes_(count * sizeof(T)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    values_ = static_cast<T*>(memory);
  }
  ~UntouchedArray() { munmap(values_, bytes_); }
  UntouchedArray(const UntouchedArray&) = delete;
  UntouchedArray& operator=(const UntouchedArray&) = delete;

  T& operator[](size_t index) const { return values_[index]; }

 private:
  size_t bytes_;
  T* values_;
};

}  // namespace shredway
