// A link between two network namespaces with a fixed delay in each direction.
//
//   delay-link NAMESPACE ADDRESS/BITS NAMESPACE ADDRESS/BITS MILLISECONDS
//
// For kernels without netem. A TUN interface "delayed0" in each namespace; both end with this
// program. Prints "ready" when the link is up, and ends when its standard input does.

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

constexpr size_t kPacketBytesMax = 65536;
constexpr size_t kWaitingMax = 65536;

struct Packet {
  uint64_t due_ns;
  std::vector<uint8_t> bytes;
};

[[noreturn]] void fail(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

// Enters the namespace. The caller returns by entering another one.
void enter(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail(path);
  close(fd);
}

int open_end(const char* name, const char* address) {
  enter(std::string("/run/netns/") + name);
  const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, "delayed0", IFNAMSIZ - 1);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &request) != 0) fail("/dev/net/tun");
  const std::string command =
      std::string("ip address add ") + address + " dev delayed0 && ip link set delayed0 up";
  if (std::system(command.c_str()) != 0) fail(command);
  return fd;
}

// False if no packet waits.
bool take(int from, uint64_t delay_ns, std::deque<Packet>& waiting) {
  static std::array<uint8_t, kPacketBytesMax> buffer;
  const ssize_t length = read(from, buffer.data(), buffer.size());
  if (length <= 0) return false;
  if (waiting.size() < kWaitingMax)
    waiting.push_back({now_ns() + delay_ns, {buffer.data(), buffer.data() + length}});
  return true;
}

void deliver(int to, std::deque<Packet>& waiting) {
  while (!waiting.empty() && waiting.front().due_ns <= now_ns()) {
    const Packet& packet = waiting.front();
    [[maybe_unused]] const ssize_t sent = write(to, packet.bytes.data(), packet.bytes.size());
    waiting.pop_front();
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 6) {
    std::fprintf(stderr, "expected 5 arguments, got %d\n", count - 1);
    return 2;
  }
  const uint64_t delay_ns = std::strtoull(words[5], nullptr, 10) * 1'000'000u;
  const std::array<int, 2> ends = {open_end(words[1], words[2]), open_end(words[3], words[4])};
  std::array<std::deque<Packet>, 2> waiting;  // for the other end
  std::puts("ready");
  std::fflush(stdout);
  for (;;) {
    uint64_t due_ns = now_ns() + 1'000'000'000u;
    for (const auto& queue : waiting)
      if (!queue.empty() && queue.front().due_ns < due_ns) due_ns = queue.front().due_ns;
    const uint64_t present_ns = now_ns();
    const uint64_t wait_ns = due_ns > present_ns ? due_ns - present_ns : 0;
    const timespec timeout = {static_cast<time_t>(wait_ns / 1'000'000'000u),
                              static_cast<long>(wait_ns % 1'000'000'000u)};
    std::array<pollfd, 3> entries = {
        {{ends[0], POLLIN, 0}, {ends[1], POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
    ppoll(entries.data(), entries.size(), &timeout, nullptr);
    if (entries[2].revents != 0) return 0;
    for (size_t i = 0; i < ends.size(); i++)
      while (take(ends[i], delay_ns, waiting[i])) {
      }
    for (size_t i = 0; i < ends.size(); i++) deliver(ends[1 - i], waiting[i]);
  }
}
