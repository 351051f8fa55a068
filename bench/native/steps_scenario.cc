// Steps: nanoseconds of each step of the packet path, and of the work outside it.
//
// One thread, processor time, every step once per round in slots of a few milliseconds. Inputs are
// 2,048 authentic shreds (2.5 MB), so that caches are as warm as in a relay under load, but not
// warmer.
#include <functional>
#include <string>

#include "drivers.h"
#include "report_line.h"
#include "shred/leader_auth.h"
#include "shred/reed_solomon.h"
#include "timing.h"

namespace shredway::bench {
namespace {

constexpr size_t kShreds = 2048;

struct Step {
  std::string name;
  size_t operations;                      // of one slot
  std::function<double(size_t)> measure;  // operations -> ns each
};

// During its lifetime SHA-256 uses the portable code, or the special instructions.
class Sha256Path {
 public:
  explicit Sha256Path(bool portable) { sha256_force_portable(portable); }
  ~Sha256Path() { sha256_force_portable(false); }
};

class Steps {
 public:
  explicit Steps(const Bench& bench) : bench_(bench), slot_ns_(bench.options.small ? 1e6 : 4e6) {
    stream_.make(kShreds, packets_);
    for (size_t i = 0; i < kShreds; i++) {
      Shred shred;
      if (check_packet(packets_.packet(i), packets_.packet_bytes(i), shred) != Verdict::first)
        std::abort();
      shreds_.push_back(shred);
      inputs_.push_back(merkle_input(packets_.packet(i), shred));
    }
    roots_.resize(kShreds);
    for (size_t i = 0; i < kShreds; i += kMerkleLanes)
      merkle_roots(&inputs_[i], kMerkleLanes, &roots_[i]);
  }
  void run();

 private:
  template <typename Work>
  void add(const std::string& name, Work work) {
    // As many as fit a slot, at least one; the first run warms up.
    (void)per_operation_ns(1, work);
    const double once_ns = per_operation_ns(8, work);
    const auto operations = static_cast<size_t>(slot_ns_ / (once_ns + 1)) + 1;
    steps_.push_back(
        {name, operations, [work](size_t count) { return per_operation_ns(count, work); }});
  }
  void add_packet_steps();
  void add_merkle_steps();
  void add_memory_steps();
  void add_table_steps();
  void add_shredder_steps();
  void measure_all();
  void measure_library(Ed25519Library library, const std::string& name);
  double equivocations(size_t operations);

  const Bench& bench_;
  const double slot_ns_;
  ShredStream stream_;
  PacketList packets_;
  std::vector<Shred> shreds_;
  std::vector<MerkleInput> inputs_;
  std::vector<Root> roots_;
  std::vector<Step> steps_;
  std::unique_ptr<RecentShreds> recent_ = RecentShreds::create(true);
  uint64_t slot_ = 1'000'000;
};

void Steps::add_packet_steps() {
  add("check_packet, shred", [this](size_t i) {
    Shred shred;
    keep(check_packet(packets_.packet(i % kShreds), packets_.packet_bytes(i % kShreds), shred));
    keep(shred);
  });
  const std::vector<uint8_t> ping{4, 0, 0, 0};
  std::vector<uint8_t> ping_bytes(kPingBytes, 0);
  ping_bytes[0] = 4;
  add("check_packet, ping", [ping_bytes](size_t) {
    Shred shred;
    keep(check_packet(ping_bytes.data(), ping_bytes.size(), shred));
  });
  const auto bytes = source_table(16);
  std::string error;
  const std::shared_ptr<const SourceTable> table =
      SourceTable::parse(bytes.data(), bytes.size(), 1, error);
  const auto find = [table](uint32_t first_address) {
    return [table, first_address](size_t i) {
      sockaddr_storage sender{};
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_addr.s_addr = htonl(first_address + static_cast<uint32_t>(i % 16));
      std::memcpy(&sender, &address, sizeof address);
      keep(table->find(sender, 20000));
    };
  };
  add("source lookup, one of 16", find(INADDR_LOOPBACK));
  add("source lookup, unknown", find(0x0a000001));
  add("slot window", [window = SlotWindow(), this](size_t i) mutable {
    keep(window.place_of(shreds_[i % kShreds].slot, 1));
  });
}

void Steps::add_merkle_steps() {
  for (const bool portable : {false, true}) {
    const std::string how = portable ? ", portable" : "";
    for (const size_t lanes : {size_t{1}, kMerkleLanes}) {
      const auto measure = [this, portable, lanes](size_t operations) {
        const Sha256Path path(portable);
        return per_operation_ns(operations / lanes + 1,
                                [this, lanes](size_t i) {
                                  Root roots[kMerkleLanes];
                                  merkle_roots(&inputs_[i * lanes % kShreds], lanes, roots);
                                  keep(roots);
                                }) /
               static_cast<double>(lanes);
      };
      steps_.push_back(
          {"merkle root, " + std::to_string(lanes) + " at a time" + how, kShreds, measure});
    }
  }
}

// First arrivals go through the ring of slots; the same shreds again are duplicates.
void Steps::add_memory_steps() {
  const auto record = [this](size_t i, const Root& root, const uint8_t* signature) {
    Shred shred = shreds_[i % kShreds];
    shred.slot = slot_;
    return recent_->record(shred, signature, root, {1, 0, 7});
  };
  add("recent shreds, first arrival", [this, record](size_t i) {
    if (i % kShreds == 0) slot_++;
    keep(record(i, roots_[i % kShreds], packets_.packet(i % kShreds)));
  });
  add("recent shreds, duplicate", [this, record](size_t i) {
    keep(record(i, roots_[i % kShreds], packets_.packet(i % kShreds)));
  });
  add("recent shreds, known signature", [this](size_t i) {
    Shred shred = shreds_[i % kShreds];
    shred.slot = slot_;
    keep(recent_->find(shred, packets_.packet(i % kShreds)));
  });
  steps_.push_back({"recent shreds, equivocation", kShreds * 4,
                    [this](size_t operations) { return equivocations(operations); }});
}

double Steps::equivocations(size_t operations) {
  uint64_t total_ns = 0;
  for (size_t done = 0; done < operations; done += kShreds) {
    slot_ += SlotWindow::kSlots + 1;  // a window later, so that the pool of further roots is free
    for (const bool second : {false, true}) {
      const uint64_t before_ns = own_cpu_ns();
      for (size_t i = 0; i < kShreds; i++) {
        Shred shred = shreds_[i];
        shred.slot = slot_ + i / kShreds;
        Root root = roots_[i];
        Signature signature;
        std::memcpy(signature.data(), packets_.packet(i), signature.size());
        root[0] = static_cast<uint8_t>(root[0] ^ (second ? 1 : 0));
        signature[0] = static_cast<uint8_t>(signature[0] ^ (second ? 1 : 0));
        keep(recent_->record(shred, signature.data(), root, {1, 0, 7}));
      }
      if (second) total_ns += own_cpu_ns() - before_ns;
    }
  }
  return static_cast<double>(total_ns) / static_cast<double>(operations);
}

void Steps::add_table_steps() {
  std::vector<Endpoint> destinations;
  for (uint32_t i = 0; i < 200; i++) destinations.push_back(null_destination({}, i));
  for (Endpoint& destination : destinations) destination.port = 9000;
  const auto fanout = fanout_table(destinations);
  const auto sources = source_table(16);
  const auto leaders = leader_table(stream_.leader(), 864'000);
  add("table parse, 200 destinations", [fanout](size_t) {
    std::string error;
    keep(FanoutTable::parse(fanout.data(), fanout.size(), 1, error));
  });
  add("table parse, 16 sources", [sources](size_t) {
    std::string error;
    keep(SourceTable::parse(sources.data(), sources.size(), 1, error));
  });
  add("table parse, leaders of 864,000 slots", [leaders](size_t) {
    std::string error;
    keep(LeaderTable::parse(leaders.data(), leaders.size(), error));
  });
  std::string error;
  const std::shared_ptr<const FanoutTable> table =
      FanoutTable::parse(fanout.data(), fanout.size(), 1, error);
  const auto tables = std::make_shared<Tables>(TableSet{});
  add("table swap (publisher)",
      [tables, table](size_t) { tables->replace(&TableSet::fanout, table); });
  const auto reader = std::make_shared<TableReader>(tables->current());
  add("table take-up (worker, per batch)",
      [tables, reader](size_t) { keep(reader->acquire().generation); });
}

void Steps::add_shredder_steps() {
  std::vector<uint8_t> parity(kFecSetShreds * kCodeShredBytes);
  add("shredder, one FEC set of 64 shreds", [this](size_t) {
    static PacketList out;
    stream_.make(kFecSetLeaves, out);
    keep(out.bytes.data());
  });
  const auto relay = std::shared_ptr<OurRelay>(OurRelay::open({.destinations = {},
                                                               .cpu = bench_.helper_cpu,
                                                               .leader = stream_.leader(),
                                                               .other_cpus = {bench_.helper_cpu}}));
  if (!relay) return;
  const SnapshotLayout layout = relay->relay().layout(16, 200);
  auto words = std::make_shared<std::vector<uint64_t>>(layout.words);
  add("snapshot of 16 sources, 200 destinations",
      [relay, layout, words](size_t) { relay->relay().snapshot(layout, words->data()); });
}

void Steps::measure_all() {
  for (uint32_t round = 1; round <= bench_.options.rounds; round++)
    for (const Step& step : steps_)
      ReportLine("step")
          .text("step", step.name)
          .count("round", round)
          .number("ns", step.measure(step.operations))
          .print();
}

void Steps::measure_library(Ed25519Library library, const std::string& name) {
  if (!ed25519_use(library)) return;
  steps_.clear();
  const auto key = std::make_shared<VerifyingKey>(stream_.leader());
  add("signature check, not cached, " + name, [this, key](size_t i) {
    const size_t at = i * kFecSetLeaves % kShreds;
    keep(key->verify(packets_.packet(at), roots_[at].data(), roots_[at].size()));
  });
  const std::shared_ptr<const PreparedKey> prepared = PreparedKey::create(key->bytes());
  add("signature check with a prepared key, hash by " + name, [this, prepared](size_t i) {
    const size_t at = i * kFecSetLeaves % kShreds;
    keep(prepared->verify(packets_.packet(at), roots_[at].data(), roots_[at].size()));
  });
  const auto auth = std::make_shared<LeaderAuth>();
  for (size_t i = 0; i < kShreds; i += kFecSetLeaves)
    (void)auth->verify(*key, nullptr, packets_.packet(i), roots_[i]);
  add("signature check, cached (leader auth), " + name, [this, auth, key](size_t i) {
    keep(auth->recall(*key, packets_.packet(i % kShreds), roots_[i % kShreds]));
  });
  // Like the worker: four roots at a time, one verification per set, then a comparison with the
  // record.
  steps_.push_back({"authentication per shred, full FEC sets, " + name, kShreds, [=, this](size_t) {
                      return per_operation_ns(kShreds / kMerkleLanes,
                                              [&](size_t group) {
                                                Root roots[kMerkleLanes];
                                                const size_t at = group * kMerkleLanes;
                                                merkle_roots(&inputs_[at], kMerkleLanes, roots);
                                                if (at % kFecSetLeaves == 0)
                                                  keep(auth->verify(*key, nullptr,
                                                                    packets_.packet(at), roots[0]));
                                                for (size_t i = 0; i < kMerkleLanes; i++)
                                                  keep(roots[i] == roots_[at + i]);
                                              }) /
                             kMerkleLanes;
                    }});
  measure_all();
}

void Steps::run() {
  pin(0, bench_.tested_cpu);
  add_packet_steps();
  add_merkle_steps();
  add_memory_steps();
  add_table_steps();
  add_shredder_steps();
  measure_all();
  steps_.clear();
  measure_library(Ed25519Library::openssl, "openssl");
  measure_library(Ed25519Library::libsodium, "libsodium");
}

}  // namespace

void run_steps(const Bench& bench) { Steps(bench).run(); }

}  // namespace shredway::bench
