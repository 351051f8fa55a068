// Deshred: the number of shreds that one core turns into entries and transactions, by their order
// of arrival.
//
// The work of the deshred thread without the thread: the packet rules, the deshredder, and for each
// transaction the watch-list and the recent landings. One thread, processor time; new slots each
// time, 64 FEC sets (5 MB, as much as the ring holds) without pause. After every measurement the
// transactions are counted: a result is valid only if all were found.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "deshred/deshredder.h"
#include "options.h"
#include "relay/landings.h"
#include "report_line.h"
#include "timing.h"
#include "traffic.h"
#include "transaction/vote.h"

namespace shredway::bench {
namespace {

constexpr size_t kSets = 64;
constexpr size_t kWatchEvery = 16;  // every 16th non-vote transaction

enum class ShredOrder : uint8_t { in_order, shuffled, half_lost };
constexpr std::pair<ShredOrder, const char*> kShredOrders[] = {
    {ShredOrder::in_order, "in order, nothing lost"},
    {ShredOrder::shuffled, "in random order within each slot, nothing lost"},
    {ShredOrder::half_lost, "32 of each set's 64 lost at random"},
};

// Handles a transaction like DeshredThread, except for reports and their counters.
class Listener final : public DeshredSink {
 public:
  void watch(const std::vector<TransactionSignature>& signatures) {
    for (size_t i = 0; i < signatures.size(); i += kWatchEvery)
      expected_ += watch_list_.add(signatures[i]);
  }
  uint64_t expected() const { return expected_; }
  uint64_t watched_seen() const { return watched_seen_; }

 private:
  void on_transaction(const BatchPlace& place, const EntryTransaction& seen) override {
    if (seen.transaction.signature_count == 0) return;
    const uint8_t* signature = seen.bytes + seen.transaction.signatures_begin;
    const bool watched = watch_list_.contains(signature);
    if (!watched && is_simple_vote(seen.bytes, seen.transaction)) return;
    watched_seen_ += watched;
    Landing landing{
        place.slot, place.arrival_ns, place.batch_index, seen.ordinal, place.shred_index, 1, {}};
    std::memcpy(landing.signature.data(), signature, landing.signature.size());
    recent_.record(landing);
  }
  void on_entry(const BatchPlace&, const Entry&) override {}
  void on_marker(const BatchPlace&, const BlockMarker&) override {}
  void on_recovered(const FecSet&, uint64_t) override {}

  WatchList watch_list_{HashKey{1, 2}};
  RecentLandings recent_{HashKey{3, 4}};
  uint64_t expected_ = 0, watched_seen_ = 0;
};

class TransactionCounter final : public EntrySink {
 public:
  uint64_t transactions = 0;

 private:
  void on_entry(const Entry& entry) override { keep(entry.hash_count); }
  void on_transaction(const EntryTransaction& seen) override {
    keep(seen.transaction.message_begin);
    transactions++;
  }
  void on_marker(const BlockMarker&) override {}
};

class DeshredScenario {
 public:
  explicit DeshredScenario(const Bench& bench)
      : bench_(bench), repetitions_(bench.options.small ? 1 : 4) {}
  void run();

 private:
  std::vector<uint32_t> shred_indexes(ShredOrder order);
  uint64_t deshred(const std::vector<uint32_t>& shreds);
  void run_order(ShredOrder order, const char* name, uint32_t round);
  void run_entries(uint32_t round);

  const Bench& bench_;
  const size_t repetitions_;
  ShredStream stream_{1, 32, ShredContents::entries};
  PacketList packets_;
  Listener listener_;
  Deshredder deshredder_{{}, listener_};
  uint64_t now_ns_ = realtime_ns();
  std::mt19937_64 random_{1};
};

// Indexes in packets_, in the order of arrival.
std::vector<uint32_t> DeshredScenario::shred_indexes(ShredOrder order) {
  std::vector<uint32_t> shreds(packets_.size());
  std::iota(shreds.begin(), shreds.end(), 0u);
  if (order == ShredOrder::in_order) return shreds;
  const size_t at_once =
      order == ShredOrder::shuffled ? stream_.shreds_per_slot() : size_t{kFecSetLeaves};
  std::vector<uint32_t> selected;
  for (size_t begin = 0; begin < shreds.size(); begin += at_once) {
    const auto first = shreds.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = first + static_cast<std::ptrdiff_t>(at_once);
    std::shuffle(first, end, random_);
    if (order == ShredOrder::shuffled) continue;
    selected.insert(selected.end(), first, first + kFecSetShreds);
    std::sort(selected.end() - kFecSetShreds, selected.end());
  }
  return order == ShredOrder::shuffled ? shreds : selected;
}

// Processor time in ns.
uint64_t DeshredScenario::deshred(const std::vector<uint32_t>& shreds) {
  const uint64_t before_ns = own_cpu_ns();
  for (const uint32_t i : shreds) {
    Shred shred;
    if (check_packet(packets_.packet(i), packets_.packet_bytes(i), shred) == Verdict::first)
      deshredder_.add(packets_.packet(i), shred, ++now_ns_);
  }
  return own_cpu_ns() - before_ns;
}

void DeshredScenario::run_order(ShredOrder order, const char* name, uint32_t round) {
  uint64_t cpu_ns = 0, transactions = 0;
  for (size_t i = 0; i < repetitions_; i++) {
    stream_.make(kSets * kFecSetLeaves, packets_);
    listener_.watch(stream_.signatures());
    const std::vector<uint32_t> shreds = shred_indexes(order);
    const uint64_t before = deshredder_.counts().transactions;
    cpu_ns += deshred(shreds);
    transactions += deshredder_.counts().transactions - before;
    if (deshredder_.counts().transactions - before == stream_.transactions() &&
        listener_.watched_seen() == listener_.expected())
      continue;
    std::fprintf(stderr, "deshred: expected %llu transactions, got %llu\n",
                 static_cast<unsigned long long>(stream_.transactions()),
                 static_cast<unsigned long long>(deshredder_.counts().transactions - before));
    std::abort();
  }
  if (round == 0) return;  // touches the memory for the first time
  ReportLine line("deshred");
  line.text("arrival", name).count("round", round).count("cpu_ns", cpu_ns);
  line.count("sets", repetitions_ * kSets).count("transactions", transactions).print();
}

// Feeds batches in the same pieces as data shreds.
void DeshredScenario::run_entries(uint32_t round) {
  const size_t piece_bytes = set_entries_bytes() / kFecSetShreds;
  EntryMaker maker;
  std::vector<std::vector<uint8_t>> batches(kSets / 2);
  for (auto& batch : batches) maker.make(2 * set_entries_bytes(), batch);
  EntryStream stream;
  TransactionCounter counter;
  uint64_t bytes = 0;
  const uint64_t before_ns = own_cpu_ns();
  for (size_t i = 0; i < repetitions_ * 4; i++)
    for (const auto& batch : batches) {
      stream.reset();
      for (size_t at = 0; at < batch.size(); at += piece_bytes)
        stream.feed(batch.data() + at, std::min(piece_bytes, batch.size() - at), counter);
      if (!stream.end(counter)) std::abort();
      bytes += batch.size();
    }
  const uint64_t cpu_ns = own_cpu_ns() - before_ns;
  if (counter.transactions != repetitions_ * 4 * maker.transactions()) std::abort();
  if (round == 0) return;
  ReportLine line("entries");
  line.count("round", round).count("cpu_ns", cpu_ns).count("bytes", bytes);
  line.count("transactions", counter.transactions).print();
}

void DeshredScenario::run() {
  pin(0, bench_.tested_cpu);
  for (uint32_t round = 0; round <= bench_.options.rounds; round++) {
    for (const auto& [order, name] : kShredOrders) run_order(order, name, round);
    run_entries(round);
  }
}

}  // namespace

void run_deshred(const Bench& bench) { DeshredScenario(bench).run(); }

}  // namespace shredway::bench
