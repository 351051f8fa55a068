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

TEST(slot_window_moves_forward_when_several_leaders_are_ahead_in_spite_of_replays) {
  SlotWindow window = anchored_at(10'000);
  uint64_t now_ns = kNow_ns;
  uint32_t moved = 0;
  for (uint64_t slot = 90'000; slot < 90'100 && !moved; slot++) {  // four slots per leader
    for (int i = 0; i < 40 && !moved; i++, now_ns += 10'000'000) {
      if (i == 0) CHECK(!window.record(10'001, now_ns));  // a replayed shred holds the window
      CHECK(window.place_of(slot, now_ns) == Place::ahead);
      CHECK(window.samples_ahead(now_ns));
      CHECK(!window.samples_ahead(now_ns + SlotWindow::kAheadInterval_ns - 1));
      if (window.record_ahead(slot, slot / 4, now_ns)) moved++;
    }
  }
  CHECK_EQ(moved, 1u);
  CHECK_EQ(window.highest(), 90'008u);  // the first slot of the third leader
  CHECK(window.place_of(10'001, now_ns) == Place::behind);
}

TEST(slot_window_one_leader_or_two_ahead_do_not_move_it) {
  for (const uint64_t leaders : {1u, 2u}) {
    SlotWindow window = anchored_at(10'000);
    for (uint64_t i = 0; i < 10'000; i++)
      CHECK(!window.record_ahead(90'000 + i % 100, i % leaders, kNow_ns + i * 10'000'000));
    CHECK_EQ(window.highest(), 10'000u);
  }
}

TEST(slot_window_leaders_far_apart_or_long_ago_do_not_agree) {
  SlotWindow window = anchored_at(10'000);
  for (uint64_t i = 0; i < 3000; i++)
    CHECK(!window.record_ahead(90'000 + i % 3 * 1000, i % 3, kNow_ns + i * 10'000'000));
  window = anchored_at(10'000);
  const auto within_ns = static_cast<uint64_t>(SlotWindow::kAheadWithin_ns);
  for (uint64_t i = 0; i < 300; i++)
    CHECK(!window.record_ahead(90'000, i / 100, kNow_ns + i / 100 * (within_ns + 1)));
}

TEST(slot_window_a_leader_who_spams_ahead_does_not_displace_the_others) {
  SlotWindow window = anchored_at(10'000);
  bool moved = false;
  for (uint64_t i = 0; i < 2000 && !moved; i++) {
    const uint64_t now_ns = kNow_ns + i * 10'000'000;
    window.record_ahead(5'000'000 + i * 1000, 77, now_ns);
    moved = window.record_ahead(90'000 + i / 40, i / 160, now_ns);
  }
  CHECK(moved);
  CHECK(window.highest() >= 90'008 && window.highest() < 90'012);
}

TEST(slot_window_without_its_anchor_waits_for_votes) {
  SlotWindow window = anchored_at(10'000);
  window.forget();
  CHECK(window.place_of(90'000, kNow_ns) == Place::unanchored);
  for (uint32_t i = 0; i < SlotWindow::kVotesToAnchor; i++) window.record(90'000, kNow_ns);
  CHECK_EQ(window.highest(), 90'000u);
}
