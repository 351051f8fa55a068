// Waiter: sleeps until one of several sockets is readable or another thread wakes it.
//
// One thread waits; any thread may wake it. No allocation after construction.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace shredway {

class Waiter {
 public:
  // Fills `error` if the wake-up descriptor is not available; the waiter is then unusable. A
  // socket of `removable` may fail for good, because its interface disappears. It is then left out.
  Waiter(const std::vector<int>& fds, const std::vector<int>& removable, std::string& error);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // True if a socket is readable or wake() was called, false after the time-out.
  bool wait(int timeout_ms);
  // Ends the current or next wait, and every later one. Any thread.
  void wake();

 private:
  int wake_fd_;
  std::vector<pollfd> entries_;
  size_t first_removable_ = 0;  // of the entries
};

}  // namespace shredway
