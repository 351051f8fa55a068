// Tables in force: one pointer to one immutable set, swapped while traffic runs.
//
// The control plane publishes; each worker takes the current set at the edge of a batch, keeps it
// for the batch, and says which generation it has reached. A set is freed when every worker has
// reached a later one, so no worker ever waits and no table changes under a batch.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "clone/clone.h"
#include "relay/fanout_table.h"
#include "relay/source_table.h"
#include "shred/leader_table.h"

namespace shredway {

struct TableSet {
  std::shared_ptr<const SourceTable> sources;
  std::shared_ptr<const FanoutTable> fanout;
  std::shared_ptr<const LeaderTable> leaders;
  std::shared_ptr<const NextHops> next_hops;  // nullptr: everybody by socket
  uint64_t generation = 0;
};

// A worker's side: what it has reached.
class TableReader {
 public:
  explicit TableReader(const std::atomic<const TableSet*>& current) : current_(current) {}
  // The set to use until the next call. Worker's thread.
  const TableSet& acquire() {
    const TableSet* set = current_.load(std::memory_order_acquire);
    reached_.store(set->generation, std::memory_order_release);
    return *set;
  }
  uint64_t reached() const { return reached_.load(std::memory_order_acquire); }

 private:
  const std::atomic<const TableSet*>& current_;
  std::atomic<uint64_t> reached_{0};
};

// The control plane's side. Any thread; calls are serialised.
class Tables {
 public:
  explicit Tables(TableSet initial) {
    sets_.push_back(std::make_unique<const TableSet>(std::move(initial)));
    current_.store(sets_.back().get(), std::memory_order_release);
  }
  const std::atomic<const TableSet*>& current() const { return current_; }
  // Every reader must be known before the first publication that it may see replaced.
  void add_reader(const TableReader* reader) { readers_.push_back(reader); }

  // Swaps in a copy of the present set with one part replaced.
  template <typename Table>
  void replace(std::shared_ptr<const Table> TableSet::*part, std::shared_ptr<const Table> table) {
    const std::lock_guard lock(mutex_);
    TableSet next = *sets_.back();
    next.*part = std::move(table);
    next.generation++;
    sets_.push_back(std::make_unique<const TableSet>(std::move(next)));
    current_.store(sets_.back().get(), std::memory_order_release);
    free_unused();
  }
  // Of the set in force.
  uint64_t generation() const {
    const std::lock_guard lock(mutex_);
    return sets_.back()->generation;
  }
  // How many sets are still kept (tests).
  size_t kept() const { return sets_.size(); }

 private:
  void free_unused() {
    uint64_t reached = sets_.back()->generation;
    for (const TableReader* reader : readers_) reached = std::min(reached, reader->reached());
    while (sets_.size() > 1 && sets_.front()->generation < reached) sets_.pop_front();
  }

  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<const TableSet>> sets_;  // oldest first, the last one is current
  std::vector<const TableReader*> readers_;
  std::atomic<const TableSet*> current_{nullptr};
};

}  // namespace shredway
