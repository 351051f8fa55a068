// Stream filters: the cost of matching each transaction against the filters of all subscribers.
//
// The work of the deshred thread for streams without the thread: FilterIndex::match for
// transactions that are parsed already. 10,000 accounts in 500 filters, and as a comparison one
// filter. One transaction in a hundred contains an account of a filter. One thread, processor time.
#include <cstdlib>
#include <cstring>
#include <random>

#include "deshred/entry_stream.h"
#include "entry_traffic.h"
#include "options.h"
#include "report_line.h"
#include "stream/filter_index.h"
#include "timing.h"

namespace shredway::bench {
namespace {

constexpr size_t kBatches = 32;
constexpr size_t kBatchBytes = 60'000;
constexpr size_t kAccountsPerFilter = 20;
constexpr size_t kMatchEvery = 100;
constexpr size_t kFilterCounts[] = {1, 500};

using Account = std::array<uint8_t, kPublicKeyBytes>;
using Bytes = std::vector<uint8_t>;

template <typename T>
void append(Bytes& to, T value) {
  const size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(&to[at], &value, sizeof value);
}

class TransactionList final : public EntrySink {
 public:
  struct Item {
    Bytes bytes;
    Transaction transaction;
  };
  std::vector<Item> items;

 private:
  void on_entry(const Entry&) override {}
  void on_transaction(const EntryTransaction& seen) override {
    items.push_back({Bytes(seen.bytes, seen.bytes + seen.transaction.bytes), seen.transaction});
  }
  void on_marker(const BlockMarker&) override {}
};

class StreamFilterScenario {
 public:
  explicit StreamFilterScenario(const Bench& bench) : bench_(bench) {}
  void run();

 private:
  Account random_account();
  std::unique_ptr<FilterIndex> make_index(size_t filters);
  void make_transactions();
  void place_accounts();
  void measure(size_t filters, uint32_t round);

  const Bench& bench_;
  std::mt19937_64 random_{1};
  std::vector<Account> accounts_;  // of the filters
  TransactionList list_;
};

Account StreamFilterScenario::random_account() {
  Account account;
  for (uint8_t& byte : account) byte = static_cast<uint8_t>(random_());
  return account;
}

// Every filter excludes votes and includes its own accounts.
std::unique_ptr<FilterIndex> StreamFilterScenario::make_index(size_t filters) {
  accounts_.clear();
  Bytes table{'S', 'W', 'F', '1'};
  append(table, static_cast<uint32_t>(filters));
  append(table, uint32_t{0});
  for (size_t i = 0; i < filters; i++) {
    append(table, static_cast<uint16_t>(i));
    append(table, uint16_t{1 << 8});  // tier 0, no votes
    append(table, static_cast<uint32_t>(kAccountsPerFilter));
    append(table, uint64_t{0});
    append(table, uint64_t{0});
    for (size_t j = 0; j < kAccountsPerFilter; j++) {
      accounts_.push_back(random_account());
      table.insert(table.end(), accounts_.back().begin(), accounts_.back().end());
    }
  }
  std::string error;
  std::unique_ptr<FilterIndex> index = FilterIndex::parse(table.data(), table.size(), error);
  if (index) return index;
  std::fprintf(stderr, "streams: expected a valid table, got: %s\n", error.c_str());
  std::abort();
}

void StreamFilterScenario::make_transactions() {
  EntryMaker maker;
  EntryStream stream;
  Bytes batch;
  for (size_t i = 0; i < kBatches; i++) {
    maker.make(kBatchBytes, batch);
    stream.reset();
    if (!stream.feed(batch.data(), batch.size(), list_) || !stream.end(list_)) std::abort();
  }
}

// Other accounts than before, so that each lookup begins in cold memory, as with real traffic.
void StreamFilterScenario::place_accounts() {
  for (size_t i = 0; i < list_.items.size(); i++) {
    auto& [bytes, transaction] = list_.items[i];
    for (size_t key = 0; key + 1 < transaction.key_count; key++) {
      const bool is_known = key == 0 && i % kMatchEvery == 0;
      const Account account = is_known ? accounts_[random_() % accounts_.size()] : random_account();
      std::memcpy(&bytes[transaction.keys_begin + key * kPublicKeyBytes], account.data(),
                  account.size());
    }
  }
}

void StreamFilterScenario::measure(size_t filters, uint32_t round) {
  const std::unique_ptr<FilterIndex> index = make_index(filters);
  place_accounts();
  std::vector<uint16_t> ids;
  uint64_t matches = 0;
  const double ns = per_operation_ns(list_.items.size(), [&](size_t i) {
    const TransactionList::Item& item = list_.items[i];
    index->match(item.bytes.data(), item.transaction, {.tier = 0}, ids);
    matches += ids.size();
  });
  keep(matches);
  // Half of the transactions with such an account are votes.
  if (matches == 0 || matches > list_.items.size() / kMatchEvery + 1) {
    std::fprintf(stderr, "streams: expected matches of some transactions, got %llu\n",
                 static_cast<unsigned long long>(matches));
    std::abort();
  }
  if (round == 0) return;  // touches the memory for the first time
  ReportLine line("stream_filters");
  line.count("round", round).count("filters", filters).count("accounts", accounts_.size());
  line.number("ns", ns).print();
}

void StreamFilterScenario::run() {
  pin(0, bench_.tested_cpu);
  make_transactions();
  for (uint32_t round = 0; round <= bench_.options.rounds; round++)
    for (const size_t filters : kFilterCounts) measure(filters, round);
}

}  // namespace

void run_stream_filters(const Bench& bench) { StreamFilterScenario(bench).run(); }

}  // namespace shredway::bench
