// Sink: the times at which each shred reached its first and its last destination, by the kernel's
// clock.
//
// All destinations are loopback addresses that one socket receives. It polls every millisecond, so
// that no sender pays for waking it; the kernel's receive times do not depend on that. One stream
// of shreds at a time.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "traffic.h"

namespace shredway::bench {

struct SinkArrival {
  uint64_t first_ns = 0, last_ns = 0;
  uint32_t copies = 0;
};

class Sink {
 public:
  // `stream` must outlive it.
  Sink(const ShredStream& stream, int cpu);
  // Reads a socket with kernel receive times and closes it at the end.
  Sink(const ShredStream& stream, int fd, int cpu);
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  uint16_t port() const { return port_; }
  // From now on counts arrivals of the stream's shreds [begin, begin + count).
  void expect(uint64_t begin, size_t count);
  // Waits for all of them at `destinations`, at most 200 ms; returns the arrivals so far.
  std::vector<SinkArrival> wait_for_arrivals(uint32_t destinations);

 private:
  static constexpr size_t kAtOnce = 64, kHeadBytes = 128, kControlBytes = 64;

  void take_all();
  void note(size_t i);

  const ShredStream& stream_;
  int fd_;
  uint16_t port_;
  std::mutex mutex_;
  uint64_t begin_ = 0;
  std::vector<SinkArrival> arrivals_;
  std::array<std::array<uint8_t, kHeadBytes>, kAtOnce> heads_;
  std::array<std::array<uint8_t, kControlBytes>, kAtOnce> controls_;
  std::array<iovec, kAtOnce> parts_;
  std::array<mmsghdr, kAtOnce> messages_{};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace shredway::bench
