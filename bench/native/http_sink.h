// A partner that accepts every transaction: answers JSON-RPC calls, single or batched, on loopback.
//
// It runs on its own thread and costs as little as possible, so that the gateway is measured. It
// records when the first byte of the request with a given transaction arrived.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace shredway::bench {

// Number of characters of the transaction's base64 that identify it; its signature begins in them.
inline constexpr size_t kTransactionNameLength = 24;

class HttpSink {
 public:
  HttpSink();
  ~HttpSink();
  HttpSink(const HttpSink&) = delete;
  HttpSink& operator=(const HttpSink&) = delete;

  uint16_t port() const { return port_; }
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  // How many of these transactions have arrived since the last take_arrivals().
  size_t arrived_of(const std::unordered_set<std::string>& names) const;
  // Monotonic first-byte times by transaction name since the last call.
  std::unordered_map<std::string, uint64_t> take_arrivals();

 private:
  struct Connection {
    int socket = -1;
    std::string received;
    uint64_t first_byte_ns = 0;
  };
  void run();
  void accept_one();
  bool receive(Connection& connection);
  void answer(Connection& connection, std::string_view body);

  int listener_ = -1;
  int epoll_ = -1;
  int wake_ = -1;
  uint16_t port_ = 0;
  std::atomic<uint64_t> calls_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::string, uint64_t> arrivals_;  // guarded by mutex_
  std::vector<Connection> connections_;                 // by socket number
  std::thread thread_;
};

}  // namespace shredway::bench
