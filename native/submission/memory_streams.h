// Memory streams: connections in memory for a fast path in a simulation.
//
// The simulation says which bytes have arrived at a descriptor and how many of them JavaScript has
// read, and takes what the fast path wrote. Descriptors are numbers below kFirstDuplicate that the
// simulation chooses. The clock is the simulation's, too. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "submission/fast_path_sockets.h"

namespace shredway {

class MemoryStreams final : public FastPathSockets {
 public:
  static constexpr int kFirstDuplicate = 1 << 30;

  struct Written {
    int fd;
    std::string bytes;
  };

  void set_time(uint64_t now_ns) { now_ns_ = now_ns; }
  // The first call opens the connection; `bytes` may be empty.
  void arrive(int fd, std::string_view bytes);
  // JavaScript has read so many bytes. False: fewer have arrived.
  bool read(int fd, size_t bytes);
  // JavaScript has closed the connection, or its peer has.
  void end(int fd);
  // The number of a watched connection at which bytes have arrived; nothing: none is left.
  std::optional<uint32_t> take_ready();
  // Everything that was written, oldest first. The caller removes it.
  std::deque<Written>& written() { return written_; }

  int duplicate(int fd) override;
  void close(int fd) override;
  bool watch(int epoll, int fd, uint32_t number) override;
  void unwatch(int epoll, int fd) override;
  ssize_t peek(int fd, void* into, size_t length) override;
  bool count_read(int fd, uint32_t& bytes) override;
  ssize_t write(int fd, const void* bytes, size_t length) override;
  void shut_down(int fd) override;
  uint64_t now_ns() override { return now_ns_; }

 private:
  struct Stream {
    std::string waiting;
    uint32_t read = 0;  // modulo 2^32
    std::optional<uint32_t> watched;
  };
  Stream* find(int fd);

  std::map<int, Stream> streams_;
  std::map<int, int> duplicates_;  // descriptors of JavaScript by those of the fast path
  int next_duplicate_ = kFirstDuplicate;
  std::deque<uint32_t> ready_;
  std::deque<Written> written_;
  uint64_t now_ns_ = 0;
};

}  // namespace shredway
