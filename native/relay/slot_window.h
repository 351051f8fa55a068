// Slot window: which slots the relay listens to at the moment, and what may move it.
//
// Asked by the worker for every packet, told by it of every first sight. Only shreds that were
// authenticated (or, with authentication off, recorded) move it, by a few slots each, so no
// single packet can. Without an anchor (at the start, and after a silence) every slot is let
// through, and the window settles where most first sights agree: one absurd slot number among real
// ones never decides. Never reads a clock.
#pragma once

#include <cstdint>

namespace shredway {

class SlotWindow {
 public:
  static constexpr uint64_t kSlots = 512;  // covered in all; also the memory of RecentShreds
  static constexpr uint64_t kAhead = 128;  // beyond the highest slot known
  static constexpr uint64_t kStepMax = 8;  // that one shred can move it
  static constexpr uint32_t kVotesToAnchor = 32;
  // Silence inside after which slots beyond the window are let through, and those before it. The
  // latter is longer, for old shreds can be sent again by anybody and future ones by nobody.
  static constexpr int64_t kStalledAfter_ns = 2'000'000'000;
  static constexpr int64_t kStalledBackwardAfter_ns = 30'000'000'000;

  enum class Place : uint8_t { inside, behind, ahead, unanchored };

  Place place_of(uint64_t slot, uint64_t now_ns) const;
  // A first sight in this slot (place_of said inside or unanchored). Returns true when the window
  // was anchored anew by it.
  bool note(uint64_t slot, uint64_t now_ns);
  bool anchored() const { return anchored_; }
  uint64_t highest() const { return highest_; }

 private:
  bool vote(uint64_t slot);

  bool anchored_ = false;
  uint64_t highest_ = 0;
  uint64_t last_inside_ns_ = 0;
  uint64_t candidate_ = 0;
  uint32_t votes_ = 0;
};

}  // namespace shredway
