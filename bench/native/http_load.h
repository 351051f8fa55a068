// HTTP load generator: many keep-alive connections, as fast as responses arrive or at a rate.
//
// One thread, epoll. With a rate, a request's time begins when it was due, not when a connection
// was free for it, so that a stalling server cannot hide its delay. The time when it was written is
// kept as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shredway::bench {

struct LoadPlan {
  uint16_t port;
  uint32_t connections;
  double seconds;
  double rate_per_second;  // 0: as fast as responses arrive
};

struct LoadResult {
  uint64_t answered = 0;
  uint64_t accepted = 0;  // 200 with a result
  uint64_t limited = 0;   // 429
  uint64_t refused = 0;   // any other response
  uint64_t broken = 0;    // connections that were closed
  uint64_t elapsed_ns = 0;
  std::vector<uint64_t> latencies_ns;  // of every response
  std::vector<uint64_t> begun_ns;      // by request, monotonic; 0: never sent
  std::vector<uint64_t> written_ns;    // by request, just before its first byte is written
};

// Sends `requests` in order, each once; ends early if there are no more.
LoadResult run_load(const LoadPlan& plan, const std::vector<std::string>& requests);

}  // namespace shredway::bench
