// Flood filter: lets the kernel drop most first packets without a token while more arrive than are
// answered.
//
// A packet that the kernel drops is never copied or judged. The choice is random, so a
// client among forged packets has the same chance of an answer as without the filter. Packets with
// a token, and Handshake packets, always pass. The filter is attached only during a flood.
#pragma once

#include <cstdint>

namespace shredway {

// The share of unproven first packets that the kernel passes on, by how many were read. No I/O.
class FloodShare {
 public:
  static constexpr uint64_t kPeriod_ns = 20'000'000;
  // Read in a period of a flood.
  static constexpr uint64_t kWanted = 110;

  // read: unproven first packets since the start. now_ns: CLOCK_MONOTONIC. Returns whether the
  // share has changed.
  bool adjust(uint64_t read, uint64_t now_ns);
  // In 2^32 parts; kAll: every packet.
  uint64_t parts() const { return parts_; }
  bool is_all() const { return parts_ == kAll; }

  static constexpr uint64_t kAll = uint64_t{1} << 32;

 private:
  uint64_t parts_ = kAll;
  uint64_t period_end_ns_ = 0;
  uint64_t read_before_ = 0;
};

// Replaces the filter of the UDP socket; detach_filter() removes it. parts: as in FloodShare.
// False: the kernel refuses, and the socket is as before.
bool attach_flood_filter(int fd, uint64_t parts);

}  // namespace shredway
