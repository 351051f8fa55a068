#include "clocks.h"

#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace shredway::bench {
namespace {

uint64_t read_clock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// The kernel's encoding (include/linux/posix-timers_types.h): inverted id, bit 2 for one thread,
// clock 2 for the scheduler's count.
clockid_t cpu_clock(pid_t id, bool one_thread) {
  constexpr unsigned kScheduled = 2, kOneThread = 4;
  return static_cast<clockid_t>((~static_cast<unsigned>(id) << 3) | kScheduled |
                                (one_thread ? kOneThread : 0));
}

// Entries of the folder that are numbers.
std::vector<pid_t> numbers_in(const char* path) {
  std::vector<pid_t> found;
  DIR* folder = opendir(path);
  if (!folder) return found;
  while (const dirent* entry = readdir(folder))
    if (const pid_t number = std::atoi(entry->d_name)) found.push_back(number);
  closedir(folder);
  return found;
}

// The first line of a file; empty if it cannot be read.
std::string read_name(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return "";
  char name[32] = "";
  if (std::fgets(name, sizeof name, file) == nullptr) name[0] = 0;
  std::fclose(file);
  std::string text = name;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }
uint64_t realtime_ns() { return read_clock(CLOCK_REALTIME); }
uint64_t own_cpu_ns() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }
uint64_t thread_cpu_ns(pid_t thread) { return read_clock(cpu_clock(thread, true)); }
uint64_t process_cpu_ns(pid_t process) { return read_clock(cpu_clock(process, false)); }

std::vector<pid_t> threads() { return numbers_in("/proc/self/task"); }

pid_t own_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

std::string thread_name(pid_t thread) {
  return read_name("/proc/self/task/" + std::to_string(thread) + "/comm");
}

pid_t process_named(const std::string& name) {
  for (const pid_t process : numbers_in("/proc"))
    if (read_name("/proc/" + std::to_string(process) + "/comm") == name) return process;
  return 0;
}

void let_run_on(pid_t thread, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  (void)sched_setaffinity(thread, sizeof set, &set);
}

void pin(pid_t thread, int cpu) { let_run_on(thread, {cpu}); }

void let_batches_form(pid_t thread) {
  const sched_param none{};
  (void)sched_setscheduler(thread, SCHED_BATCH, &none);
}

RealTimePriority::RealTimePriority() {
  sched_param lowest{};
  lowest.sched_priority = sched_get_priority_min(SCHED_FIFO);
  (void)sched_setscheduler(0, SCHED_FIFO, &lowest);
}

RealTimePriority::~RealTimePriority() {
  const sched_param none{};
  (void)sched_setscheduler(0, SCHED_OTHER, &none);
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

void precise_sleep_setup() { (void)prctl(PR_SET_TIMERSLACK, 1); }

DefaultTimerSlack::DefaultTimerSlack() { (void)prctl(PR_SET_TIMERSLACK, 0); }
DefaultTimerSlack::~DefaultTimerSlack() { precise_sleep_setup(); }

void sleep_until_ns(uint64_t monotonic_time_ns) {
  const timespec time{static_cast<time_t>(monotonic_time_ns / 1'000'000'000u),
                      static_cast<long>(monotonic_time_ns % 1'000'000'000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

void sleep_ns(uint64_t duration_ns) { sleep_until_ns(monotonic_ns() + duration_ns); }

}  // namespace shredway::bench
