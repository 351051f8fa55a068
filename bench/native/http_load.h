// Callers of an HTTP server: many kept-alive connections, as fast as they are answered or at a
// rate.
//
// One thread, epoll. With a rate a request's time begins when it was due, not when a connection had
// time for it, so a server that stalls does not hide it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shredway::bench {

struct LoadPlan {
  uint16_t port;
  uint32_t connections;
  double seconds;
  double rate_per_second;  // 0: as fast as answers come
};

struct LoadResult {
  uint64_t answered = 0;
  uint64_t accepted = 0;  // 200 with a result
  uint64_t limited = 0;   // 429
  uint64_t refused = 0;   // any other answer
  uint64_t broken = 0;    // connections that ended
  uint64_t elapsed_ns = 0;
  std::vector<uint64_t> latencies_ns;  // of every answer
  std::vector<uint64_t> begun_ns;      // by request, monotonic; 0: never sent
};

// Sends `requests` in order, each once; ends early when they run out.
LoadResult run_load(const LoadPlan& plan, const std::vector<std::string>& requests);

}  // namespace shredway::bench
