// Thread: one that the system may refuse, with a text instead of an exception.
//
// std::thread throws when the machine has no room for another thread, which would end the process.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace shredway {

class Thread {
 public:
  Thread() = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  ~Thread() { join(); }

  // Runs (object->*kBody)() on a new thread, which gets this name (at most 15 characters). Returns
  // an error text, empty on success. `object` must outlive the thread. Once.
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
  // Lets the thread run on this CPU only. Returns an error text, empty on success.
  std::string pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(cpu), &set);
    const int failure = pthread_setaffinity_np(thread_, sizeof set, &set);
    if (!failure) return "";
    return "cannot pin a worker to CPU " + std::to_string(cpu) + ": " + std::strerror(failure);
  }
  // Returns when the thread has ended; at once when none runs.
  void join() {
    if (running_) pthread_join(thread_, nullptr);
    running_ = false;
  }

 private:
  pthread_t thread_{};
  bool running_ = false;
};

// ---- of the calling thread ----

inline void sleep_for_us(uint32_t us) {
  const timespec time = {us / 1'000'000, static_cast<long>(us % 1'000'000) * 1000};
  nanosleep(&time, nullptr);
}
// Makes it yield to the other threads of the process. Without effect where the system refuses.
inline void yield_to_others() { setpriority(PRIO_PROCESS, 0, 5); }

inline uint64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace shredway
