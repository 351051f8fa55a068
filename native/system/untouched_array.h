// UntouchedArray: an array in address space of its own, all zeros, whose pages the kernel provides
// when they are used.
//
// `new T[n]` costs as little, except under sanitizers, which read or write memory for all of it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

namespace shredway {

template <typename T>
class UntouchedArray {
  static_assert(std::is_trivially_default_constructible_v<T> &&
                std::is_trivially_destructible_v<T>);

 public:
  // `count` >= 1.
  explicit UntouchedArray(size_t count) : bytes_(count * sizeof(T)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    values_ = memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
  }
  ~UntouchedArray() {
    if (values_) munmap(values_, bytes_);
  }
  UntouchedArray(const UntouchedArray&) = delete;
  UntouchedArray& operator=(const UntouchedArray&) = delete;

  // nullptr if the address space was not available.
  T* data() const { return values_; }
  size_t bytes() const { return bytes_; }
  T& operator[](size_t index) const { return values_[index]; }

 private:
  const size_t bytes_;
  T* values_;
};

}  // namespace shredway
