// Waiter: sleeps until one of several sockets has something, or somebody calls.
//
// A worker's bed. One thread waits; any thread may wake it. No allocation after construction.
#pragma once

#include <poll.h>

#include <string>
#include <vector>

namespace shredway {

class Waiter {
 public:
  // `error` is filled when the wake-up descriptor cannot be had; the waiter is then unusable.
  Waiter(const std::vector<int>& fds, std::string& error);
  ~Waiter();
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // True when a socket has something or wake() was called, false after the time-out.
  bool wait(int timeout_ms);
  // Ends the present or the next wait, and every later one. Any thread.
  void wake();

 private:
  int wake_fd_;
  std::vector<pollfd> entries_;
};

}  // namespace shredway
