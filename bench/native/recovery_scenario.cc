// Recovery: the cost of computing a whole FEC set from half of it, and of each step.
//
// One thread, processor time, sixteen authentic sets (1.3 MB) one after the other, every variant
// once per round in slots of a few milliseconds. Recovered shreds are compared with the lost ones
// outside of the measured time.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <string>

#include "deshred/fec_set.h"
#include "options.h"
#include "report_line.h"
#include "timing.h"
#include "traffic.h"

namespace shredway::bench {
namespace {

constexpr size_t kSets = 16;

struct Loss {
  const char* name;
  uint64_t lost;  // bits of the leaves; 0: another half of the set each time
};
constexpr Loss kLosses[] = {
    {"32 data shreds lost", FecSet::kAllData},
    {"4 data shreds lost, all others there", 0xf},
    {"32 of 64 shreds lost at random", 0},
};
constexpr std::pair<ReedSolomonPath, const char*> kPaths[] = {
    {ReedSolomonPath::gfni, "gfni"},
    {ReedSolomonPath::avx2, "avx2"},
    {ReedSolomonPath::portable, "portable"},
};

// During its lifetime Reed-Solomon uses this implementation, if the processor supports it.
class UsedPath {
 public:
  explicit UsedPath(ReedSolomonPath path)
      : before_(reed_solomon_path()), available_(reed_solomon_use(path)) {}
  ~UsedPath() { (void)reed_solomon_use(before_); }
  UsedPath(const UsedPath&) = delete;
  UsedPath& operator=(const UsedPath&) = delete;
  bool available() const { return available_; }

 private:
  ReedSolomonPath before_;
  bool available_;
};

void expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "expected %s\n", what);
  std::abort();
}

class RecoveryScenario {
 public:
  explicit RecoveryScenario(const Bench& bench)
      : bench_(bench), slot_ns_(bench.options.small ? 1'000'000 : 4'000'000) {
    stream_.make(kSets * kFecSetLeaves, packets_);
    const uint8_t* code = packets_.packet(kFecSetShreds);
    const Layout layout = layout_of(variant_of(code[offset::kVariant]));
    shard_bytes_ = static_cast<size_t>(layout.body_end - layout.body_begin);
  }
  void run();

 private:
  template <typename Prepare, typename Work>
  double per_set_ns(Prepare prepare, Work work);
  uint64_t lost_of(const Loss& loss);
  void fill(size_t set, uint64_t lost);
  void compare(size_t set, const char* what) const;
  double whole_set_ns(const Loss& loss);
  double code_alone_ns(uint64_t lost);
  double encode_ns();
  double tree_ns();
  void run_round(uint32_t round);
  void print(uint32_t round, const std::string& what, const char* path, double ns) const;

  const Bench& bench_;
  const uint64_t slot_ns_;
  size_t shard_bytes_ = 0;
  ShredStream stream_{1, 32, ShredContents::entries};
  PacketList packets_;
  const ReedSolomon reed_solomon_{kFecSetShreds, kFecSetShreds};
  std::unique_ptr<FecSet[]> sets_{new FecSet[kSets]()};
  std::array<uint64_t, kSets> lost_{};
  std::mt19937_64 random_{1};
};

// Only `work` is timed; `prepare` runs before it for all sets.
template <typename Prepare, typename Work>
double RecoveryScenario::per_set_ns(Prepare prepare, Work work) {
  uint64_t total_ns = 0;
  size_t operations = 0;
  while (total_ns < slot_ns_) {
    for (size_t set = 0; set < kSets; set++) prepare(set);
    const uint64_t before_ns = own_cpu_ns();
    for (size_t set = 0; set < kSets; set++) work(set);
    total_ns += own_cpu_ns() - before_ns;
    operations += kSets;
  }
  return static_cast<double>(total_ns) / static_cast<double>(operations);
}

uint64_t RecoveryScenario::lost_of(const Loss& loss) {
  if (loss.lost != 0) return loss.lost;
  std::array<uint8_t, kFecSetLeaves> leaves;
  for (uint8_t i = 0; i < kFecSetLeaves; i++) leaves[i] = i;
  std::shuffle(leaves.begin(), leaves.end(), random_);
  uint64_t lost = 0;
  for (size_t i = 0; i < kFecSetShreds; i++) lost |= uint64_t{1} << leaves[i];
  return lost;
}

// Adds the received shreds; nothing is left of the missing ones.
void RecoveryScenario::fill(size_t set, uint64_t lost) {
  bool begun = false;
  lost_[set] = lost;
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    const size_t at = set * kFecSetLeaves + leaf;
    if (lost >> leaf & 1) {
      std::memset(const_cast<uint8_t*>(sets_[set].packet(leaf)), 0, kPacketBytesMax);
      continue;
    }
    Shred shred;
    expect(check_packet(packets_.packet(at), packets_.packet_bytes(at), shred) == Verdict::first,
           "an authentic shred");
    if (begun) sets_[set].add(packets_.packet(at), shred);
    else sets_[set].begin(packets_.packet(at), shred);
    begun = true;
  }
}

void RecoveryScenario::compare(size_t set, const char* what) const {
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    const size_t at = set * kFecSetLeaves + leaf;
    const uint8_t* own = sets_[set].packet(leaf);
    expect(std::equal(own, own + packets_.packet_bytes(at), packets_.packet(at)), what);
  }
}

double RecoveryScenario::whole_set_ns(const Loss& loss) {
  const double ns =
      per_set_ns([&](size_t set) { fill(set, lost_of(loss)); },
                 [&](size_t set) {
                   expect(sets_[set].recover(reed_solomon_) == lost_[set], "a recovered set");
                 });
  for (size_t set = 0; set < kSets; set++) compare(set, "the packets that were lost");
  return ns;
}

double RecoveryScenario::code_alone_ns(uint64_t lost) {
  std::array<bool, kFecSetLeaves> present;
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) present[leaf] = !(lost >> leaf & 1);
  const auto shard = [this](size_t set, uint8_t leaf) {
    const size_t begin = leaf < kFecSetShreds ? offset::kVariant : kCodeHeaderBytes;
    return const_cast<uint8_t*>(sets_[set].packet(leaf)) + begin;
  };
  const double ns = per_set_ns(
      [&](size_t set) { fill(set, lost); },
      [&](size_t set) {
        std::array<uint8_t*, kFecSetLeaves> shards;
        for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) shards[leaf] = shard(set, leaf);
        expect(reed_solomon_.recover(shards.data(), present.data(), shard_bytes_), "a recovery");
      });
  for (size_t set = 0; set < kSets; set++)
    for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
      const uint8_t* own = shard(set, leaf);
      const uint8_t* original =
          packets_.packet(set * kFecSetLeaves + leaf) + (own - sets_[set].packet(leaf));
      expect(std::equal(own, own + shard_bytes_, original), "the shards that were lost");
    }
  return ns;
}

double RecoveryScenario::encode_ns() {
  std::vector<uint8_t> made(kFecSetShreds * kPacketBytesMax);
  return per_set_ns([](size_t) {},
                    [&](size_t set) {
                      std::array<const uint8_t*, kFecSetShreds> data;
                      std::array<uint8_t*, kFecSetShreds> code;
                      for (size_t i = 0; i < kFecSetShreds; i++) {
                        data[i] = packets_.packet(set * kFecSetLeaves + i) + offset::kVariant;
                        code[i] = made.data() + i * kPacketBytesMax;
                      }
                      reed_solomon_.encode(data.data(), code.data(), shard_bytes_);
                      keep(made[0]);
                    });
}

double RecoveryScenario::tree_ns() {
  std::vector<MerkleTree::Leaf> leaves(kFecSetLeaves);
  return per_set_ns([](size_t) {},
                    [&](size_t set) {
                      for (size_t i = 0; i < kFecSetLeaves; i++) {
                        const uint8_t* packet = packets_.packet(set * kFecSetLeaves + i);
                        const Variant variant = variant_of(packet[offset::kVariant]);
                        leaves[i] = {packet, layout_of(variant).proof_begin};
                      }
                      const MerkleTree tree(leaves);
                      keep(tree.root());
                    });
}

void RecoveryScenario::print(uint32_t round, const std::string& what, const char* path,
                             double ns) const {
  if (round == 0) return;  // warms up
  ReportLine line("recovery");
  line.text("what", what).text("path", path).count("round", round).number("ns", ns).print();
}

void RecoveryScenario::run_round(uint32_t round) {
  for (const Loss& loss : kLosses) print(round, loss.name, "", whole_set_ns(loss));
  for (const auto& [path, name] : kPaths) {
    const UsedPath used(path);
    if (!used.available()) continue;
    print(round, "whole set, 32 data shreds lost", name, whole_set_ns(kLosses[0]));
    print(round, "Reed-Solomon alone, 32 data shreds lost", name, code_alone_ns(kLosses[0].lost));
    print(round, "Reed-Solomon alone, 4 data shreds lost", name, code_alone_ns(kLosses[1].lost));
    print(round, "Reed-Solomon alone, 32 code shreds made", name, encode_ns());
  }
  print(round, "Merkle tree of 64 leaves", "", tree_ns());
}

void RecoveryScenario::run() {
  pin(0, bench_.tested_cpu);
  for (uint32_t round = 0; round <= bench_.options.rounds; round++) run_round(round);
}

}  // namespace

void run_recovery(const Bench& bench) { RecoveryScenario(bench).run(); }

}  // namespace shredway::bench
