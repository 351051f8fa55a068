#include "rate_search.h"

#include <algorithm>

#include "clocks.h"

namespace shredway::bench {

void RateSearch::send_paced(const Case& which, double rate) {
  const double burst_ns = 1e9 * which.burst / rate;
  const uint64_t start_ns = monotonic_ns();
  for (size_t sent = 0; sent + which.burst <= packets_.size(); sent += which.burst) {
    const auto due_ns =
        start_ns + static_cast<uint64_t>(burst_ns * static_cast<double>(sent / which.burst));
    uint64_t now_ns = monotonic_ns();
    if (due_ns > now_ns + 200'000) sleep_until_ns(due_ns - 100'000);
    while (now_ns < due_ns) now_ns = monotonic_ns();
    (void)generator_.send_burst(packets_, sent, sent + which.burst);
  }
}

// Returns true if everything was forwarded in time at the requested rate.
bool RateSearch::trial(Driver& driver, const Case& which, double rate) {
  constexpr uint64_t kGrace_ns = 10'000'000;
  const size_t shreds = std::max<size_t>(
      static_cast<size_t>(rate * static_cast<double>(trial_ns_) / 1e9), 2 * which.burst);
  stream_.make(shreds, packets_);
  packets_.offsets.resize(shreds / which.burst * which.burst + 1);
  const uint64_t expected_bytes = uint64_t{packets_.offsets.back()} * which.destinations;
  generator_.connect_to(driver.port());
  const DeviceCounts before = counts_();
  const uint64_t start_ns = monotonic_ns();
  send_paced(which, rate);
  const double took_ns = static_cast<double>(monotonic_ns() - start_ns);
  if (took_ns > 1.1 * 1e9 * static_cast<double>(packets_.size()) / rate + 1e6) return false;

  const auto payload_bytes = [&] {
    const DeviceCounts now = counts_();
    return now.bytes - before.bytes - (now.packets - before.packets) * kFrameHeaderBytes;
  };
  sleep_ns(kGrace_ns);
  const bool in_time = payload_bytes() >= expected_bytes;
  uint64_t last = 0;
  // The next trial starts with empty buffers.
  for (int i = 0; i < 200 && payload_bytes() != last; i++) {
    last = payload_bytes();
    sleep_ns(kGrace_ns);
  }
  return in_time;
}

// Repeats a failed trial once, because another program may have had the CPU.
bool RateSearch::holds(Driver& driver, const Case& which, double rate) {
  return trial(driver, which, rate) || trial(driver, which, rate);
}

double RateSearch::run(Driver& driver, const Case& which) {
  stream_.make(512, packets_);  // warms up
  generator_.connect_to(driver.port());
  send_paced({which.destinations, 1}, 2000);
  double good = 0, bad = 400;
  while (bad < kRateMax && holds(driver, which, bad)) {
    good = bad;
    bad *= 2;
  }
  if (bad >= kRateMax) {
    if (holds(driver, which, kRateMax)) return kRateMax;
    bad = kRateMax;
  }
  for (int i = 0; i < steps_; i++) {
    const double middle = (good + bad) / 2;
    if (holds(driver, which, middle)) good = middle;
    else bad = middle;
  }
  return good;
}

}  // namespace shredway::bench
