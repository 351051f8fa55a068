// The system calls of the fast path behind an interface, so that a simulation can replace its
// connections and its clock (memory_streams.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace shredway {

class FastPathSockets {
 public:
  virtual ~FastPathSockets() = default;

  // Another descriptor of the same connection. -1: the system refuses it.
  virtual int duplicate(int fd) = 0;
  virtual void close(int fd) = 0;
  // From now on, each arrival of bytes is an event with this number. False: the system refuses it.
  virtual bool watch(int epoll, int fd, uint32_t number) = 0;
  virtual void unwatch(int epoll, int fd) = 0;
  // Copies the bytes that have arrived and were not read; they stay. 0 or -1: nothing.
  virtual ssize_t peek(int fd, void* into, size_t length) = 0;
  // Bytes that have arrived and were read, modulo 2^32. If bytes arrive during the call, the result
  // may be too large, never too small. False: it is not known.
  virtual bool count_read(int fd, uint32_t& bytes) = 0;
  // Never waits. -1: the connection is broken.
  virtual ssize_t write(int fd, const void* bytes, size_t length) = 0;
  virtual void shut_down(int fd) = 0;
  // CLOCK_MONOTONIC.
  virtual uint64_t now_ns() = 0;
};

FastPathSockets& system_fast_path_sockets();

}  // namespace shredway
