// Counters that one thread writes and others read.
#pragma once

#include <atomic>
#include <cstdint>

namespace shredway {

// Without a locked instruction. Only the one thread that writes the counter may call it.
inline void add_one(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace shredway
