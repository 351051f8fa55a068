#include "relay/slot_window.h"

#include <algorithm>

namespace shredway {
namespace {

constexpr uint64_t kBehind = SlotWindow::kSlots - 1 - SlotWindow::kAhead;

bool within(uint64_t slot, uint64_t highest) {
  return slot > highest ? slot - highest <= SlotWindow::kAhead : highest - slot <= kBehind;
}

}  // namespace

SlotWindow::Place SlotWindow::place_of(uint64_t slot, uint64_t now_ns) const {
  if (!anchored_) return Place::unanchored;
  if (within(slot, highest_)) return Place::inside;
  // Signed: packet times may step back with the wall clock; that must not count as a long silence.
  const auto silence_ns = static_cast<int64_t>(now_ns - last_inside_ns_);
  if (slot > highest_) return silence_ns > kStalledAfter_ns ? Place::unanchored : Place::ahead;
  return silence_ns > kStalledBackwardAfter_ns ? Place::unanchored : Place::behind;
}

bool SlotWindow::record(uint64_t slot, uint64_t now_ns) {
  if (anchored_ && within(slot, highest_)) {
    if (slot > highest_) highest_ += std::min(slot - highest_, kStepMax);
    last_inside_ns_ = now_ns;
    if (votes_ > 0) votes_--;
    return false;
  }
  if (!vote(slot)) return false;
  anchor_at(candidate_, now_ns);
  return true;
}

void SlotWindow::anchor_at(uint64_t slot, uint64_t now_ns) {
  anchored_ = true;
  highest_ = slot;
  last_inside_ns_ = now_ns;
  votes_ = 0;
  ahead_ = {};
}

void SlotWindow::forget() {
  anchored_ = false;
  votes_ = 0;
  ahead_ = {};
}

// Boyer–Moore majority vote in constant memory: a slot near the candidate votes for it, any other
// slot votes against it, and at zero votes the next slot becomes the candidate.
bool SlotWindow::vote(uint64_t slot) {
  if (votes_ == 0) {
    candidate_ = slot;
    votes_ = 1;
  } else if (within(slot, candidate_)) {
    candidate_ = std::max(candidate_, slot);
    votes_++;
  } else {
    votes_--;
  }
  return votes_ >= kVotesToAnchor;
}

// ---- evidence ahead of the window ------------------------------------------------------------

bool SlotWindow::samples_ahead(uint64_t now_ns) {
  const auto since_ns = static_cast<int64_t>(now_ns - last_sample_ns_);
  if (since_ns >= 0 && since_ns < kAheadInterval_ns) return false;
  last_sample_ns_ = now_ns;
  return true;
}

bool SlotWindow::record_ahead(uint64_t slot, uint64_t leader, uint64_t now_ns) {
  LeaderAhead& own = ahead_of(leader);
  if (own.votes == 0 || !within(own.slot, slot)) own = {leader, slot, now_ns, 0};
  own.slot = std::max(own.slot, slot);
  own.last_ns = now_ns;
  own.votes++;
  uint64_t highest = 0;
  uint32_t leaders = 0, votes = 0;
  for (const LeaderAhead& one : ahead_) {
    const auto age_ns = static_cast<int64_t>(now_ns - one.last_ns);
    const uint64_t distance = one.slot > slot ? one.slot - slot : slot - one.slot;
    if (one.votes == 0 || age_ns > kAheadWithin_ns || distance > kAhead) continue;
    highest = std::max(highest, one.slot);
    leaders++;
    votes += one.votes;
  }
  if (leaders < kAheadLeaders || votes < kVotesToAnchor) return false;
  anchor_at(highest, now_ns);
  return true;
}

// Entry of the leader, or the entry that has not been used for the longest time.
SlotWindow::LeaderAhead& SlotWindow::ahead_of(uint64_t leader) {
  LeaderAhead* oldest = &ahead_[0];
  for (LeaderAhead& one : ahead_) {
    if (one.votes > 0 && one.leader == leader) return one;
    if (one.votes == 0 || (oldest->votes > 0 && one.last_ns < oldest->last_ns)) oldest = &one;
  }
  *oldest = {};
  return *oldest;
}

}  // namespace shredway
