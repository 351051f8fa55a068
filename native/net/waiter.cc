#include "net/waiter.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace shredway {

Waiter::Waiter(const std::vector<int>& fds, const std::vector<int>& removable, std::string& error)
    : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_fd_ < 0) error = std::string("eventfd: ") + std::strerror(errno);
  entries_.push_back({wake_fd_, POLLIN, 0});
  for (const int fd : fds) entries_.push_back({fd, POLLIN, 0});
  first_removable_ = entries_.size();
  for (const int fd : removable) entries_.push_back({fd, POLLIN, 0});
}

Waiter::~Waiter() {
  if (wake_fd_ >= 0) close(wake_fd_);
}

bool Waiter::wait(int timeout_ms) {
  const int ready = poll(entries_.data(), entries_.size(), timeout_ms);
  for (size_t i = first_removable_; ready > 0 && i < entries_.size(); i++)
    if (entries_[i].revents & (POLLERR | POLLHUP)) entries_[i].fd = -1;
  return ready != 0;
}

void Waiter::wake() {
  const uint64_t one = 1;
  (void)!write(wake_fd_, &one, sizeof one);
}

}  // namespace shredway
