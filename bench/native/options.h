// Options of one run of the bench program, and the environment of every scenario.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network.h"

namespace shredway::bench {

struct Options {
  std::string scenario;
  bool small = false;
  bool isolate = true;  // private network namespace, if the system allows it
  uint32_t rounds = 7;
  std::string node;         // path of the Node.js binary, empty: no such driver
  std::string dgram_relay;  // path of bench/baselines/dgram-relay.mjs
  std::string samplicator;  // path of samplicator, empty: not installed
  // Another relay and the words of its command, with places for port and destinations
  // (peers_scenario.cc).
  struct Peer {
    std::string name;
    std::vector<std::string> command{};
    uint32_t copies = 3;                   // 1 for programs that do not remove duplicates
    uint32_t destinations_max = 1u << 16;  // that the program can serve
  };
  std::vector<Peer> peers;
};

struct Bench {
  const Options& options;
  const Network& network;
  int tested_cpu;                // CPU of the relay (or loop) under test
  int helper_cpu;                // CPU of generator and sinks, if they must run at the same time
  const std::vector<int>& cpus;  // all usable CPUs
};

void run_cost(const Bench& bench);
void run_latency(const Bench& bench);
void run_rate(const Bench& bench);
void run_transmit(const Bench& bench);
void run_divided(const Bench& bench);
void run_receive(const Bench& bench);
void run_peers(const Bench& bench);
void run_steps(const Bench& bench);
void run_worker(const Bench& bench);
void run_recovery(const Bench& bench);
void run_deshred(const Bench& bench);
void run_hand_over(const Bench& bench);
void run_attacks(const Bench& bench);
void run_beside(const Bench& bench);
void run_landings(const Bench& bench);
void run_stream_filters(const Bench& bench);
void run_checks(const Bench& bench);
void run_http(const Bench& bench);  // driven by commands, see http_scenario.cc
void run_http_proxy(const Bench& bench);
void run_noise(const Bench& bench);
void run_sample(const Bench& bench);  // authentic shreds as text, for the TypeScript parts

}  // namespace shredway::bench
