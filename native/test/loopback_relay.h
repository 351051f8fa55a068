// A relay on loopback with two sources, an unknown sender and one destination per tier, for tests
// of the worker.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "relay/relay.h"
#include "support.h"

namespace shredway::test {

// A plain UDP socket on loopback.
class Peer {
 public:
  explicit Peer(const char* address = "127.0.0.1")
      : socket_(open_receive_socket({ipv4_endpoint(address, 0), 8u << 20, false}).socket) {
    CHECK(socket_.valid());
  }
  Endpoint endpoint() const { return local_endpoint(socket_.fd()); }
  void send(const Endpoint& to, const Bytes& packet) const {
    sockaddr_storage address{};
    const socklen_t length = to_sockaddr(to, address);
    while (sendto(socket_.fd(), packet.data(), packet.size(), 0,
                  reinterpret_cast<sockaddr*>(&address), length) < 0 &&
           errno == EAGAIN)
      std::this_thread::yield();
  }
  // Reads until `expected` datagrams arrive (at most 30 s), then a little longer to detect
  // unexpected ones.
  const std::vector<Bytes>& receive(size_t expected) {
    using namespace std::chrono;
    const auto until = steady_clock::now() + seconds(30);
    while (received_.size() < expected && steady_clock::now() < until) take(20);
    take(expected ? 5 : 50);
    return received_;
  }

  // Kernel receive times of the datagrams from receive().
  const std::vector<uint64_t>& times_ns() const { return times_ns_; }

 private:
  void take(int wait_ms) {
    pollfd entry{socket_.fd(), POLLIN, 0};
    if (poll(&entry, 1, wait_ms) <= 0) return;
    while (batch_.receive(socket_.fd())) {
      for (size_t i = 0; i < batch_.size(); i++) {
        const ReceivedPacket packet = batch_.packet(i);
        received_.emplace_back(packet.bytes, packet.bytes + packet.length);
        times_ns_.push_back(packet.received_ns);
      }
    }
  }
  UdpSocket socket_;
  ReceiveBatch batch_;
  std::vector<Bytes> received_;
  std::vector<uint64_t> times_ns_;
};

inline constexpr uint64_t kSlot = 5000;

// Waits until the condition holds, at most 30 s. It is evaluated until it holds once, so it may
// have effects.
inline bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition())
    if (std::chrono::steady_clock::now() > until) return false;
    else std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return true;
}

// Fails the test and returns nullptr if the relay cannot be opened.
inline std::unique_ptr<Relay> open_relay(const RelayOptions& options) {
  std::string error;
  auto relay = Relay::open(options, error);
  CHECK_EQ(error, std::string());
  return relay;
}

inline void publish_to(Relay& relay, std::string (Relay::*part)(const uint8_t*, size_t),
                       const Bytes& table) {
  CHECK_EQ((relay.*part)(table.data(), table.size()), std::string());
}

using VerdictCounts = std::map<std::pair<size_t, std::string>, uint64_t>;  // by source and verdict

// The packets of a snapshot of `sources` sources that have verdicts; the last row is of no source.
inline VerdictCounts verdict_counts(const SnapshotLayout& layout,
                                    const std::vector<uint64_t>& words, size_t sources) {
  VerdictCounts counts;
  for (size_t row = 0; row <= sources; row++)
    for (size_t v = 0; v < kVerdictCount; v++)
      if (const uint64_t n = words[layout.sources_begin + row * layout.kSourceWords + v])
        counts[{row, verdict_name(static_cast<Verdict>(v))}] = n;
  return counts;
}

// The same, by verdict.
inline std::map<std::string, uint64_t> verdict_sums(const SnapshotLayout& layout,
                                                    const std::vector<uint64_t>& words,
                                                    size_t sources) {
  std::map<std::string, uint64_t> sums;
  for (const auto& [key, count] : verdict_counts(layout, words, sources)) sums[key.second] += count;
  return sums;
}

template <typename Key>
uint64_t sum_of(const std::map<Key, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [key, count] : counts) sum += count;
  return sum;
}

struct LoopbackRelay {
  std::unique_ptr<Relay> relay;
  Peer tier1_source{"127.0.0.11"}, tier2_source{"127.0.0.12"}, stranger{"127.0.0.13"};
  Peer tier1, tier2;

  explicit LoopbackRelay(const WorkerOptions& worker = default_worker(),
                         bool receive_filter = true) {
    RelayOptions options;
    options.receive_filter = receive_filter;
    options.listen = {ipv4_endpoint("127.0.0.1", 0)};
    options.worker = worker;
    relay = open_relay(options);
    publish(&Relay::publish_sources,
            source_table({{"127.0.0.11", 32, 0, 0}, {"127.0.0.12", 32, 1, 1}}));
    publish(&Relay::publish_fanout,
            fanout_table({{tier1.endpoint(), 0, 0}, {tier2.endpoint(), 1, 1}}));
    publish(&Relay::publish_leaders, leader_table(leader_key(1), kSlot - 100, 10'000));
  }
  static WorkerOptions default_worker() {
    WorkerOptions options;
    options.tier_count = 2;
    options.shred_version = 1;
    options.prefault = false;
    return options;
  }
  void publish(std::string (Relay::*part)(const uint8_t*, size_t), const Bytes& bytes) const {
    publish_to(*relay, part, bytes);
  }
  Endpoint in() const { return relay->addresses()[0]; }

  struct Counts {
    std::map<std::string, uint64_t> verdicts;
    uint64_t received = 0, signature_checks = 0, signatures_replaced = 0;
    uint64_t decided = 0;  // packets with a verdict
    uint64_t verdict(const char* name) const {
      const auto found = verdicts.find(name);
      return found == verdicts.end() ? 0 : found->second;
    }
  };
  // Waits until `received` datagrams have arrived and have their verdicts, at most 30 s. Pending
  // shreds get theirs within 150 ms.
  Counts counts(uint64_t received) const {
    const SnapshotLayout layout = relay->layout(2, 2);
    std::vector<uint64_t> words(layout.words);
    Counts out;
    eventually([&] {
      relay->snapshot(layout, words.data());
      out.verdicts = verdict_sums(layout, words, 2);
      out.received = words[size_t(WorkerCounter::received)];
      out.signature_checks = words[size_t(WorkerCounter::signature_checks)];
      out.signatures_replaced = words[size_t(WorkerCounter::signatures_replaced)];
      out.decided = sum_of(out.verdicts);
      return out.received >= received && out.decided == out.received;
    });
    CHECK_EQ(out.decided, out.received);  // every packet has exactly one verdict
    return out;
  }
};

// A relay on loopback that sends by clones; nullptr: the test has failed.
inline std::unique_ptr<Relay> open_cloning_relay() {
  RelayOptions options;
  options.listen = {ipv4_endpoint("127.0.0.1", 0)};
  options.worker = LoopbackRelay::default_worker();
  options.transmit = TransmitMode::clone;
  auto relay = open_relay(options);
  if (relay) CHECK_EQ(relay->transmit_refusal(), std::string());
  return relay;
}

}  // namespace shredway::test
