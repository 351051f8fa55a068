#include "relay/key_preparer.h"

#include <algorithm>

#include "system/privileges.h"

namespace shredway {
namespace {

constexpr uint32_t kInterval_us = 100'000;

}  // namespace

std::unique_ptr<KeyPreparer> KeyPreparer::create(Tables& tables,
                                                 std::vector<const WorkerCounters*> workers) {
  return std::unique_ptr<KeyPreparer>(new KeyPreparer(tables, std::move(workers)));
}

std::unique_ptr<KeyPreparer> KeyPreparer::start(Tables& tables,
                                                std::vector<const WorkerCounters*> workers,
                                                std::string& error) {
  std::unique_ptr<KeyPreparer> preparer = create(tables, std::move(workers));
  error = preparer->thread_.start<&KeyPreparer::run>(preparer.get(), "shredway-keys");
  return error.empty() ? std::move(preparer) : nullptr;
}

KeyPreparer::~KeyPreparer() {
  stop_.stop();
  thread_.join();
}

void KeyPreparer::run() {
  drop_privileges_of_this_thread();
  yield_to_others();
  while (!stop_.wait_for_us(kInterval_us)) take_turn();
}

uint64_t KeyPreparer::highest_slot() const {
  uint64_t highest = 0;
  for (const WorkerCounters* worker : workers_)
    highest =
        std::max(highest, worker->worker[static_cast<size_t>(WorkerCounter::highest_slot)].get());
  return highest;
}

void KeyPreparer::take_turn() {
  const uint64_t slot = highest_slot();
  std::shared_ptr<const LeaderTable> leaders = tables_.latest(&TableSet::leaders);
  if (slot == 0 || (slot == slot_ && leaders == leaders_)) return;
  slot_ = slot;
  leaders_ = std::move(leaders);
  const uint64_t begin = slot - std::min(slot, kSlotsBehind);
  auto next = std::make_shared<PreparedKeys>();
  for (uint64_t each = begin; each - begin <= slot - begin + kSlotsAhead; each++)
    if (const VerifyingKey* leader = leaders_->leader_of(each))
      next->add(leader->bytes(), *prepared_);
  if (*next == *prepared_) return;
  prepared_ = std::move(next);
  tables_.replace(&TableSet::prepared_keys, prepared_);
}

}  // namespace shredway
