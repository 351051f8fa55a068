// Offers of the QUIC process on the fast path.
#include <random>

#include "fast_path_support.h"
#include "system/offer_channel.h"

namespace shredway::test {
namespace {

constexpr uint64_t kSource = 9;

class OfferLab : public FastPathLab {
 public:
  OfferLab() {
    open();
    path->watch_offers(kSource, kLabKey, kForever);
  }
  ~OfferLab() {
    if (process >= 0) close(process);
  }
  OfferLab(const OfferLab&) = delete;
  OfferLab& operator=(const OfferLab&) = delete;

  void open() {
    const auto fd = path->open_offers();
    CHECK(fd.has_value());
    process = fd.value_or(-1);
  }
  // Writes as the process; returns the number.
  uint64_t offer(const Bytes& transaction, uint64_t source = kSource) {
    CHECK(write_offer(process, {++sequence, source}, transaction));
    return sequence;
  }
  // Waits until the thread has handled every offer. An offer whose number is not ascending counts
  // as late; it is the last one.
  void wait_for_offers() {
    const uint64_t before = path->counts().late;
    CHECK(write_offer(process, {0, kSource}, {}));
    CHECK(wait_until([&] { return path->counts().late > before; }));
  }
  void check_sent(const Bytes& transaction) {
    const uint64_t number = offer(transaction);
    CHECK(wait_until([&] { return path->is_offer_taken(number); }));
    const auto claim = path->claim_offer(number, transaction);
    CHECK(claim && claim->is_same && claim->taken.send_count == 1);
    if (!claim) return;
    const TakenRequest& taken = claim->taken;
    CHECK_EQ(std::string(taken.signature.data(), taken.signature_length),
             signature_of(transaction));
    const std::string request = partner_request(lab_route(), taken.sends[0].id, transaction);
    CHECK(receive_text(partner.far, request.size()) == request);
    CHECK(!path->claim_offer(number, transaction));
    path->lend_again(loan, kForever);
  }
  void check_left(const Bytes& transaction, uint64_t source = kSource) {
    const uint64_t number = offer(transaction, source);
    wait_for_offers();
    CHECK(!path->is_offer_taken(number));
    CHECK(!path->claim_offer(number, transaction));
    CHECK_EQ(receive_now(partner.far), "");
  }

  int process = -1;
  uint64_t sequence = 0;
};

TEST(submission_fast_path_offers_are_sent_once) {
  OfferLab lab;
  lab.check_sent(tip_transaction(1));
  lab.check_left(tip_transaction(1));
  lab.check_sent(tip_transaction(2, kLabTip, false, TransactionVersion::v0));
  lab.path->note(signature_of(tip_transaction(3)));
  lab.check_left(tip_transaction(3));
  CHECK(!lab.path->send_now(tip_transaction(1)));
  CHECK_EQ(lab.path->counts().taken, 2u);
  CHECK_EQ(lab.path->counts().rejected, 2u);
  CHECK_EQ(lab.path->counts().unclaimed, 0u);
}

TEST(submission_fast_path_offers_of_other_connections_are_left) {
  OfferLab lab;
  lab.check_left(tip_transaction(1), kSource + 1);
  lab.path->watch_offers(kSource, kLabKey, clock_ns(CLOCK_MONOTONIC));
  lab.check_left(tip_transaction(1));
  lab.path->watch_offers(kSource, kLabKey, kForever);
  lab.check_sent(tip_transaction(1));
  lab.path->forget_offers(kSource);
  lab.check_left(tip_transaction(2));
  lab.path->watch_offers(kSource, kLabKey, kForever);
  lab.path->forget_all();
  lab.check_left(tip_transaction(2));
}

TEST(submission_fast_path_offers_obey_the_limit_of_the_key) {
  OfferLab lab;
  lab.path->allow(kLabKey, 1);
  lab.check_sent(tip_transaction(1));
  lab.check_left(tip_transaction(2));
  lab.path->watch_offers(kSource, kLabKey + 1, kForever);  // a key without a limit yet
  lab.check_left(tip_transaction(2));
  lab.path->allow(kLabKey + 1, 1);
  lab.check_sent(tip_transaction(2));
}

TEST(submission_fast_path_offers_that_are_invalid_are_left) {
  OfferLab lab;
  const Bytes fine = tip_transaction(1);
  for (size_t at = 0; at < fine.size(); at += 7) {
    Bytes bytes = fine;
    bytes[at] ^= 1;
    lab.check_left(bytes);
    lab.check_left(Bytes(fine.begin(), fine.begin() + static_cast<long>(at)));
  }
  lab.check_left(tip_transaction(2, 999));
  lab.check_left(tip_transaction(2, kLabTip, true));
  lab.check_left(Bytes(5000, 1));
  lab.path->set_rules(nullptr, 0);
  lab.check_left(fine);
  lab.path->set_rules(lab_inspector(), 1000);
  lab.check_sent(fine);
}

TEST(submission_fast_path_offers_claimed_before_are_left) {
  OfferLab lab;
  CHECK(!lab.path->claim_offer(1, {}));
  lab.offer(tip_transaction(1));
  CHECK(write_offer(lab.process, {0, kSource}, {}));
  CHECK(wait_until([&] { return lab.path->counts().late == 2; }));
  CHECK_EQ(receive_now(lab.partner.far), "");
  lab.check_sent(tip_transaction(2));
}

TEST(submission_fast_path_offers_are_compared_with_what_is_claimed) {
  OfferLab lab;
  const Bytes fine = tip_transaction(1);
  const uint64_t number = lab.offer(fine);
  CHECK(wait_until([&] { return lab.path->is_offer_taken(number); }));
  Bytes other = fine;
  other.back() ^= 1;
  const auto claim = lab.path->claim_offer(number, other);
  CHECK(claim && !claim->is_same && claim->taken.send_count == 1);
}

TEST(submission_fast_path_offers_not_claimed_are_bounded_and_returned_at_the_end) {
  OfferLab lab;
  std::vector<std::unique_ptr<TcpPair>> partners;
  for (uint32_t i = 0; i < kFastPathUnclaimedMax + 8; i++) {
    partners.push_back(std::make_unique<TcpPair>());
    CHECK(lab.path->lend(0, partners.back()->near, kForever).has_value());
    lab.offer(tip_transaction(i));
  }
  lab.wait_for_offers();
  CHECK_EQ(lab.path->counts().unclaimed, kFastPathUnclaimedMax);
  CHECK(lab.path->claim_offer(3, {}).has_value());
  uint32_t left = 0;
  while (lab.path->end_offers()) left++;
  CHECK_EQ(left, kFastPathUnclaimedMax - 1);
  CHECK_EQ(lab.path->counts().unclaimed, 0u);
  // Everything is as at the start for the next process.
  CHECK(!write_offer(lab.process, {1, kSource}, tip_transaction(100)));
  close(lab.process);
  lab.open();
  lab.sequence = 0;
  lab.check_left(tip_transaction(100));
  lab.path->watch_offers(kSource, kLabKey, kForever);
  const uint64_t number = lab.offer(tip_transaction(100));
  CHECK(wait_until([&] { return lab.path->is_offer_taken(number); }));
}

TEST(submission_fast_path_survives_the_end_of_the_process) {
  OfferLab lab;
  lab.check_sent(tip_transaction(1));
  const uint64_t number = lab.offer(tip_transaction(2));
  close(lab.process);
  CHECK(wait_until([&] { return lab.path->is_offer_taken(number); }));
  CHECK(!lab.path->open_offers());  // the previous channel has not ended
  CHECK(lab.path->end_offers().has_value());
  CHECK(!lab.path->end_offers());
  lab.open();
  lab.path->stop();
}

// The process writes, JavaScript claims at any time and the process ends at any time: each
// transaction is sent once or left, and each send is reported once.
TEST(submission_fast_path_offers_report_every_send_whenever_they_are_claimed) {
  OfferLab lab;
  std::mt19937_64 random(3);
  uint64_t transaction = 0, sent = 0, left = 0;
  for (int life = 0; life < 20; life++) {
    std::vector<uint64_t> numbers;
    // At least one is sent and one is left in each life, on any machine.
    const uint64_t first = lab.offer(tip_transaction(++transaction));
    CHECK(wait_until([&] { return lab.path->is_offer_taken(first); }));
    CHECK(lab.path->claim_offer(first, {}).has_value());
    lab.path->lend_again(lab.loan, kForever);
    CHECK(!lab.path->claim_offer(first + 1, {}));
    lab.offer(tip_transaction(++transaction));
    sent++;
    left++;
    for (int i = 0; i < 100; i++) {
      if (random() % 3 > 0) numbers.push_back(lab.offer(tip_transaction(++transaction)));
      if (random() % 8 == 0) usleep(static_cast<useconds_t>(random() % 200));
      if (numbers.empty() || random() % 2 == 0) continue;
      const size_t place = random() % numbers.size();
      const auto claim = lab.path->claim_offer(numbers[place], {});
      numbers.erase(numbers.begin() + static_cast<long>(place));
      if (claim) lab.path->lend_again(claim->taken.sends[0].loan, kForever);
      (claim ? sent : left)++;
    }
    if (life % 2 == 0) lab.wait_for_offers();
    left += numbers.size();
    while (const auto taken = lab.path->end_offers()) {
      lab.path->lend_again(taken->sends[0].loan, kForever);
      sent++;
      left--;
    }
    CHECK_EQ(lab.path->counts().unclaimed, 0u);
    close(lab.process);
    lab.open();
    lab.sequence = 0;
    lab.path->watch_offers(kSource, kLabKey, kForever);
  }
  CHECK_EQ(sent, lab.path->counts().taken);
  CHECK_EQ(sent + left, transaction);
  std::string text, more;
  while (!(more = receive_now(lab.partner.far)).empty()) text += more;
  uint64_t arrived = 0;
  for (size_t at = 0; (at = text.find("POST /send", at)) != std::string::npos; at++) arrived++;
  CHECK_EQ(arrived, sent);
}

}  // namespace
}  // namespace shredway::test
