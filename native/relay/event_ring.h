// Event ring: rare things that the control plane wants to hear of, one by one.
//
// One per worker: the worker pushes, the control plane's thread drains. Bounded; what finds it full
// is lost and counted by the worker. Never a packet path: at most one event for a shred.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace shredway {

// X(name): subject, slot, FEC set index and detail are used as said.
#define SHREDWAY_EVENTS(X)                                                        \
  X(equivocation)    /* subject: source id; slot, FEC set index; detail: index */ \
  X(icmp_error)      /* subject: destination id; detail: errno */                 \
  X(window_anchored) /* subject: worker; slot: the highest known now */

enum class EventKind : uint32_t {
#define X(name) name,
  SHREDWAY_EVENTS(X)
#undef X
};
#define X(name) +1
inline constexpr size_t kEventKindCount = 0 SHREDWAY_EVENTS(X);
#undef X
inline const char* event_name(EventKind kind) {
  constexpr const char* names[kEventKindCount] = {
#define X(name) #name,
      SHREDWAY_EVENTS(X)
#undef X
  };
  return names[static_cast<size_t>(kind)];
}

struct Event {
  uint64_t time_ns;  // CLOCK_REALTIME of the packet or of the discovery
  uint64_t slot;
  EventKind kind;
  uint32_t subject;
  uint32_t fec_set_index;
  uint32_t detail;
};
static_assert(sizeof(Event) == 32);

class EventRing {
 public:
  static constexpr size_t kEvents = 1024;

  // Worker's thread. False when the ring is full.
  bool push(const Event& event) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) == kEvents) return false;
    events_[head % kEvents] = event;
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  // Control plane's thread. False when the ring is empty.
  bool pop(Event& event) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == head_.load(std::memory_order_acquire)) return false;
    event = events_[tail % kEvents];
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

 private:
  alignas(64) std::atomic<size_t> head_{0};
  alignas(64) std::atomic<size_t> tail_{0};
  std::array<Event, kEvents> events_;
};

}  // namespace shredway
