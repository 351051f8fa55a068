#include "system/thread_cpus.h"

#include <dirent.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

namespace shredway {
namespace {

// A thread that has not been moved yet may start another one meanwhile, hence several rounds. The
// second one usually finds nothing new.
constexpr int kRoundsMax = 16;

std::set<pid_t> threads_of_this_process() {
  std::set<pid_t> threads;
  DIR* folder = opendir("/proc/self/task");
  if (!folder) return threads;
  while (const dirent* entry = readdir(folder))
    if (const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10)); thread > 0)
      threads.insert(thread);
  closedir(folder);
  return threads;
}

}  // namespace

std::string keep_threads_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE)
      return "expected a CPU number from 0 to " + std::to_string(CPU_SETSIZE - 1) + ", got " +
             std::to_string(cpu);
    CPU_SET(static_cast<size_t>(cpu), &set);
  }
  std::set<pid_t> moved;
  for (int round = 0; round < kRoundsMax; round++) {
    const size_t before = moved.size();
    for (const pid_t thread : threads_of_this_process()) {
      if (moved.contains(thread)) continue;
      // ESRCH: the thread has ended.
      if (sched_setaffinity(thread, sizeof set, &set) != 0 && errno != ESRCH)
        return "cannot move a thread: " + std::string(std::strerror(errno));
      moved.insert(thread);
    }
    if (moved.empty()) return "cannot read /proc/self/task";
    if (moved.size() == before) break;
  }
  return "";
}

}  // namespace shredway
