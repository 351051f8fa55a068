// Pace: so many packets at once, and one more in each interval.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shredway {

inline constexpr uint64_t kSecond_ns = 1'000'000'000;

class Pace {
 public:
  // at_once: at least 1.
  constexpr Pace(uint64_t interval_ns, uint64_t at_once)
      : interval_ns_(interval_ns), ahead_max_ns_((at_once - 1) * interval_ns) {}

  // Takes one packet. False: it is too early for it. now_ns: CLOCK_MONOTONIC.
  bool take(uint64_t now_ns) {
    until_ns_ = std::max(until_ns_, now_ns);
    if (until_ns_ - now_ns > ahead_max_ns_) return false;
    until_ns_ += interval_ns_;
    return true;
  }

 private:
  uint64_t interval_ns_, ahead_max_ns_;
  uint64_t until_ns_ = 0;  // what was taken lasts until then
};

}  // namespace shredway
