// Ring between one writing and one reading thread: bounded, without locks or waiting.
//
// The writer counts elements that find the ring full. Elements are written and read in place, so
// that packets are copied once. One publish makes several elements visible.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "system/memory_lock.h"

namespace shredway {

template <typename Element, size_t kElements>
class SpscRing {
 public:
  static_assert((kElements & (kElements - 1)) == 0, "a power of two");

  // Writer. The element `ahead` places after the last published one, or nullptr if the ring is
  // full.
  Element* place(size_t ahead = 0) {
    const size_t at = head_.load(std::memory_order_relaxed) + ahead;
    if (at - known_tail_ >= kElements) known_tail_ = tail_.load(std::memory_order_acquire);
    return at - known_tail_ < kElements ? &elements_[at % kElements] : nullptr;
  }
  // Writer. Publishes the next `count` elements, which must all be written.
  void publish(size_t count = 1) {
    head_.store(head_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  // Writer. Returns false if the ring is full.
  bool push(const Element& element) {
    Element* to = place();
    if (!to) return false;
    *to = element;
    publish();
    return true;
  }

  // Reader. Number of published elements that are not released.
  size_t waiting() const {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed);
  }
  // Reader. The element `behind` places after the oldest. Precondition: behind < waiting().
  const Element& front(size_t behind = 0) const {
    return elements_[(tail_.load(std::memory_order_relaxed) + behind) % kElements];
  }
  // Reader. Releases the oldest `count` elements.
  void release(size_t count = 1) {
    tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  // Reader. Returns false if the ring is empty.
  bool pop(Element& element) {
    if (waiting() == 0) return false;
    element = front();
    release();
    return true;
  }

  // The elements.
  void lock_memory(MemoryLock& lock) const {
    lock.add(elements_.get(), kElements * sizeof(Element));
  }

 private:
  alignas(64) std::atomic<size_t> head_{0};
  size_t known_tail_ = 0;  // writer's cached copy: avoids reads of the reader's cache line
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) std::unique_ptr<Element[]> elements_{new Element[kElements]};
};

}  // namespace shredway
