// Drivers: the relays that are compared, behind one interface.
//
// shredway: the complete relay. receive: only receives packets from the socket, like the relay.
// forwarder: the minimal program that forwards packets (minimal_forwarder.h). dgram, samplicator:
// other programs, as child processes. All are fed on a loopback port and run on the CPU under test.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "minimal_forwarder.h"
#include "options.h"
#include "relay/relay.h"
#include "traffic.h"

namespace shredway::bench {

class Driver {
 public:
  virtual ~Driver() = default;
  virtual uint16_t port() const = 0;
  // Processor time so far of everything that the driver runs.
  virtual uint64_t cpu_ns() const = 0;
  // Received datagrams and non-empty receive calls, if the driver counts them.
  struct Batches {
    uint64_t received = 0, batches = 0;
  };
  virtual Batches batches() { return {}; }
  // Thread of this process that does the work; 0 if another process does.
  virtual pid_t thread() const { return 0; }
};

struct OurRelayOptions {
  std::vector<Endpoint> destinations;
  int cpu;
  PublicKey leader;
  bool gso = true;
  WaitMode wait = WaitMode::block;
  uint32_t sources = 1;  // number of addresses from 127.0.0.1 on
  uint32_t failed_checks_per_second = 1000;
  bool deshred = true;  // as in the product
  // CPUs of the deshred thread and the sender threads; empty: the CPUs of the caller. In the
  // product they may run on any CPU but the worker's.
  std::vector<int> other_cpus = {};
  TransmitMode transmit = TransmitMode::socket;
  uint32_t sender_threads = 0;
  bool whole_cost = false;  // cpu_ns() counts all threads of the relay, not only the worker
};

class OurRelay final : public Driver {
 public:
  // nullptr after an error text on standard error.
  static std::unique_ptr<OurRelay> open(const OurRelayOptions& options);
  uint16_t port() const override { return relay_->addresses().front().port; }
  uint64_t cpu_ns() const override;
  Batches batches() override;
  pid_t thread() const override { return worker_thread_; }
  Relay& relay() { return *relay_; }
  // Packets with this verdict, from all sources.
  uint64_t verdict_count(Verdict verdict);
  uint64_t worker_count(WorkerCounter counter);
  uint64_t sent_to(uint32_t destination);
  uint64_t deshred_count(DeshredCounter counter);
  // Returns false if not all go by clone within two seconds.
  bool wait_until_cloned(uint32_t destinations);

 private:
  OurRelay() = default;
  void find_threads(const std::vector<pid_t>& before, const OurRelayOptions& options);
  void read_counters();

  std::unique_ptr<Relay> relay_;
  uint32_t sources_ = 1;
  pid_t worker_thread_ = 0;
  std::vector<pid_t> counted_threads_;
  std::vector<uint64_t> counters_;
};

// recvmmsg of 64 with sender addresses and kernel times, then poll: the receiving part of a relay.
class ReceiveOnly final : public Driver {
 public:
  explicit ReceiveOnly(int cpu);
  ~ReceiveOnly() override;
  uint16_t port() const override { return port_; }
  uint64_t cpu_ns() const override;
  pid_t thread() const override { return thread_number_; }

 private:
  void run();

  int fd_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<pid_t> thread_number_{0};
  std::thread thread_;
};

class ForwarderDriver final : public Driver {
 public:
  ForwarderDriver(const std::vector<Endpoint>& destinations, int cpu);
  uint16_t port() const override { return forwarder_.port(); }
  uint64_t cpu_ns() const override;
  pid_t thread() const override { return forwarder_.thread(); }

 private:
  MinimalForwarder forwarder_;
};

// Another program that listens on a loopback port and forwards to the destinations.
class ChildDriver final : public Driver {
 public:
  // Returns nullptr if the program does not listen within five seconds.
  static std::unique_ptr<ChildDriver> start(const std::vector<std::string>& command, uint16_t port,
                                            int cpu);
  ~ChildDriver() override;
  uint16_t port() const override { return port_; }
  uint64_t cpu_ns() const override;

 private:
  ChildDriver() = default;
  pid_t process_ = 0;
  uint16_t port_ = 0;
};

// Runs the scenarios over whole relays: enter(destinations), then run(destinations, burst).
template <typename Enter, typename Run>
void each_case(bool small, Enter enter, Run run) {
  for (const uint32_t destinations :
       small ? std::vector<uint32_t>{10} : std::vector<uint32_t>{1, 10, 50, 200}) {
    enter(destinations);
    for (const uint32_t burst : {1u, 32u}) run(destinations, burst);
  }
}

// A loopback port that is currently free.
uint16_t free_port();
std::unique_ptr<Driver> start_dgram(const Bench& bench, const std::vector<Endpoint>& destinations);
std::unique_ptr<Driver> start_samplicator(const Bench& bench,
                                          const std::vector<Endpoint>& destinations);

}  // namespace shredway::bench
