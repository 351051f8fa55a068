#include "system/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "system/privileges.h"

namespace shredway {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif
// x86-64 accepts the calls of its 32-bit variant x32 from here on.
constexpr uint32_t kFirstX32Call = 0x40000000;

constexpr uint32_t kIoUringSetup = 425;
constexpr uint32_t kIoUringEnter = 426;

// Calls that are refused whatever their arguments are. Calls of newer kernels have numbers that
// these headers may not define.
constexpr uint32_t kRefused[] = {
#ifdef __NR_open  // architectures with the older calls
    __NR_open,
    __NR_creat,
    __NR_fork,
    __NR_vfork,
    __NR_unlink,
    __NR_rename,
    __NR_link,
    __NR_symlink,
    __NR_mkdir,
    __NR_rmdir,
    __NR_mknod,
    __NR_chmod,
    __NR_chown,
    __NR_lchown,
    __NR_utime,
    __NR_utimes,
    __NR_futimesat,
#endif
    // files
    __NR_openat,
    437 /* openat2 */,
    __NR_open_by_handle_at,
    __NR_name_to_handle_at,
    __NR_unlinkat,
#ifdef __NR_renameat
    __NR_renameat,
#endif
    __NR_renameat2,
    __NR_linkat,
    __NR_symlinkat,
    __NR_mkdirat,
    __NR_mknodat,
    __NR_fchmodat,
    452 /* fchmodat2 */,
    __NR_fchownat,
    __NR_truncate,
    __NR_utimensat,
    __NR_setxattr,
    __NR_lsetxattr,
    __NR_removexattr,
    __NR_lremovexattr,
    __NR_chroot,
    __NR_pivot_root,
    __NR_mount,
    __NR_umount2,
    428 /* open_tree */,
    429 /* move_mount */,
    430 /* fsopen */,
    433 /* fspick */,
    442 /* mount_setattr */,
    __NR_swapon,
    __NR_swapoff,
    __NR_quotactl,
    __NR_acct,
    // programs and other processes
    __NR_execve,
    __NR_execveat,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kill,
    __NR_tkill,
    __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo,
    424 /* pidfd_send_signal */,
    434 /* pidfd_open */,
    438 /* pidfd_getfd */,
    440 /* process_madvise */,
    448 /* process_mrelease */,
    __NR_kcmp,
    __NR_move_pages,
    __NR_migrate_pages,
    __NR_setpriority,
    __NR_ioprio_set,
    __NR_unshare,
    __NR_setns,
    __NR_personality,
    // sockets and other ways to communicate
    __NR_socket,
    __NR_socketpair,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_connect,
    __NR_shmget,
    __NR_shmat,
    __NR_msgget,
    __NR_semget,
    __NR_mq_open,
    __NR_mq_unlink,
    // the kernel: programs in it, its keys, and rings that bypass this filter
    kIoUringSetup,
    427 /* io_uring_register */,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_add_key,
    __NR_request_key,
    __NR_keyctl,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_syslog,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
    __NR_clock_adjtime,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_fanotify_init,
};
constexpr uint32_t kClone3 = 435;

constexpr uint32_t field(size_t offset) { return static_cast<uint32_t>(offset); }

// The lower half of an argument on little-endian machines, which all supported ones are.
constexpr uint32_t argument(size_t index) {
  return field(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
}

class Filter {
 public:
  void load(uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void refuse(uint32_t error) { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)); }
  void allow() { add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)); }
  // Skips the next `count` instructions if the loaded value equals `value`.
  void if_equal(uint32_t value, uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, count, 0));
  }
  // Skips the next `count` instructions unless the loaded value equals `value`.
  void unless_equal(uint32_t value, uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count));
  }
  void unless_any_bit(uint32_t bits, uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, count));
  }
  void unless_at_least(uint32_t value, uint8_t count) {
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, count));
  }
  void refuse_call(uint32_t call, uint32_t error) {
    unless_equal(call, 1);
    refuse(error);
  }
  // Refuses the call unless its argument equals `value`.
  void refuse_unless(uint32_t call, size_t index, uint32_t value) {
    unless_equal(call, 4);
    load(argument(index));
    unless_equal(value, 1);
    allow();
    refuse(EPERM);
  }
  sock_fprog program() {
    return {static_cast<unsigned short>(instructions_.size()), instructions_.data()};
  }

 private:
  void add(sock_filter instruction) { instructions_.push_back(instruction); }

  std::vector<sock_filter> instructions_;
};

// Refuses calls of other architectures and loads the number of the call.
Filter filter_of_numbers() {
  Filter filter;
  filter.load(field(offsetof(seccomp_data, arch)));
  filter.if_equal(kArchitecture, 1);
  filter.refuse(EPERM);
  filter.load(field(offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
  filter.unless_at_least(kFirstX32Call, 1);
  filter.refuse(EPERM);
#endif
  return filter;
}

Filter filter_of_calls(bool has_ring) {
  Filter filter = filter_of_numbers();
  for (const uint32_t call : kRefused) filter.refuse_call(call, EPERM);
  if (!has_ring) filter.refuse_call(kIoUringEnter, EPERM);
  // The C library then uses clone, whose flags a filter can read: threads, but no processes.
  filter.refuse_call(kClone3, ENOSYS);
  filter.unless_equal(__NR_clone, 4);
  filter.load(argument(0));
  filter.unless_any_bit(CLONE_THREAD, 1);
  filter.allow();
  filter.refuse(EPERM);
  // abort() signals the process itself.
  filter.refuse_unless(__NR_tgkill, 0, static_cast<uint32_t>(getpid()));
  filter.refuse_unless(__NR_prlimit64, 0, 0);
  filter.allow();
  return filter;
}

// Refuses the calls in all threads.
int install(Filter filter) {
  if (kArchitecture == 0) return ENOSYS;
  sock_fprog program = filter.program();
  const long result =
      syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  if (result < 0) return errno;
  return result == 0 ? 0 : ESRCH;  // a thread that could not take the filter
}

int limit(int resource, uint64_t value) {
  rlimit current = {};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &current) != 0) return errno;
  if (current.rlim_max < value) value = current.rlim_max;
  const rlimit wanted = {value, value};
  return setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted) == 0 ? 0 : errno;
}

bool has_ring() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    if (std::filesystem::read_symlink(entry.path(), error) == "anon_inode:[io_uring]") return true;
  }
  return false;
}

// The arguments of this process.
std::vector<std::string> arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// Memory that RLIMIT_DATA counts; 0: not known.
uint64_t data_bytes() {
  FILE* file = std::fopen("/proc/self/statm", "re");
  if (!file) return 0;
  unsigned long pages = 0;
  const int read = std::fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages);
  std::fclose(file);
  return read == 1 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))
                   : 0;
}

}  // namespace

std::string confine_process(pid_t parent, uint64_t memory_bytes) {
  std::string refused;
  const auto note = [&](const char* step, int error_number) {
    if (error_number == 0) return;
    if (!refused.empty()) refused += "; ";
    refused += std::string(step) + ": " + std::strerror(error_number);
  };
  const auto of_call = [](int result) { return result == 0 ? 0 : errno; };
  note("end with the parent", of_call(prctl(PR_SET_PDEATHSIG, SIGKILL)));
  // The parent may have ended before the call above.
  if (getppid() != parent) note("end with the parent", ESRCH);
  const uint64_t now = data_bytes();
  note("memory limit", now == 0 ? ENOENT : limit(RLIMIT_DATA, now + memory_bytes));
  note("no core dump", limit(RLIMIT_CORE, 0));
  drop_privileges_of_this_thread();
  note("no new privileges", of_call(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)));
  const bool ring = has_ring();
  if (ring) note("no ring of io_uring", EBUSY);
  note("system calls", install(filter_of_calls(ring)));
  return refused;
}

std::string restart_without_rings(int descriptors) {
  if (!has_ring()) return "";
  const auto failure = [](const char* step) {
    return std::string(step) + ": " + std::strerror(errno);
  };
  std::vector<std::string> words = arguments();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failure("no new privileges");
  Filter filter = filter_of_numbers();
  filter.refuse_call(kIoUringSetup, ENOSYS);
  filter.allow();
  errno = install(std::move(filter));
  if (errno != 0) return failure("system calls");
  // Node.js marks everything that it inherits.
  for (int descriptor = 0; descriptor < descriptors; descriptor++) {
    if (fcntl(descriptor, F_SETFD, 0) != 0) return failure("descriptors");
  }
  execv("/proc/self/exe", pointers.data());
  return failure("execve");
}

}  // namespace shredway
