#include "relay/tables.h"

#include <algorithm>

namespace shredway {

Tables::Tables(TableSet initial) {
  sets_.push_back(std::make_unique<TableSet>(std::move(initial)));
  current_.store(sets_.back().get(), std::memory_order_release);
}

// Adds the new reader's lists to the set in force, at an index that no other thread reads.
void Tables::add_reader(TableReader* reader, const TargetRules& rules) {
  const std::lock_guard lock(mutex_);
  reader->number_ = readers_.size();
  readers_.push_back({reader, rules});
  build_targets(*sets_.back(), reader->number_);
}

void Tables::publish(TableSet next, bool targets_changed) {
  next.generation++;
  for (size_t i = 0; i < readers_.size() && targets_changed; i++) build_targets(next, i);
  sets_.push_back(std::make_unique<TableSet>(std::move(next)));
  current_.store(sets_.back().get(), std::memory_order_release);
  free_unused();
}

// Readers with the same rules share their lists.
void Tables::build_targets(TableSet& set, size_t reader) const {
  const TargetRules& rules = readers_[reader].rules;
  const auto alike = std::find_if(readers_.begin(), readers_.end(),
                                  [&](const Reader& other) { return other.rules == rules; });
  const auto first = static_cast<size_t>(alike - readers_.begin());
  set.targets[reader] = first < reader ? set.targets[first]
                                       : std::make_shared<const TargetLists>(
                                             set.fanout.get(), set.next_hops.get(), rules);
}

void Tables::free_unused() {
  uint64_t reached = sets_.back()->generation;
  for (const Reader& each : readers_) reached = std::min(reached, each.reader->reached());
  while (sets_.size() > 1 && sets_.front()->generation < reached) sets_.pop_front();
}

}  // namespace shredway
