// The CPUs of all threads of this process.
#include "system/thread_cpus.h"

#include <sched.h>

#include <latch>
#include <thread>

#include "check.h"

using namespace shredway;
using namespace shredway::test;

namespace {

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

TEST(thread_cpus_apply_to_running_threads_and_to_those_that_they_start) {
  const std::vector<int> before = cpus_of_this_thread();
  const std::vector<int> last = {before.back()};
  std::latch moved(1);
  std::vector<int> of_running;
  std::vector<int> of_started_later;
  std::thread running([&] {
    moved.wait();
    of_running = cpus_of_this_thread();
    std::thread([&] { of_started_later = cpus_of_this_thread(); }).join();
  });
  const std::string error = keep_threads_on(last);
  moved.count_down();
  running.join();
  const std::vector<int> of_caller = cpus_of_this_thread();
  CHECK_EQ(keep_threads_on(before), "");
  CHECK_EQ(error, "");
  CHECK(of_caller == last);
  CHECK(of_running == last);
  CHECK(of_started_later == last);
  CHECK(cpus_of_this_thread() == before);
}

TEST(thread_cpus_that_do_not_exist_are_refused_and_nothing_changes) {
  const std::vector<int> before = cpus_of_this_thread();
  CHECK(keep_threads_on({}).find("cannot move a thread: Invalid argument") == 0);
  CHECK_EQ(keep_threads_on({CPU_SETSIZE}), "expected a CPU number from 0 to 1023, got 1024");
  CHECK(cpus_of_this_thread() == before);
}
