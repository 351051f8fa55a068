// Tables in force: one pointer to one immutable set, swapped while traffic runs.
//
// The control plane publishes; each worker takes the current set at the edge of a batch, keeps it
// for the batch, and says which generation it has reached. A set is freed when every worker has
// reached a later one, so no worker ever waits and no table changes under a batch. What a worker
// derives from tables, its target lists, is built here, on the publishing thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "clone/clone.h"
#include "relay/fanout_table.h"
#include "relay/source_table.h"
#include "relay/target_lists.h"
#include "shred/leader_table.h"

namespace shredway {

inline constexpr size_t kTableReadersMax = 64;

struct TableSet {
  std::shared_ptr<const SourceTable> sources;
  std::shared_ptr<const FanoutTable> fanout;
  std::shared_ptr<const LeaderTable> leaders;
  std::shared_ptr<const NextHops> next_hops;  // nullptr: everybody by socket
  uint64_t generation = 0;
  // By reader; nullptr beyond the last one.
  std::array<std::shared_ptr<const TargetLists>, kTableReadersMax> targets{};
};

// A worker's side: what it has reached.
class TableReader {
 public:
  explicit TableReader(const std::atomic<const TableSet*>& current) : current_(current) {}
  // In TableSet::targets; given by Tables::add_reader().
  size_t number() const { return number_; }
  // The set to use until the next call. Worker's thread.
  const TableSet& acquire() {
    const TableSet* set = current_.load(std::memory_order_acquire);
    reached_.store(set->generation, std::memory_order_release);
    return *set;
  }
  uint64_t reached() const { return reached_.load(std::memory_order_acquire); }

 private:
  friend class Tables;
  const std::atomic<const TableSet*>& current_;
  size_t number_ = 0;
  std::atomic<uint64_t> reached_{0};
};

// The control plane's side. Any thread; calls are serialised.
class Tables {
 public:
  explicit Tables(TableSet initial);
  const std::atomic<const TableSet*>& current() const { return current_; }
  // Before the reader's thread starts, and before the first publication that it may see replaced.
  // `rules`: what its target lists are built for. At most kTableReadersMax readers.
  void add_reader(TableReader* reader, const TargetRules& rules = {});

  // Swaps in a copy of the present set with one part replaced.
  template <typename Table>
  void replace(std::shared_ptr<const Table> TableSet::*part, std::shared_ptr<const Table> table) {
    const std::lock_guard lock(mutex_);
    TableSet next = *sets_.back();
    next.*part = std::move(table);
    constexpr bool kChangesTargets =
        std::is_same_v<Table, FanoutTable> || std::is_same_v<Table, NextHops>;
    publish(std::move(next), kChangesTargets);
  }
  // Of the set in force.
  uint64_t generation() const {
    const std::lock_guard lock(mutex_);
    return sets_.back()->generation;
  }
  // How many sets are still kept (tests).
  size_t kept() const { return sets_.size(); }

 private:
  struct Reader {
    const TableReader* reader;
    TargetRules rules;
  };
  void publish(TableSet next, bool targets_changed);
  void build_targets(TableSet& set, size_t reader) const;
  void free_unused();

  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<TableSet>> sets_;  // oldest first, the last one is current
  std::vector<Reader> readers_;
  std::atomic<const TableSet*> current_{nullptr};
};

}  // namespace shredway
