// Histogram of durations with about 6 % resolution, written by one thread and read by others.
//
// Log-linear: 16 buckets for each power of two, so one formula serves nanoseconds and seconds.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace shredway {

inline constexpr uint32_t kHistogramPrecisionBits = 4;
inline constexpr uint32_t kHistogramRangeBits = 34;  // longer durations count in the last bucket
inline constexpr size_t kHistogramBuckets = (kHistogramRangeBits - kHistogramPrecisionBits + 1)
                                            << kHistogramPrecisionBits;

// Bucket that counts `value`; the smallest value of bucket b is histogram_floor(b).
inline size_t histogram_bucket(uint64_t value) {
  constexpr uint64_t kLinear = uint64_t{1} << kHistogramPrecisionBits;
  if (value < kLinear) return value;
  const auto exponent = static_cast<uint32_t>(std::bit_width(value)) - 1;
  if (exponent >= kHistogramRangeBits) return kHistogramBuckets - 1;
  const uint32_t shift = exponent - kHistogramPrecisionBits;
  return ((shift + 1) << kHistogramPrecisionBits) + (value >> shift) - kLinear;
}
inline uint64_t histogram_floor(size_t bucket) {
  constexpr size_t kLinear = size_t{1} << kHistogramPrecisionBits;
  if (bucket < kLinear) return bucket;
  const size_t shift = (bucket >> kHistogramPrecisionBits) - 1;
  return (uint64_t{kLinear} + bucket % kLinear) << shift;
}

// A counter with one writer: plain loads and stores, no locked instruction.
class Counter {
 public:
  void add(uint64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct Histogram {
  Counter sum;
  Counter max;
  std::array<Counter, kHistogramBuckets> buckets;

  void record(uint64_t value) {
    buckets[histogram_bucket(value)].add(1);
    sum.add(value);
    if (value > max.get()) max.set(value);
  }
};

}  // namespace shredway
