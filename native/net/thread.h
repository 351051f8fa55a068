// Thread: returns an error text, instead of throwing, if the system refuses a thread.
//
// std::thread throws if no thread can be created, which would end the process.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "system/memory_lock.h"

namespace shredway {

class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { join(); }

  // Runs (object->*kBody)() on a new thread with this name (at most 15 characters). Returns an
  // error text, empty on success. `object` must outlive the thread. Call once.
  template <auto kBody, typename Object>
  std::string start(Object* object, const std::string& name) {
    const auto body = [](void* argument) -> void* {
      (static_cast<Object*>(argument)->*kBody)();
      return nullptr;
    };
    const int failure = pthread_create(&thread_, nullptr, body, object);
    if (failure) return "cannot start a thread: " + std::string(std::strerror(failure));
    running_ = true;
    pthread_setname_np(thread_, name.c_str());
    return "";
  }
  // Pins the thread to this CPU. Returns an error text, empty on success.
  std::string pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    const int failure = pthread_setaffinity_np(thread_, sizeof set, &set);
    if (!failure) return "";
    return "cannot pin a worker to CPU " + std::to_string(cpu) + ": " + std::strerror(failure);
  }
  // Processor time of the thread until now; 0 if none runs.
  uint64_t cpu_ns() const;
  // Adds the stack, if the thread runs.
  void lock_memory(MemoryLock& lock) const {
    if (running_) lock.add_stack(thread_);
  }
  // Waits until the thread has ended; returns at once if none runs.
  void join() {
    if (running_) pthread_join(thread_, nullptr);
    running_ = false;
  }

 private:
  pthread_t thread_{};
  bool running_ = false;
};

// Ends a thread that works at intervals.
class StopSignal {
 public:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
  }
  // Returns true at once after stop(), and false after this time.
  bool wait_for_us(uint32_t us) {
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, std::chrono::microseconds(us), [this] { return stopped_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
};

// ---- of the calling thread ----

inline void sleep_for_us(uint32_t us) {
  const timespec time = {us / 1'000'000, static_cast<long>(us % 1'000'000) * 1000};
  nanosleep(&time, nullptr);
}
// Without it, the kernel may wake the thread 50 us late, to combine timers.
inline void sleep_precisely() { prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); }
// Lowers the thread's priority below the process's other threads. No effect if the system refuses.
inline void yield_to_others() { setpriority(PRIO_PROCESS, 0, 5); }

// Threads that the calling thread starts meanwhile precede the process's other threads: a new
// thread inherits the nice value. It needs CAP_SYS_NICE or RLIMIT_NICE (setpriority(2)); lowering
// the priority of the calling thread again needs nothing.
class RaisedPriority {
 public:
  static constexpr int kNice = -15;

  RaisedPriority() : before_(getpriority(PRIO_PROCESS, 0)) {
    if (setpriority(PRIO_PROCESS, 0, kNice)) refusal_ = std::strerror(errno);
  }
  ~RaisedPriority() {
    if (refusal_.empty()) setpriority(PRIO_PROCESS, 0, before_);
  }
  RaisedPriority(const RaisedPriority&) = delete;
  RaisedPriority& operator=(const RaisedPriority&) = delete;

  // Why the system refused it; empty: it did not.
  const std::string& refusal() const { return refusal_; }

 private:
  int before_;
  std::string refusal_;
};

// For a loop that waits for another thread without a system call.
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

inline uint64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

inline uint64_t Thread::cpu_ns() const {
  clockid_t clock;
  return running_ && pthread_getcpuclockid(thread_, &clock) == 0 ? clock_ns(clock) : 0;
}

}  // namespace shredway
