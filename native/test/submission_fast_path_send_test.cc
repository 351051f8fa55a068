// Transactions that JavaScript's thread sends by the fast path.
#include "fast_path_support.h"

namespace shredway::test {
namespace {

// No sends: it was not sent.
TakenRequest send_now(FastPathLab& lab, const Bytes& transaction) {
  return lab.path->send_now(transaction).value_or(TakenRequest{});
}

// The transaction leaves once, by the lab's loan, which is then free again.
void check_sent_now(FastPathLab& lab, const Bytes& transaction) {
  const uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
  const TakenRequest taken = send_now(lab, transaction);
  CHECK_EQ(taken.send_count, 1u);
  if (taken.send_count != 1) return;
  CHECK_EQ(std::string(taken.signature.data(), taken.signature_length), signature_of(transaction));
  const FastSend& send = taken.sends[0];
  CHECK(send.route == 0 && send.loan == lab.loan);
  CHECK(before_ns <= taken.taken_ns && taken.taken_ns <= send.sent_ns);
  const std::string request = partner_request(lab_route(), send.id, transaction);
  CHECK(receive_text(lab.partner.far, request.size()) == request);
  CHECK_EQ(receive_now(lab.partner.far), "");
  lab.path->lend_again(lab.loan, kForever);
}

void check_not_sent_now(FastPathLab& lab, const Bytes& transaction) {
  CHECK_EQ(send_now(lab, transaction).send_count, 0u);
  CHECK_EQ(receive_now(lab.partner.far), "");
}

TEST(submission_fast_path_send_now_sends_each_transaction_once) {
  FastPathLab lab;
  check_sent_now(lab, tip_transaction(1));
  check_not_sent_now(lab, tip_transaction(1));
  lab.path->note(signature_of(tip_transaction(2)));
  check_not_sent_now(lab, tip_transaction(2));
  check_sent_now(lab, tip_transaction(3, kLabTip, false, TransactionVersion::v0));
  CHECK_EQ(lab.path->counts().direct, 2u);
  CHECK_EQ(lab.path->counts().taken, 0u);
  CHECK_EQ(lab.path->counts().unclaimed, 0u);
}

TEST(submission_fast_path_send_now_and_the_thread_know_each_other) {
  FastPathLab lab;
  check_sent_now(lab, tip_transaction(1));
  lab.check_left(lab_request(tip_transaction(1)));
  lab.check_sent(tip_transaction(2));
  check_not_sent_now(lab, tip_transaction(2));
  check_sent_now(lab, tip_transaction(3));
}

TEST(submission_fast_path_send_now_sends_no_invalid_transaction) {
  FastPathLab lab;
  const Bytes fine = tip_transaction(1);
  for (size_t at = 0; at < fine.size(); at++) {
    Bytes bytes = fine;
    bytes[at] ^= 1;
    check_not_sent_now(lab, bytes);
    check_not_sent_now(lab, Bytes(fine.begin(), fine.begin() + static_cast<long>(at)));
  }
  Bytes longer = fine;
  longer.push_back(0);
  check_not_sent_now(lab, longer);
  check_not_sent_now(lab, tip_transaction(2, 999));
  check_not_sent_now(lab, tip_transaction(2, kLabTip, true));
  check_sent_now(lab, fine);
}

TEST(submission_fast_path_send_now_sends_on_every_route_that_fits) {
  FastPathLab lab;
  TcpPair second, dear;
  const Bytes transaction = tip_transaction(1);
  CHECK(lab.path->set_route(1, lab_route("second")));
  FastRoute route = lab_route("dear");
  route.minimum_tip = kLabTip + 1;
  CHECK(lab.path->set_route(2, route));
  for (const auto& [number, pair] : {std::pair{1u, &second}, std::pair{2u, &dear}})
    CHECK(lab.path->lend(number, pair->near, kForever).has_value());
  const TakenRequest taken = send_now(lab, transaction);
  CHECK_EQ(taken.send_count, 2u);
  CHECK(taken.sends[0].route == 0 && taken.sends[1].route == 1);
  const std::string request = partner_request(lab_route("second"), taken.sends[1].id, transaction);
  CHECK(receive_text(second.far, request.size()) == request);
  CHECK_EQ(receive_now(dear.far), "");
}

TEST(submission_fast_path_send_now_needs_rules_a_free_connection_and_a_running_thread) {
  FastPathLab lab;
  lab.path->set_rules(nullptr, 0);
  check_not_sent_now(lab, tip_transaction(1));
  lab.path->set_rules(lab_inspector(), 1000);
  CHECK(lab.path->reclaim(lab.loan));
  check_not_sent_now(lab, tip_transaction(1));
  lab.path->lend_again(lab.loan, clock_ns(CLOCK_MONOTONIC));
  check_not_sent_now(lab, tip_transaction(1));
  CHECK(lab.path->reclaim(lab.loan));
  lab.path->lend_again(lab.loan, kForever);
  check_sent_now(lab, tip_transaction(1));
  lab.path->stop();
  check_not_sent_now(lab, tip_transaction(2));
}

TEST(submission_fast_path_send_now_reports_no_send_on_a_broken_connection) {
  FastPathLab lab;
  close(std::exchange(lab.partner.far, -1));
  const auto is_reset = [&] { return send(lab.partner.near, "x", 1, MSG_NOSIGNAL) < 0; };
  CHECK(wait_until(is_reset));
  CHECK_EQ(send_now(lab, tip_transaction(1)).send_count, 0u);
  // It is kept: JavaScript learns of its end by its own descriptor.
  CHECK(lab.path->reclaim(lab.loan));
}

}  // namespace
}  // namespace shredway::test
