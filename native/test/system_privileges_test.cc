// Dropping capabilities: all threads of a process, whatever they do and whatever signals they
// block.
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "check.h"
#include "system/privileges.h"

namespace shredway::test {
namespace {

bool permits(int capability) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  return syscall(SYS_capget, &header, sets) == 0 &&
         sets[CAP_TO_INDEX(capability)].permitted & CAP_TO_MASK(capability);
}

// The body of a child process: 0, or the line that failed.
int drop_in_all_threads() {
  std::atomic<bool> done{false};
  std::atomic<int> ready{0}, privileged{0}, kept{0};
  const auto body = [&](bool blocks_signals) {
    if (blocks_signals) {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
    }
    ready++;
    while (!done) usleep(1000);  // a system call that the signal interrupts
    privileged += permits(CAP_NET_ADMIN);
    kept += permits(CAP_SETPCAP);
  };
  std::thread open(body, false), blocking(body, true);
  while (ready < 2) usleep(1000);
  if (drop_network_privileges_of_all_threads() != 0) return __LINE__;
  if (permits(CAP_NET_ADMIN)) return __LINE__;
  if (drop_network_privileges_of_all_threads() != 0) return __LINE__;
  done = true;
  open.join();
  blocking.join();
  if (privileged != 0) return __LINE__;
  if (kept != 2 && permits(CAP_SETPCAP)) return __LINE__;
  // Threads that start later get no more.
  std::thread later([&] { privileged += permits(CAP_NET_ADMIN); });
  later.join();
  return privileged == 0 ? 0 : __LINE__;
}

}  // namespace

TEST(privileges_of_all_threads_are_dropped_without_their_help) {
  if (!permits(CAP_NET_ADMIN)) SKIP("CAP_NET_ADMIN is needed");
#ifdef __SANITIZE_THREAD__
  SKIP("ThreadSanitizer runs threads that no signal reaches");
#endif
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(drop_in_all_threads());
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
}

}  // namespace shredway::test
