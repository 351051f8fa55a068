// Wake-up: notifies the control plane once when something waits, and again after it was drained.
#pragma once

#include <atomic>

namespace shredway {

// Notified on the thread that found something; not again before it is drained.
class WakeUpNotifier {
 public:
  virtual void notify() = 0;

 protected:
  ~WakeUpNotifier() = default;
};

class WakeUp {
 public:
  // Writing thread, after something was written for the reader.
  void notify() {
    // Also without a notifier: the exchange orders what was written before a set() that follows it,
    // and a set() that precedes it before the load.
    if (is_notified_.exchange(true, std::memory_order_acq_rel)) return;
    if (WakeUpNotifier* notifier = notifier_.load(std::memory_order_acquire)) notifier->notify();
  }
  // Reading thread. `notifier` must outlive the writing thread; nullptr removes it. It is notified
  // at once if has_waiting().
  template <typename HasWaiting>
  void set(WakeUpNotifier* notifier, HasWaiting has_waiting) {
    notifier_.store(notifier, std::memory_order_release);
    // With a plain store, notify() could miss the notifier while this call misses what was written
    // (store buffering, also on x86-64). Read-modify-writes of one object have one order.
    is_notified_.exchange(false, std::memory_order_acq_rel);
    if (!notifier || !has_waiting()) return;
    if (!is_notified_.exchange(true, std::memory_order_acq_rel)) notifier->notify();
  }
  // Reading thread, before it drains: the exchange orders the reads that follow after every
  // notification before it.
  void begin_drain() { is_notified_.exchange(false, std::memory_order_acq_rel); }

 private:
  std::atomic<WakeUpNotifier*> notifier_{nullptr};
  std::atomic<bool> is_notified_{false};
};

}  // namespace shredway
