// Tables in force: one pointer to one immutable set, which is swapped under traffic.
//
// The control plane publishes. Each worker acquires the current set before a batch, uses it for the
// whole batch, and reports the generation that it has reached. A set is freed when every worker has
// reached a later one, so that no worker waits and no table changes during a batch. The workers'
// target lists are also built here, on the publishing thread.
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
#include "crypto/prepared_key.h"
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
  std::shared_ptr<const PreparedKeys> prepared_keys;  // of some leaders; never nullptr
  std::shared_ptr<const NextHops> next_hops;          // nullptr: all sends by socket
  uint64_t generation = 0;
  // Indexed by reader; nullptr beyond the last reader.
  std::array<std::shared_ptr<const TargetLists>, kTableReadersMax> targets{};
};

// A worker's side: the set that it uses and the generation that it has reached.
class TableReader {
 public:
  explicit TableReader(const std::atomic<const TableSet*>& current) : current_(current) {}
  // Index in TableSet::targets; Tables::add_reader() sets it.
  size_t number() const { return number_; }
  // Returns the set to use until the next call. Worker's thread.
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
  // Must be called before the reader's thread starts and before a publication that replaces a set
  // in use. `rules`: what the reader's target lists depend on. At most kTableReadersMax readers.
  void add_reader(TableReader* reader, const TargetRules& rules = {});

  // Publishes a copy of the current set with one table replaced.
  template <typename Table>
  void replace(std::shared_ptr<const Table> TableSet::*table_member,
               std::shared_ptr<const Table> table) {
    const std::lock_guard lock(mutex_);
    TableSet next = *sets_.back();
    next.*table_member = std::move(table);
    constexpr bool kChangesTargets =
        std::is_same_v<Table, FanoutTable> || std::is_same_v<Table, NextHops>;
    publish(std::move(next), kChangesTargets);
  }
  // One table of the set in force.
  template <typename Table>
  std::shared_ptr<const Table> latest(std::shared_ptr<const Table> TableSet::*table_member) const {
    const std::lock_guard lock(mutex_);
    return (*sets_.back()).*table_member;
  }
  // Generation of the set in force.
  uint64_t generation() const {
    const std::lock_guard lock(mutex_);
    return sets_.back()->generation;
  }
  // Number of sets that are not freed yet (for tests).
  size_t set_count() const { return sets_.size(); }

 private:
  struct Reader {
    const TableReader* reader;
    TargetRules rules;
  };
  void publish(TableSet next, bool targets_changed);
  void build_targets(TableSet& set, size_t reader) const;
  void free_unused();

  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<TableSet>> sets_;  // oldest first; the last one is in force
  std::vector<Reader> readers_;
  std::atomic<const TableSet*> current_{nullptr};
};

}  // namespace shredway
