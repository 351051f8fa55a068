// Offers: claims in any order, beside a model.
#include "submission/offers.h"

#include <map>
#include <random>
#include <set>

#include "check.h"
#include "support.h"
#include "system/offer_channel.h"

namespace shredway::test {
namespace {

TakenRequest request_of(uint64_t sequence) {
  TakenRequest request{};
  request.taken_ns = sequence;
  request.send_count = 1;
  return request;
}

// Sends the offer, without a claim meanwhile.
bool send(Offers& offers, uint64_t sequence) {
  if (!offers.begin(sequence, 1)) return false;
  offers.begin_to_send();
  offers.end_sent(7, request_of(sequence));
  return true;
}

TEST(submission_offers_are_claimed_once) {
  Offers offers;
  CHECK(send(offers, 1));
  CHECK(send(offers, 2));
  CHECK(offers.is_taken(1) && offers.is_taken(2) && !offers.is_taken(3));
  const auto claim = offers.claim(2);
  CHECK(claim.taken && claim.taken->key == 7 && claim.taken->request.taken_ns == 2);
  CHECK(!offers.claim(2).taken && !offers.is_taken(2) && offers.is_taken(1));
  CHECK(offers.claim(1).taken.has_value());
}

TEST(submission_offers_claimed_before_they_are_read_are_not_sent) {
  Offers offers;
  CHECK(!offers.claim(2).taken);
  CHECK(send(offers, 1));
  CHECK(!send(offers, 2));
  CHECK(send(offers, 3));
  CHECK(!send(offers, 3));
  CHECK(!send(offers, 2));
}

TEST(submission_offers_claimed_or_forgotten_while_they_are_checked_are_not_sent) {
  Offers offers;
  offers.watch(5, {1, 100});
  CHECK(offers.begin(1, 5));
  const auto claim = offers.claim(1);
  CHECK(!claim.taken && claim.was_checked && !offers.is_checking());
  CHECK(offers.begin(2, 5));
  offers.forget(4);
  CHECK(offers.is_checking());
  offers.forget(5);
  CHECK(!offers.is_checking() && !offers.find(5));
  CHECK(offers.begin(3, 4));
  offers.forget_all();
  CHECK(!offers.is_checking());
  CHECK(!offers.claim(3).was_checked);
}

TEST(submission_offers_left_at_the_end_are_returned_once) {
  Offers offers;
  offers.watch(5, {1, 100});
  CHECK(send(offers, 1) && send(offers, 2));
  CHECK(!offers.claim(9).taken);
  std::set<uint64_t> left;
  while (const auto each = offers.take_left()) left.insert(each->sequence);
  CHECK((left == std::set<uint64_t>{1, 2}));
  CHECK(!offers.find(5));
  // The next process begins again, and may use the number that was claimed before.
  for (uint64_t sequence = 1; sequence <= 9; sequence++) CHECK(send(offers, sequence));
}

TEST(submission_offers_bound_the_memory_of_claims) {
  Offers offers;
  for (uint64_t i = 1; i <= Offers::kEarlyMax; i++) CHECK(!offers.claim(10 * i).taken);
  CHECK(!send(offers, 10));
  CHECK(send(offers, 11));
  CHECK(!offers.claim(5).taken);
  for (const uint64_t sequence : {100'000u, 100'001u}) CHECK(!offers.claim(sequence).taken);
  for (const uint64_t sequence : {20u, 21u, 99'999u, 100'001u}) CHECK(!send(offers, sequence));
  CHECK(send(offers, 100'002));
}

TEST(submission_offers_match_a_model) {
  std::mt19937_64 random(1);
  Offers offers;
  std::map<uint64_t, bool> sent;  // whether it may still be claimed
  std::set<uint64_t> claimed;
  uint64_t next = 1;
  for (int step = 0; step < 100'000; step++) {
    const uint64_t sequence = next + random() % 12 - std::min<uint64_t>(next - 1, 6);
    if (random() % 2 == 0) {
      const auto claim = offers.claim(sequence);
      CHECK_EQ(claim.taken.has_value(), sent.contains(sequence) && sent[sequence]);
      if (claim.taken) CHECK_EQ(claim.taken->request.taken_ns, sequence);
      sent[sequence] = false;
      claimed.insert(sequence);
    } else {
      if (random() % 4 == 0) next++;  // an offer that found no space
      const bool is_sent = send(offers, next);
      CHECK_EQ(is_sent, !claimed.contains(next));
      sent[next] = is_sent;
      next++;
    }
  }
}

TEST(submission_offer_channel_keeps_the_borders_of_messages) {
  const auto channel = open_offer_channel();
  CHECK(channel.has_value());
  if (!channel) return;
  std::mt19937_64 random(2);
  OfferHead head{};
  std::vector<uint8_t> memory(4096);
  size_t length = 0;
  CHECK(read_offer(channel->fast_path, head, memory, length) == OfferRead::nothing);
  for (uint64_t i = 1; i < 500; i++) {
    std::vector<uint8_t> bytes(random() % 4097);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    CHECK(write_offer(channel->process, {i, i * 1'000'000'007}, bytes));
    CHECK(read_offer(channel->fast_path, head, memory, length) == OfferRead::offer);
    CHECK(head.sequence == i && head.connection == i * 1'000'000'007 && length == bytes.size());
    CHECK(std::equal(bytes.begin(), bytes.end(), memory.begin()));
  }
  CHECK(write_offer(channel->process, {500, 1}, std::vector<uint8_t>(4097)));
  CHECK(read_offer(channel->fast_path, head, memory, length) == OfferRead::offer);
  CHECK(head.sequence == 500 && length == 0);
  close(channel->process);
  CHECK(read_offer(channel->fast_path, head, memory, length) == OfferRead::ended);
  close(channel->fast_path);
}

TEST(submission_offer_channel_never_waits) {
  const auto channel = open_offer_channel();
  CHECK(channel.has_value());
  if (!channel) return;
  const std::vector<uint8_t> bytes(1232);
  uint64_t written = 0;
  while (write_offer(channel->process, {written + 1, 1}, bytes)) written++;
  CHECK(written > 10);
  OfferHead head{};
  std::vector<uint8_t> memory(4096);
  size_t length = 0;
  for (uint64_t i = 1; i <= written; i++) {
    CHECK(read_offer(channel->fast_path, head, memory, length) == OfferRead::offer);
    CHECK_EQ(head.sequence, i);
  }
  CHECK(read_offer(channel->fast_path, head, memory, length) == OfferRead::nothing);
  close(channel->fast_path);
  CHECK(!write_offer(channel->process, {1, 1}, bytes));
  close(channel->process);
}

}  // namespace
}  // namespace shredway::test
