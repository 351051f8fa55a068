// slot_window: the events that move the window, and those that do not.
#include "relay/slot_window.h"

#include "check.h"

using namespace shredway;

namespace {

constexpr uint64_t kNow_ns = 1'700'000'000'000'000'000;
using Place = SlotWindow::Place;

SlotWindow anchored_at(uint64_t slot) {
  SlotWindow window;
  for (uint32_t i = 0; i < SlotWindow::kVotesToAnchor; i++) window.record(slot, kNow_ns);
  return window;
}

}  // namespace

TEST(slot_window_anchors_where_first_arrivals_agree) {
  SlotWindow window;
  CHECK(window.place_of(5, kNow_ns) == Place::unanchored);
  uint32_t notes = 0;
  while (!window.anchored() && notes < 1000) window.record(1000 + notes++ / 10, kNow_ns);
  CHECK_EQ(notes, SlotWindow::kVotesToAnchor);
  CHECK_EQ(window.highest(), 1003u);
  CHECK(window.place_of(1003 + SlotWindow::kAhead, kNow_ns) == Place::inside);
  CHECK(window.place_of(1004 + SlotWindow::kAhead, kNow_ns) == Place::ahead);
  CHECK(window.place_of(1003 - 383, kNow_ns) == Place::inside);
  CHECK(window.place_of(1003 - 384, kNow_ns) == Place::behind);
}

TEST(slot_window_ignores_one_absurd_slot_at_the_start) {
  for (const uint64_t absurd : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 40}) {
    SlotWindow window;
    window.record(absurd, kNow_ns);
    for (int i = 0; i < 40; i++) window.record(500'000, kNow_ns);
    CHECK(window.anchored());
    CHECK_EQ(window.highest(), 500'000u);
  }
}

TEST(slot_window_ignores_a_minority_of_absurd_slots) {
  SlotWindow window;
  uint64_t random = 1;
  for (int i = 0; i < 400 && !window.anchored(); i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    window.record(i % 3 == 0 ? random : 900'000 + uint64_t(i) / 50, kNow_ns);
  }
  CHECK(window.anchored());
  CHECK(window.highest() >= 900'000 && window.highest() < 900'010);
}

TEST(slot_window_steps_are_bounded) {
  SlotWindow window = anchored_at(10'000);
  CHECK(!window.record(10'000 + SlotWindow::kAhead, kNow_ns));
  CHECK_EQ(window.highest(), 10'000 + SlotWindow::kStepMax);
  window.record(9'990, kNow_ns);
  CHECK_EQ(window.highest(), 10'000 + SlotWindow::kStepMax);
  // A real gap is still closed quickly.
  for (int i = 0; i < 20; i++) window.record(10'100, kNow_ns);
  CHECK_EQ(window.highest(), 10'100u);
}

TEST(slot_window_anchors_again_after_silence) {
  SlotWindow window = anchored_at(10'000);
  const uint64_t later_ns = kNow_ns + SlotWindow::kStalledAfter_ns + 1;
  CHECK(window.place_of(90'000, kNow_ns + 1000) == Place::ahead);
  CHECK(window.place_of(90'000, later_ns) == Place::unanchored);
  CHECK(window.place_of(10, later_ns) == Place::behind);
  CHECK(window.place_of(10, kNow_ns + SlotWindow::kStalledBackwardAfter_ns + 1) ==
        Place::unanchored);
  for (uint32_t i = 0; i + 1 < SlotWindow::kVotesToAnchor; i++)
    CHECK(!window.record(90'000, later_ns));
  CHECK_EQ(window.highest(), 10'000u);
  CHECK(window.record(90'000, later_ns));
  CHECK_EQ(window.highest(), 90'000u);
  CHECK(window.place_of(10'000, later_ns) == Place::behind);
}

TEST(slot_window_a_clock_that_steps_back_does_not_count_as_silence) {
  const SlotWindow window = anchored_at(10'000);
  CHECK(window.place_of(90'000, kNow_ns - 3'600'000'000'000) == Place::ahead);
}

TEST(slot_window_at_the_edges_of_u64) {
  SlotWindow window = anchored_at(~uint64_t{0});
  CHECK(window.place_of(~uint64_t{0}, kNow_ns) == Place::inside);
  CHECK(window.place_of(0, kNow_ns) == Place::behind);
  window = anchored_at(0);
  CHECK(window.place_of(0, kNow_ns) == Place::inside);
  CHECK(window.place_of(~uint64_t{0}, kNow_ns) == Place::ahead);
}
