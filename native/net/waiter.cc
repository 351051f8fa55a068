#include "net/waiter.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace shredway {

Waiter::Waiter(const std::vector<int>& fds, std::string& error)
    : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_fd_ < 0) error = std::string("eventfd: ") + std::strerror(errno);
  entries_.push_back({wake_fd_, POLLIN, 0});
  for (const int fd : fds) entries_.push_back({fd, POLLIN, 0});
}

Waiter::~Waiter() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

bool Waiter::wait(int timeout_ms) {
  return poll(entries_.data(), entries_.size(), timeout_ms) != 0;
}

void Waiter::wake() {
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof one);
}

}  // namespace shredway
