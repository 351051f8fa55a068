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
    votes_ = 0;
    return false;
  }
  if (!vote(slot)) return false;
  anchored_ = true;
  highest_ = candidate_;
  last_inside_ns_ = now_ns;
  votes_ = 0;
  return true;
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

}  // namespace shredway
