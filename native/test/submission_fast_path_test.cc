#include "submission/fast_path.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include "check.h"
#include "fast_path_support.h"

namespace {

using namespace shredway;
using namespace shredway::test;

std::string taken_signature(const TakenRequest& taken) {
  return {taken.signature.data(), taken.signature_length};
}
// Long enough for the thread to handle what arrived, if nothing can show it.
void give_time() { usleep(20'000); }

}  // namespace

// ---- what is sent ---------------------------------------------------------------------------

TEST(submission_fast_path_sends_a_repeated_request_once) {
  FastPathLab lab;
  const Bytes transaction = tip_transaction(1);
  const std::string request = lab_request(transaction);
  const uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
  lab.arm();
  lab.write(request);
  CHECK(wait_until([&] { return lab.path->counts().taken == 1; }));
  CHECK(lab.is_taken());
  CHECK_EQ(lab.path->counts().unclaimed, uint32_t{1});
  lab.arm();  // ignored until it is claimed
  // Every byte is still there for JavaScript.
  CHECK_EQ(lab.read(request.size()), request);
  const auto taken = lab.claim();
  CHECK(taken.has_value());
  if (!taken) return;
  CHECK_EQ(taken_signature(*taken), signature_of(transaction));
  CHECK_EQ(taken->send_count, uint32_t{1});
  const FastSend& sent = taken->sends[0];
  CHECK_EQ(sent.route, uint32_t{0});
  CHECK_EQ(sent.loan, lab.loan);
  CHECK_EQ(sent.wire_bytes, static_cast<uint32_t>(transaction.size()));
  CHECK(taken->wire == transaction);
  CHECK(begun_ns <= taken->taken_ns && taken->taken_ns <= sent.sent_ns);
  CHECK(sent.sent_ns <= clock_ns(CLOCK_MONOTONIC));
  const std::string expected = partner_request(lab_route(), sent.id, transaction);
  CHECK_EQ(receive_text(lab.partner.far, expected.size()), expected);
  // Once each.
  CHECK(!lab.claim());
  CHECK(!lab.is_taken());
  lab.wait_for_thread();
  CHECK_EQ(receive_now(lab.partner.far), "");
  CHECK_EQ(lab.path->counts().unclaimed, uint32_t{0});
  CHECK(!lab.path->reclaim(lab.loan));
}

TEST(submission_fast_path_names_sends_that_another_request_claims) {
  FastPathLab lab;
  const std::string request = lab_request(tip_transaction(1));
  lab.arm();
  lab.write(request);
  CHECK(wait_until([&] { return lab.path->counts().taken == 1; }));
  CHECK(lab.is_taken() && !lab.path->is_taken(lab.connection, lab.begin + 1));
  const auto claim = lab.path->claim(lab.connection, lab.begin + 1);
  CHECK(claim && !claim->is_same && claim->taken.send_count == 1);
  CHECK(!lab.claim());
}

TEST(submission_fast_path_sends_many_requests_of_a_connection) {
  FastPathLab lab;
  std::vector<uint32_t> ids;
  for (uint64_t i = 0; i < 50; i++) {
    const Bytes transaction = tip_transaction(i);
    lab.arm();
    const auto taken =
        lab.serve(lab_request(lab_body(base64_of(transaction), std::to_string(i * i))));
    CHECK(taken && taken->send_count == 1);
    if (!taken) return;
    ids.push_back(taken->sends[0].id);
    CHECK_EQ(receive_now(lab.partner.far), partner_request(lab_route(), ids.back(), transaction));
    lab.path->lend_again(lab.loan, kForever);
  }
  CHECK(std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end());
  CHECK_EQ(lab.path->counts().taken, uint64_t{50});
}

TEST(submission_fast_path_sends_a_request_that_arrives_in_parts) {
  FastPathLab lab;
  const Bytes transaction = tip_transaction(2);
  const std::string request = lab_request(transaction);
  const size_t head_bytes = request.find("\r\n\r\n") + 4;
  lab.arm();
  for (size_t at = 0; at < request.size();) {
    CHECK(!lab.is_taken());
    const size_t bytes = std::min(at == 0 ? head_bytes : size_t{97}, request.size() - at);
    lab.write(request.substr(at, bytes));
    lab.wait_for_thread();
    at += bytes;
  }
  CHECK(lab.is_taken());
  lab.read(request.size());
  const auto taken = lab.claim();
  CHECK(taken && taken->send_count == 1);
  if (taken)
    CHECK_EQ(receive_now(lab.partner.far),
             partner_request(lab_route(), taken->sends[0].id, transaction));
}

TEST(submission_fast_path_sends_base58_and_every_version) {
  FastPathLab lab;
  uint64_t number = 0;
  for (const TransactionVersion version : kVersions) {
    const Bytes transaction = tip_transaction(number++, kLabTip, false, version);
    CHECK(lab.learn(lab.connection));
    lab.check_sent(transaction);
  }
  const std::string options = "{\"skipPreflight\":true}";
  CHECK(lab.path->learn(lab.connection, lab_head("1"), lab_body("2g", "1", options),
                        TransactionTextEncoding::base58, kLabKey, kForever));
  const Bytes transaction = tip_transaction(number);
  lab.arm();
  const auto taken = lab.serve(lab_request(lab_body(base58_of(transaction), "1", options)));
  CHECK(taken && taken->send_count == 1);
  if (taken)  // partners always get base64
    CHECK_EQ(receive_now(lab.partner.far),
             partner_request(lab_route(), taken->sends[0].id, transaction));
}

TEST(submission_fast_path_sends_on_every_route_that_fits) {
  FastPathLab lab;
  const Bytes transaction = tip_transaction(3);
  TcpPair second, third, fourth, fifth;
  FastRoute expensive = lab_route("third"), small = lab_route("fourth");
  expensive.minimum_tip = kLabTip + 1;
  small.bytes_max = static_cast<uint32_t>(transaction.size()) - 1;
  CHECK(lab.path->set_route(1, lab_route("second")));
  CHECK(lab.path->set_route(2, expensive));
  CHECK(lab.path->set_route(3, small));
  const auto second_loan = lab.path->lend(1, second.near, kForever);
  CHECK(lab.path->lend(2, third.near, kForever).has_value());
  CHECK(lab.path->lend(3, fourth.near, kForever).has_value());
  // The most recently lent connection of a route is used.
  const auto newer_loan = lab.path->lend(0, fifth.near, kForever);
  lab.arm();
  const auto taken = lab.serve(lab_request(transaction));
  CHECK(taken && taken->send_count == 2);
  if (!taken) return;
  CHECK_EQ(taken->sends[0].route, uint32_t{0});
  CHECK_EQ(taken->sends[0].loan, *newer_loan);
  CHECK_EQ(taken->sends[1].route, uint32_t{1});
  CHECK_EQ(taken->sends[1].loan, *second_loan);
  CHECK_EQ(receive_now(fifth.far), partner_request(lab_route(), taken->sends[0].id, transaction));
  CHECK_EQ(receive_now(second.far),
           partner_request(lab_route("second"), taken->sends[1].id, transaction));
  for (const int fd : {lab.partner.far, third.far, fourth.far}) CHECK_EQ(receive_now(fd), "");
  CHECK(lab.path->reclaim(lab.loan));
  CHECK(!lab.path->set_route(kFastPathRoutesMax, lab_route()));
  CHECK(!lab.path->lend(kFastPathRoutesMax, fifth.near, kForever));
}

// ---- what is left to JavaScript -------------------------------------------------------------

TEST(submission_fast_path_sends_nothing_without_rules) {
  FastPathLab lab;
  lab.path->set_rules(nullptr, 0);
  const std::string request = lab_request(tip_transaction(1));
  lab.arm();
  lab.write(request);
  give_time();
  CHECK(!lab.claim());
  lab.read(request.size());
  lab.path->set_rules(lab_inspector(), 1000);
  lab.wait_for_thread();
  CHECK_EQ(receive_now(lab.partner.far), "");
  lab.check_sent(tip_transaction(1));
}

TEST(submission_fast_path_sends_nothing_unless_armed) {
  FastPathLab lab;
  const std::string request = lab_request(tip_transaction(1));
  CHECK(!lab.serve(request));
  lab.arm();
  CHECK(!lab.claim());  // a claim disarms
  CHECK(!lab.serve(request));
  // Arming covers one request.
  lab.check_sent(tip_transaction(2));
  CHECK(!lab.serve(request));
  CHECK_EQ(receive_now(lab.partner.far), "");
  lab.check_sent(tip_transaction(1));
}

TEST(submission_fast_path_sends_as_many_as_the_key_may) {
  FastPathLab lab;
  lab.path->allow(kLabKey, 0);
  lab.check_left(lab_request(tip_transaction(1)));
  lab.path->allow(kLabKey, 2);
  lab.check_sent(tip_transaction(1));
  lab.check_sent(tip_transaction(2));
  lab.check_left(lab_request(tip_transaction(3)));
  // Requests that are not claimed yet are deducted.
  lab.path->allow(kLabKey, 2);
  const std::string request = lab_request(tip_transaction(4));
  lab.arm();
  lab.write(request);
  lab.wait_for_thread();
  CHECK(lab.is_taken());
  lab.path->allow(kLabKey, 1);
  lab.read(request.size());
  CHECK(lab.claim().has_value());
  (void)receive_now(lab.partner.far);
  lab.path->lend_again(lab.loan, kForever);
  lab.check_left(lab_request(tip_transaction(5)));
  lab.path->allow(kLabKey, 1);
  lab.check_sent(tip_transaction(5));
  lab.path->allow(kFastPathKeysMax, 1);  // ignored
}

// The request counts for the key whose pattern it repeats, although another one was learned since.
TEST(submission_fast_path_charges_the_key_of_the_pattern) {
  FastPathLab lab;
  lab.path->allow(kLabKey, 1);
  const std::string request = lab_request(tip_transaction(1));
  lab.arm();
  lab.write(request);
  lab.wait_for_thread();
  CHECK(lab.path->learn(lab.connection, lab_head("9"), lab_body("AQID"),
                        TransactionTextEncoding::base64, kLabKey + 1, kForever));
  lab.read(request.size());
  CHECK(lab.claim().has_value());
  (void)receive_now(lab.partner.far);
  lab.path->lend_again(lab.loan, kForever);
  lab.path->allow(kLabKey + 1, 1);
  lab.check_sent(tip_transaction(2));
  CHECK(lab.learn(lab.connection));
  lab.path->allow(kLabKey, 1);
  lab.check_sent(tip_transaction(3));
}

TEST(submission_fast_path_sends_nothing_below_the_minimum_tip) {
  FastPathLab lab;
  const auto inspector = lab_inspector();
  lab.path->set_rules(inspector, kLabTip + 1);
  lab.check_left(lab_request(tip_transaction(1)));
  CHECK_EQ(lab.path->counts().rejected, uint64_t{1});
  lab.path->set_rules(inspector, kLabTip);
  lab.check_left(lab_request(tip_transaction(1, kLabTip - 1)));
  lab.check_sent(tip_transaction(1));
  FastRoute route = lab_route();
  route.minimum_tip = kLabTip + 1;
  lab.path->set_route(0, route);
  lab.check_left(lab_request(tip_transaction(2)));
  lab.path->set_route(0, lab_route());
  lab.check_sent(tip_transaction(2));
}

TEST(submission_fast_path_sends_nothing_that_is_too_long_for_the_route) {
  FastPathLab lab;
  const Bytes transaction = tip_transaction(1);
  FastRoute route = lab_route();
  route.bytes_max = static_cast<uint32_t>(transaction.size()) - 1;
  lab.path->set_route(0, route);
  lab.check_left(lab_request(transaction));
  route.bytes_max++;
  lab.path->set_route(0, route);
  lab.check_sent(transaction);
}

TEST(submission_fast_path_sends_no_invalid_transaction) {
  FastPathLab lab;
  const Bytes fine = tip_transaction(1);
  uint64_t rejected = 0;
  const auto check_rejected = [&](const std::string& text) {
    lab.check_left(lab_request(lab_body(text)));
    CHECK_EQ(lab.path->counts().rejected, ++rejected);
  };
  for (const size_t at : {size_t{0}, size_t{1}, size_t{40}, size_t{70}, fine.size() - 1}) {
    Bytes bytes = fine;
    bytes[at] ^= 1;
    check_rejected(base64_of(bytes));
  }
  Bytes longer = fine;
  longer.push_back(0);
  check_rejected(base64_of(longer));
  check_rejected(base64_of(Bytes(fine.begin(), fine.end() - 1)));
  check_rejected(base64_of(fine) + "A");
  check_rejected(base58_of(fine));
  check_rejected("====");
  check_rejected(std::string(8000, 'A'));
  check_rejected(base64_of(tip_transaction(2, kLabTip, true)));
  lab.check_sent(fine);
}

TEST(submission_fast_path_sends_only_what_repeats_the_pattern) {
  FastPathLab lab;
  const Bytes transaction = tip_transaction(1);
  const std::string text = base64_of(transaction);
  const std::string request = lab_request(transaction);
  lab.check_left(request + "P");
  lab.check_left(request + request);
  lab.check_left("\r\n" + request);
  lab.check_left("G" + request.substr(1));
  lab.check_left(lab_request(lab_body(text, "1", "{}")));
  lab.check_left(lab_request(lab_body(text, "1.5")));
  lab.check_left(lab_request("[" + lab_body(text) + "]"));
  std::string other_host = request;
  other_host.replace(other_host.find("gateway"), 7, "Gateway");
  lab.check_left(other_host);
  lab.check_left(std::string(3 * kFastPathRequestBytesMax, 'x'));
  lab.check_sent(transaction);
}

TEST(submission_fast_path_sends_no_transaction_twice) {
  FastPathLab lab;
  lab.check_sent(tip_transaction(1));
  lab.check_left(lab_request(tip_transaction(1)));
  lab.check_left(lab_request(lab_body(base64_of(tip_transaction(1)), "2")));
  lab.path->note(signature_of(tip_transaction(2)));
  lab.check_left(lab_request(tip_transaction(2)));
  lab.check_sent(tip_transaction(3));
}

TEST(submission_fast_path_sends_nothing_after_its_time) {
  FastPathLab lab;
  const auto now_ns = [] { return clock_ns(CLOCK_MONOTONIC); };
  CHECK(lab.learn(lab.connection, now_ns()));
  lab.check_left(lab_request(tip_transaction(1)));
  (void)lab.claim();
  CHECK(lab.learn(lab.connection));
  CHECK(lab.path->reclaim(lab.loan));
  lab.path->lend_again(lab.loan, now_ns());
  lab.check_left(lab_request(tip_transaction(1)));
  CHECK(lab.path->reclaim(lab.loan));
  lab.path->lend_again(lab.loan, kForever);
  lab.check_sent(tip_transaction(1));
}

TEST(submission_fast_path_sends_nothing_after_it_forgot) {
  FastPathLab lab;
  lab.path->forget(lab.connection);
  lab.check_left(lab_request(tip_transaction(1)));
  CHECK(lab.learn(lab.connection));
  lab.arm();
  lab.path->forget(lab.connection);
  CHECK(!lab.serve(lab_request(tip_transaction(1))));
  // A call of another form replaces the pattern.
  CHECK(lab.learn(lab.connection));
  CHECK(!lab.path->learn(lab.connection, lab_head("9"), "[]", TransactionTextEncoding::base64,
                         kLabKey, kForever));
  lab.check_left(lab_request(tip_transaction(1)));
  CHECK(lab.learn(lab.connection));
  lab.check_sent(tip_transaction(1));
  lab.arm();
  lab.path->forget_all();
  const std::string request = lab_request(tip_transaction(2));
  lab.write(request);
  give_time();
  lab.read(request.size());
  CHECK(!lab.claim());
  CHECK_EQ(receive_now(lab.partner.far), "");
}

TEST(submission_fast_path_leaves_descriptors_for_the_service) {
  rlimit before{};
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit small = {400, before.rlim_max};
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  std::string error;
  const auto path = FastPath::open(error);
  CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  CHECK_EQ(error, "");
  const TcpPair pair;
  uint32_t last = 0;
  for (int i = 0; i < 99; i++) {
    const auto number = path->watch(pair.far);
    CHECK(number.has_value());
    if (number) last = *number;
  }
  CHECK(path->lend(0, pair.far, ~uint64_t{0}).has_value());
  CHECK(!path->watch(pair.far).has_value());
  CHECK(!path->lend(0, pair.far, ~uint64_t{0}).has_value());
  path->unwatch(last);
  CHECK(path->watch(pair.far).has_value());
  CHECK_EQ(path->counts().connections, uint32_t{99});
}
