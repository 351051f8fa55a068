// Confinement: what a confined process can no longer do, and what it still can.

#include "system/confinement.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>
#include <thread>

#include "test/check.h"

namespace shredway {
namespace {

constexpr uint64_t kMemoryBytes = 64u << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasOwnAllocator = true;
#elif defined(__has_feature)
constexpr bool kHasOwnAllocator =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kHasOwnAllocator = false;
#endif

// Runs `body` in a confined child; returns its wait status, or -1 if the confinement is incomplete.
template <typename Body>
int in_confined_child(Body body) {
  constexpr int kIncomplete = 99;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    const std::string refused = confine_process(parent, kMemoryBytes);
    if (!refused.empty()) _exit(kIncomplete);
    _exit(body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) && WEXITSTATUS(status) == kIncomplete ? -1 : status;
}

// 0 if the call failed with EPERM.
int refused(long result) { return result < 0 && errno == EPERM ? 0 : 1; }

#define REQUIRE_CONFINED(status) \
  if ((status) == -1) SKIP("this system refuses a step of the confinement")

TEST(confinement_refuses_files_programs_sockets_and_other_processes) {
  const pid_t parent = getpid();
  const int status = in_confined_child([&] {
    if (refused(open("/etc/hostname", O_RDONLY))) return 1;
    if (refused(socket(AF_INET, SOCK_STREAM, 0))) return 2;
    if (refused(kill(parent, 0))) return 3;
    if (refused(fork())) return 4;
    char* const none[] = {nullptr};
    if (refused(execve("/bin/true", none, none))) return 5;
    if (refused(unlink("/tmp/shredway-none"))) return 6;
    return 0;
  });
  REQUIRE_CONFINED(status);
  CHECK_EQ(status, 0);
}

TEST(confinement_keeps_open_descriptors_and_threads) {
  int ends[2];
  CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
  const int status = in_confined_child([&] {
    bool sent = false;
    std::thread([&] { sent = send(ends[0], "x", 1, 0) == 1; }).join();
    char byte = 0;
    return sent && recv(ends[1], &byte, 1, 0) == 1 && byte == 'x' ? 0 : 1;
  });
  close(ends[0]);
  close(ends[1]);
  REQUIRE_CONFINED(status);
  CHECK_EQ(status, 0);
}

TEST(confinement_limits_memory_and_lets_abort_end_the_process) {
  const int status = in_confined_child([] {
    // Reserved, not written: the limit applies to allocations.
    if (void* within = std::malloc(kMemoryBytes / 4)) std::free(within);
    else return 1;
    if (std::malloc(4 * kMemoryBytes)) return 2;
    std::abort();
    return 3;
  });
  REQUIRE_CONFINED(status);
  // A sanitizer's own allocator ends the process at the limit, with a report.
  if (kHasOwnAllocator) CHECK(status != 0);
  else CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(confinement_ends_the_process_with_its_parent) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t self = getpid();
    if (fork() == 0) {
      const bool complete = confine_process(self, kMemoryBytes).empty();
      (void)!write(ends[1], complete ? "y" : "n", 1);
      for (;;) pause();
    }
    for (;;) pause();
  }
  close(ends[1]);
  char complete = 0;
  CHECK_EQ(read(ends[0], &complete, 1), 1);
  kill(parent, SIGKILL);
  CHECK_EQ(waitpid(parent, nullptr, 0), parent);
  if (complete == 'y') {
    // The end of the last process that can write.
    CHECK_EQ(read(ends[0], &complete, 1), 0);
  }
  close(ends[0]);
  if (complete == 'n') SKIP("this system refuses a step of the confinement");
}

}  // namespace
}  // namespace shredway
