// Clocks, threads and CPUs for measuring: processor time of any thread or process, and pinning.
//
// Costs are processor time, not wall time: on a shared machine only that is comparable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace shredway::bench {

uint64_t monotonic_ns();
uint64_t realtime_ns();
// Processor time of the calling thread.
uint64_t own_cpu_ns();
// Processor time of a thread of this process, by its number (gettid).
uint64_t thread_cpu_ns(pid_t thread);
// Processor time of all threads of a process; 0 when it has ended.
uint64_t process_cpu_ns(pid_t process);

// Numbers of this process's threads.
std::vector<pid_t> threads();
pid_t own_thread();
// Of a thread of this process; empty when it has ended.
std::string thread_name(pid_t thread);
// Of all processes, the kernel's threads included; 0 when there is none with this name.
pid_t process_named(const std::string& name);
// Pins a thread; 0 is the calling one. A CPU that may not be used changes nothing.
void pin(pid_t thread, int cpu);
void let_run_on(pid_t thread, const std::vector<int>& cpus);
// SCHED_BATCH: a thread that waking up does not let preempt others. A burst sent from the same CPU
// is then complete before the thread takes it up, so batch sizes are what the scenario says.
void let_batches_form(pid_t thread);
std::vector<int> allowed_cpus();

// Sleeps with microsecond precision (timer slack is set to 1 ns by precise_sleep_setup).
void precise_sleep_setup();
// For its life the calling thread has the system's usual timer slack again, and so have the threads
// that it starts, for good: what is measured must not sleep more precisely than in the product.
class UsualSleep {
 public:
  UsualSleep();
  ~UsualSleep();
  UsualSleep(const UsualSleep&) = delete;
  UsualSleep& operator=(const UsualSleep&) = delete;
};
void sleep_ns(uint64_t duration_ns);
void sleep_until_ns(uint64_t monotonic_time_ns);

}  // namespace shredway::bench
