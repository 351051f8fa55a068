// Timing: processor time of repeated work, and a guard against the compiler removing it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "clocks.h"

namespace shredway::bench {

// Values passed to it cannot be optimised away.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// Calls work(i) for each operation i and returns the mean time.
template <typename Work>
double per_operation_ns(size_t operations, Work work) {
  const uint64_t before_ns = own_cpu_ns();
  for (size_t i = 0; i < operations; i++) work(i);
  return static_cast<double>(own_cpu_ns() - before_ns) / static_cast<double>(operations);
}

// 0 if there are no values. `part`: 0.5 is the median.
inline uint64_t percentile(const std::vector<uint64_t>& sorted, double part) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(part * static_cast<double>(sorted.size()));
  return sorted[std::min(rank, sorted.size() - 1)];
}

}  // namespace shredway::bench
