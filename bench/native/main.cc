// The native half of the bench: scenarios that need sockets, threads and processor clocks.
//
// Started by bench/run.ts, which interprets the lines:
//   shredway_bench SCENARIO [--small] [--rounds N] [--loopback] [--node PATH] [--dgram PATH]
//                           [--samplicator PATH] [--peer NAME [--peer-copies 1]
//                           [--peer-destinations N]
//                            --peer-word WORD...]...
// Prints one JSON object per line: first "setup", then the raw values of every round.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "clocks.h"
#include "crypto/ed25519.h"
#include "crypto/sha256.h"
#include "options.h"
#include "report_line.h"
#include "shred/reed_solomon.h"

namespace shredway::bench {
namespace {

struct Scenario {
  const char* name;
  void (*run)(const Bench&);
};
constexpr Scenario kScenarios[] = {
    {"noise", run_noise},       {"cost", run_cost},         {"latency", run_latency},
    {"rate", run_rate},         {"steps", run_steps},       {"worker", run_worker},
    {"recovery", run_recovery}, {"deshred", run_deshred},   {"hand_over", run_hand_over},
    {"beside", run_beside},     {"landings", run_landings}, {"stream_filters", run_stream_filters},
    {"checks", run_checks},     {"attacks", run_attacks},   {"sample", run_sample},
    {"http", run_http},         {"transmit", run_transmit}, {"http_proxy", run_http_proxy},
    {"peers", run_peers},       {"divided", run_divided},   {"receive", run_receive},
};

bool read_options(int count, char** words, Options& options) {
  if (count < 2) return false;
  options.scenario = words[1];
  for (int i = 2; i < count; i++) {
    const std::string word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--small") options.small = true;
    else if (word == "--loopback") options.isolate = false;
    else if (word == "--rounds" && has_value)
      options.rounds = static_cast<uint32_t>(std::strtoul(words[++i], nullptr, 10));
    else if (word == "--node" && has_value) options.node = words[++i];
    else if (word == "--dgram" && has_value) options.dgram_relay = words[++i];
    else if (word == "--samplicator" && has_value) options.samplicator = words[++i];
    else if (word == "--peer" && has_value) options.peers.push_back({words[++i]});
    else if (word == "--peer-copies" && has_value && !options.peers.empty())
      options.peers.back().copies = words[++i][0] == '1' ? 1 : 3;
    else if (word == "--peer-destinations" && has_value && !options.peers.empty())
      options.peers.back().destinations_max =
          static_cast<uint32_t>(std::strtoul(words[++i], nullptr, 10));
    else if (word == "--peer-word" && has_value && !options.peers.empty())
      options.peers.back().command.push_back(words[++i]);
    else return false;
  }
  return options.rounds >= 1 && options.rounds <= 1000;
}

const char* path_name(ReedSolomonPath path) {
  switch (path) {
    case ReedSolomonPath::gfni:
      return "gfni";
    case ReedSolomonPath::avx2:
      return "avx2";
    case ReedSolomonPath::portable:
      break;
  }
  return "portable";
}

int run(const Options& options) {
  for (const Scenario& scenario : kScenarios) {
    if (options.scenario != scenario.name) continue;
    precise_sleep_setup();
    const Network network = prepare_network(options.isolate);
    const std::vector<int> cpus = allowed_cpus();
    const Bench bench{options, network, cpus.back(), cpus.front(), cpus};
    ReportLine("setup")
        .text("scenario", scenario.name)
        .text("network", network.label)
        .truth("comparable", network.isolated)
        .count("cpus", cpus.size())
        .text("ed25519", ed25519_library_name())
        .text("sha256", sha256_is_accelerated() ? "SHA instructions" : "portable")
        .text("reed_solomon", path_name(reed_solomon_path()))
        .print();
    scenario.run(bench);
    return 0;
  }
  return -1;
}

}  // namespace
}  // namespace shredway::bench

int main(int count, char** words) {
  shredway::bench::Options options;
  const bool understood = shredway::bench::read_options(count, words, options);
  const int result = understood ? shredway::bench::run(options) : -1;
  if (result >= 0) return result;
  std::fprintf(stderr,
               "expected: shredway_bench noise|cost|latency|rate|steps|worker|recovery|deshred|"
               "hand_over|beside|landings|checks|sample|http|http_proxy|transmit|receive|divided|"
               "peers [--small] "
               "[--rounds 1..1000] "
               "[--loopback] "
               "[--node PATH] [--dgram PATH] [--samplicator PATH] "
               "[--peer NAME [--peer-copies 1] [--peer-destinations N] "
               "--peer-word WORD...]...\n");
  return 2;
}
