#include "system/privileges.h"

#include <dirent.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace shredway {
namespace {

constexpr int kNetworkCapabilities[] = {CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN, CAP_PERFMON,
                                        CAP_BPF};

// The C library has no wrappers for these calls, and a row of zeros does not need libcap.
__user_cap_header_struct this_thread() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

}  // namespace

void drop_privileges_of_this_thread() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  // Dropping is always permitted; in a sandbox that forbids the call, the thread stays unchanged.
  (void)syscall(SYS_capset, &header, none);
}

void drop_network_privileges_of_this_thread() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return;
  for (const int capability : kNetworkCapabilities) {
    __user_cap_data_struct& set = sets[CAP_TO_INDEX(capability)];
    const uint32_t others = ~CAP_TO_MASK(static_cast<uint32_t>(capability));
    set.effective &= others;
    set.permitted &= others;
    set.inheritable &= others;
  }
  (void)syscall(SYS_capset, &header, sets);
}

namespace {

// Signal of the C library (SIGSETXID of glibc), which uses it for the same purpose: setuid() of all
// threads. No thread can block it through the C library.
constexpr int kSignal = 33;
constexpr size_t kSignalSetBytes = 8;

// struct sigaction of the kernel, on x86-64 and arm64.
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  uint64_t mask;
};

void on_signal(int) {
  const int error_number = errno;
  drop_network_privileges_of_this_thread();
  errno = error_number;
}

long set_action(int signal, const KernelAction* action, KernelAction* old) {
  return syscall(SYS_rt_sigaction, signal, action, old, kSignalSetBytes);
}

// The C library refuses kSignal, so it installs the handler for another signal, and the kernel's
// form of it is copied.
bool make_action(KernelAction& action) {
  struct sigaction wanted {
  }, old{};
  wanted.sa_handler = on_signal;
  wanted.sa_flags = SA_RESTART;
  if (sigaction(SIGRTMAX, &wanted, &old) != 0) return false;
  const bool copied = set_action(SIGRTMAX, nullptr, &action) == 0;
  return sigaction(SIGRTMAX, &old, nullptr) == 0 && copied;
}

bool holds_network_privileges(pid_t thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("CapPrm:")) continue;
    const uint64_t permitted = std::strtoull(line.c_str() + sizeof "CapPrm:", nullptr, 16);
    for (const int capability : kNetworkCapabilities)
      if (permitted >> capability & 1) return true;
  }
  return false;
}

std::vector<pid_t> privileged_threads() {
  std::vector<pid_t> threads;
  DIR* folder = opendir("/proc/self/task");
  if (!folder) return threads;
  while (const dirent* entry = readdir(folder)) {
    const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (thread > 0 && holds_network_privileges(thread)) threads.push_back(thread);
  }
  closedir(folder);
  return threads;
}

}  // namespace

size_t drop_network_privileges_of_all_threads() {
  constexpr int kTriesMax = 100;
  constexpr timespec kPause = {0, 10'000'000};
  drop_network_privileges_of_this_thread();
  std::vector<pid_t> left = privileged_threads();
  if (left.empty()) return 0;
  KernelAction action{}, old{};
  if (!make_action(action) || set_action(kSignal, &action, &old) != 0) return left.size();
  for (int tries = 0; tries < kTriesMax && !left.empty(); tries++) {
    for (const pid_t thread : left) (void)syscall(SYS_tgkill, getpid(), thread, kSignal);
    nanosleep(&kPause, nullptr);
    left = privileged_threads();
  }
  // A signal that is still pending must find this handler.
  if (left.empty()) (void)set_action(kSignal, &old, nullptr);
  return left.size();
}

bool thread_has_privileges() {
  __user_cap_header_struct header = this_thread();
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return false;
  for (const __user_cap_data_struct& set : sets)
    if (set.effective || set.permitted) return true;
  return false;
}

}  // namespace shredway
