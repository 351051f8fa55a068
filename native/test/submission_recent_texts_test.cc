#include "submission/recent_texts.h"

#include <string>
#include <unordered_map>

#include "check.h"

namespace {

using namespace shredway;

// As long as a signature.
std::string recent_text(size_t number) {
  std::string text = std::to_string(number);
  return text + std::string(88 - text.size(), 'x');
}

}  // namespace

TEST(submission_recent_texts_adds_each_text_once) {
  RecentTexts recent;
  for (size_t i = 0; i < 1000; i++) {
    CHECK(!recent.contains(recent_text(i)));
    CHECK(recent.add(recent_text(i)));
    CHECK(recent.contains(recent_text(i)));
    CHECK(!recent.add(recent_text(i)));
    CHECK(recent.contains(recent_text(i)));
  }
  for (size_t i = 0; i < 1000; i++) CHECK(!recent.add(recent_text(i)));
  CHECK(!recent.contains(recent_text(1000)));
}

TEST(submission_recent_texts_distinguishes_texts_of_all_lengths) {
  RecentTexts recent;
  for (size_t length = 0; length <= 88; length++) {
    CHECK(recent.add(std::string(length, '1')));
    CHECK(recent.contains(std::string(length, '1')));
  }
  CHECK(!recent.contains(std::string(87, '1') + '2'));
  // Only the beginning of longer texts counts.
  CHECK(recent.add(std::string(96, '3')));
  CHECK(recent.contains(std::string(500, '3')));
}

TEST(submission_recent_texts_does_not_remember_for_another) {
  RecentTexts first, second;
  CHECK(first.add("text"));
  CHECK(!second.contains("text"));
  CHECK(second.add("text"));
}

// The oldest of the last kGenerationMax texts is known at any time, and a text of three times that
// age is forgotten.
TEST(submission_recent_texts_keeps_the_last_ones_and_is_bounded) {
  constexpr size_t kLast = RecentTexts::kGenerationMax;
  RecentTexts recent;
  for (size_t i = 0; i < 4 * kLast; i++) {
    CHECK(recent.add(recent_text(i)));
    if (i + 1 >= kLast && i % 61 == 0) CHECK(recent.contains(recent_text(i + 1 - kLast)));
  }
  for (size_t i = 0; i < kLast; i++) CHECK(recent.contains(recent_text(4 * kLast - 1 - i)));
  size_t known = 0;
  for (size_t i = 0; i < 4 * kLast; i++) known += recent.contains(recent_text(i));
  CHECK(known <= 2 * kLast);
  for (size_t i = 0; i < kLast; i += 61) CHECK(recent.add(recent_text(i)));
}

// A text that comes again and again stays known: each time counts as the last.
TEST(submission_recent_texts_keeps_what_comes_again) {
  constexpr size_t kLast = RecentTexts::kGenerationMax;
  RecentTexts recent;
  std::unordered_map<size_t, size_t> last_added;
  for (size_t i = 0; i < 5 * kLast; i++) {
    CHECK(recent.add(recent_text(i)));
    const size_t common = 100'000'000 + i % 7 * (i % 3);
    const auto known = last_added.find(common);
    CHECK_EQ(recent.add(recent_text(common)), known == last_added.end());
    last_added[common] = i;
    // Four times in each generation.
    if (i % (kLast / 4) == 0) CHECK_EQ(recent.add(recent_text(200'000'000)), i == 0);
  }
}
