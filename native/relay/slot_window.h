// Slot window: the range of slots that the relay accepts, and the rules that move it.
//
// The worker checks every packet against it and records every first arrival in it. Only
// authenticated shreds (with authentication off: recorded shreds) move it, each by a few slots, so
// that no single packet can move it far. Without an anchor (at the start and after a silence) every
// slot is accepted until most first arrivals agree on a range. A single absurd slot number among
// real ones never decides.
//
// Anyone can replay old shreds, which are authentic for ever, and so anchor the window in the past.
// Only leaders can sign shreds of later slots. The window therefore moves forward when shreds of
// several leaders are ahead of it, whatever arrives inside it. Never reads a clock.
#pragma once

#include <array>
#include <cstdint>

namespace shredway {

class SlotWindow {
 public:
  static constexpr uint64_t kSlots = 512;  // slots in the window and in RecentShreds
  static constexpr uint64_t kAhead = 128;  // slots beyond the highest known slot
  static constexpr uint64_t kStepMax = 8;  // slots by which one shred can move the window
  static constexpr uint32_t kVotesToAnchor = 32;
  // After this silence inside the window, slots beyond it, or before it, are accepted. The second
  // limit is longer, because anyone can replay old shreds and nobody can send future ones.
  static constexpr int64_t kStalledAfter_ns = 2'000'000'000;
  static constexpr int64_t kStalledBackwardAfter_ns = 30'000'000'000;
  // Shreds ahead of the window: one per interval is authenticated. The window moves to them when
  // shreds of this many leaders agree on a range within the time limit, with votes as above.
  static constexpr int64_t kAheadInterval_ns = 10'000'000;
  static constexpr uint32_t kAheadLeaders = 3;
  static constexpr int64_t kAheadWithin_ns = 30'000'000'000;

  enum class Place : uint8_t { inside, behind, ahead, unanchored };

  Place place_of(uint64_t slot, uint64_t now_ns) const;
  // Records a first arrival in this slot (place_of returned inside or unanchored). Returns true if
  // it anchored the window.
  bool record(uint64_t slot, uint64_t now_ns);
  // True if a shred that is ahead should be authenticated, as evidence: a bounded sample.
  bool samples_ahead(uint64_t now_ns);
  // Records an authenticated shred that is ahead, and its leader. Returns true if it moved the
  // window.
  bool record_ahead(uint64_t slot, uint64_t leader, uint64_t now_ns);
  // Removes the anchor: a trusted clock excludes it.
  void forget();
  bool anchored() const { return anchored_; }
  uint64_t highest() const { return highest_; }

 private:
  struct LeaderAhead {
    uint64_t leader, slot, last_ns;
    uint32_t votes;  // 0: unused
  };
  bool vote(uint64_t slot);
  void anchor_at(uint64_t slot, uint64_t now_ns);
  LeaderAhead& ahead_of(uint64_t leader);

  bool anchored_ = false;
  uint64_t highest_ = 0;
  uint64_t last_inside_ns_ = 0;
  uint64_t candidate_ = 0;
  uint32_t votes_ = 0;
  uint64_t last_sample_ns_ = 0;
  std::array<LeaderAhead, 8> ahead_{};  // the least recent one is replaced
};

}  // namespace shredway
