// Ring between one thread that writes and one that reads: bounded, without locks or waiting.
//
// What finds it full is the writer's to count. Elements are written and read in place, so that
// packets are copied once; several become visible by one publish.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

namespace shredway {

template <typename Element, size_t kElements>
class SpscRing {
 public:
  static_assert((kElements & (kElements - 1)) == 0, "a power of two");

  // Writer. Place `ahead` elements behind the last published one; nullptr when the ring is full.
  Element* place(size_t ahead = 0) {
    const size_t at = head_.load(std::memory_order_relaxed) + ahead;
    if (at - known_tail_ >= kElements) known_tail_ = tail_.load(std::memory_order_acquire);
    return at - known_tail_ < kElements ? &elements_[at % kElements] : nullptr;
  }
  // Writer. Hands over the next `count` places, all of them written.
  void publish(size_t count = 1) {
    head_.store(head_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  // Writer. False when the ring is full.
  bool push(const Element& element) {
    Element* to = place();
    if (!to) return false;
    *to = element;
    publish();
    return true;
  }

  // Reader. How many elements wait.
  size_t waiting() const {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed);
  }
  // Reader. The oldest element but `behind`. Precondition: behind < waiting().
  const Element& front(size_t behind = 0) const {
    return elements_[(tail_.load(std::memory_order_relaxed) + behind) % kElements];
  }
  // Reader. Gives the oldest `count` elements back.
  void release(size_t count = 1) {
    tail_.store(tail_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  // Reader. False when the ring is empty.
  bool pop(Element& element) {
    if (waiting() == 0) return false;
    element = front();
    release();
    return true;
  }

 private:
  alignas(64) std::atomic<size_t> head_{0};
  size_t known_tail_ = 0;  // writer's own: saves looking at the reader's cache line
  alignas(64) std::atomic<size_t> tail_{0};
  alignas(64) std::unique_ptr<Element[]> elements_{new Element[kElements]};
};

}  // namespace shredway
