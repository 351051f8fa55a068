// Clocks, threads and CPUs for measurements: processor time of any thread or process, and pinning.
//
// Costs are processor time, not wall time, because only processor time is comparable on a shared
// machine.
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
// Processor time of a thread of this process, by its id (gettid).
uint64_t thread_cpu_ns(pid_t thread);
// Processor time of all threads of a process; 0 if it has ended.
uint64_t process_cpu_ns(pid_t process);

// Ids of this process's threads.
std::vector<pid_t> threads();
pid_t own_thread();
// Name of a thread of this process; empty if it has ended.
std::string thread_name(pid_t thread);
// Process id by name, also for kernel threads; 0 if it does not exist.
pid_t process_named(const std::string& name);
// Pins a thread; 0 is the calling one. No effect if the CPU may not be used.
void pin(pid_t thread, int cpu);
void let_run_on(pid_t thread, const std::vector<int>& cpus);
// Sets SCHED_BATCH, so that the waking thread does not preempt others. A burst sent from the same
// CPU is then complete before the thread reads it, so that batch sizes match the scenario.
void let_batches_form(pid_t thread);
// Runs the calling thread before every other one of its CPU during its lifetime, if the system
// permits it. For generators: they sleep most of the time and must be on time.
class RealTimePriority {
 public:
  RealTimePriority();
  ~RealTimePriority();
  RealTimePriority(const RealTimePriority&) = delete;
  RealTimePriority& operator=(const RealTimePriority&) = delete;
};
std::vector<int> allowed_cpus();

// Sleeps with microsecond precision; precise_sleep_setup sets the timer slack to 1 ns.
void precise_sleep_setup();
// Restores the system's default timer slack for the calling thread during its lifetime, and
// permanently for threads started meanwhile. Measured threads must not sleep more precisely than in
// the product.
class DefaultTimerSlack {
 public:
  DefaultTimerSlack();
  ~DefaultTimerSlack();
  DefaultTimerSlack(const DefaultTimerSlack&) = delete;
  DefaultTimerSlack& operator=(const DefaultTimerSlack&) = delete;
};
void sleep_ns(uint64_t duration_ns);
void sleep_until_ns(uint64_t monotonic_time_ns);

}  // namespace shredway::bench
