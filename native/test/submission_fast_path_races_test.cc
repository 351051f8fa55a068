// The fast path beside JavaScript: wrong counts of read bytes, claims, reclaims and ends at any
// time.
#include <atomic>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "fast_path_support.h"
#include "submission/fast_path.h"

namespace {

using namespace shredway;
using namespace shredway::test;

// A caller on its own thread: writes the next request on command.
class RacingCaller {
 public:
  RacingCaller(int fd, const std::vector<std::string>& requests) : fd_(fd), requests_(requests) {}
  ~RacingCaller() {
    allowed_ = requests_.size();
    thread_.join();
  }
  void allow_next() { allowed_++; }

 private:
  void run() {
    for (size_t i = 0; i < requests_.size(); i++) {
      while (allowed_ <= i) std::this_thread::yield();
      send_text(fd_, requests_[i]);
    }
  }

  const int fd_;
  const std::vector<std::string>& requests_;
  std::atomic<size_t> allowed_{0};
  std::thread thread_{[this] { run(); }};
};

std::vector<std::string> racing_requests(size_t count) {
  std::vector<std::string> requests;
  for (size_t i = 0; i < count; i++) requests.push_back(lab_request(tip_transaction(i)));
  return requests;
}

// Never yields: the thread looks at a request meanwhile, on another CPU.
void spin(std::mt19937_64& random) {
  const uint64_t end = clock_ns(CLOCK_MONOTONIC) + random() % 100'000;
  while (clock_ns(CLOCK_MONOTONIC) < end) continue;
}
// Ends at any time of the look at a request; in every eighth round after its send, so that some are
// sent on any machine.
void pass_time(FastPathLab& lab, size_t round, std::mt19937_64& random) {
  if (round % 8 > 0) spin(random);
  else CHECK(wait_until([&] { return lab.is_taken(); }));
}

// Ids of the requests in what a partner received.
std::vector<uint32_t> partner_ids(const std::string& text) {
  const std::string before = lab_route().before_id;
  std::vector<uint32_t> ids;
  for (size_t at = 0; (at = text.find(before, at)) != std::string::npos;) {
    at += before.size();
    ids.push_back(static_cast<uint32_t>(std::stoul(text.substr(at, 10))));
  }
  return ids;
}

}  // namespace

// ---- bytes inside of a body -----------------------------------------------------------------

// The outer request's body is a request that repeats the pattern. JavaScript has read the outer
// head, so the inner request is at the front of the buffer.
TEST(submission_fast_path_sends_nothing_from_inside_of_a_body) {
  for (const int wrong : {-1, 1, 5, 1 << 30, INT32_MIN}) {
    FastPathLab lab;
    const std::string inner = lab_request(tip_transaction(1));
    const std::string head = lab_head(std::to_string(inner.size())) + "\r\n\r\n";
    lab.arm();
    lab.write(head);
    lab.wait_for_thread();
    lab.read(head.size());
    CHECK(!lab.claim());
    lab.path->arm(lab.connection, lab.received + static_cast<uint32_t>(wrong));
    CHECK(!lab.serve(inner));
    // As it was armed before the head.
    lab.path->arm(lab.connection, lab.received - static_cast<uint32_t>(inner.size()));
    CHECK(!lab.serve(inner));
    CHECK_EQ(receive_now(lab.partner.far), "");
    CHECK_EQ(lab.path->counts().rejected, uint64_t{0});
    // With the right count it is sent.
    lab.check_sent(tip_transaction(1));
  }
}

TEST(submission_fast_path_sends_nothing_after_javascript_read_a_part) {
  FastPathLab lab;
  const std::string request = lab_request(tip_transaction(1));
  for (const size_t part : {size_t{1}, size_t{100}, request.size() - 1}) {
    lab.arm();
    lab.write(request.substr(0, part));
    lab.wait_for_thread();
    lab.read(part);
    lab.arm();  // ignored if it is armed still
    lab.write(request.substr(part));
    lab.wait_for_thread();
    lab.read(request.size() - part);
    CHECK(!lab.claim());
  }
  // The outer request is complete at once, and JavaScript reads its head only.
  const std::string head = lab_head(std::to_string(request.size())) + "\r\n\r\n";
  lab.arm();
  lab.write(head + request);
  lab.wait_for_thread();
  lab.read(head.size());
  lab.wait_for_thread();
  lab.read(request.size());
  CHECK(!lab.claim());
  CHECK_EQ(receive_now(lab.partner.far), "");
  lab.check_sent(tip_transaction(1));
}

// ---- partners -------------------------------------------------------------------------------

TEST(submission_fast_path_sends_on_a_lent_connection_only) {
  FastPathLab lab;
  CHECK(lab.path->reclaim(lab.loan));
  CHECK(lab.path->reclaim(lab.loan));
  lab.check_left(lab_request(tip_transaction(1)));
  lab.path->lend_again(lab.loan, kForever);
  lab.path->lend_again(lab.loan, kForever);  // lent already
  lab.arm();
  const auto taken = lab.serve(lab_request(tip_transaction(1)));
  CHECK(taken && taken->send_count == 1);
  CHECK(!receive_now(lab.partner.far).empty());
  // One request for each loan.
  lab.check_left(lab_request(tip_transaction(2)));
  CHECK(!lab.path->reclaim(lab.loan));
  CHECK(!lab.path->reclaim(lab.loan));
  lab.path->lend_again(lab.loan, kForever);
  lab.check_sent(tip_transaction(2));
  lab.path->release(lab.loan);
  lab.path->release(lab.loan);
  lab.check_left(lab_request(tip_transaction(3)));
  lab.path->lend_again(lab.loan, kForever);  // it is not there any more
  lab.check_left(lab_request(tip_transaction(3)));
  lab.loan = *lab.path->lend(0, lab.partner.near, kForever);
  lab.check_sent(tip_transaction(3));
}

TEST(submission_fast_path_reports_no_send_to_a_partner_that_closed) {
  FastPathLab lab;
  const linger at_once = {1, 0};
  CHECK(setsockopt(lab.partner.far, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  close(lab.partner.far);
  lab.partner.far = -1;
  lab.arm();
  CHECK(!lab.serve(lab_request(tip_transaction(1))));
  FastPathCounts counts = lab.path->counts();
  CHECK_EQ(counts.taken, uint64_t{0});
  CHECK_EQ(counts.unclaimed, uint32_t{0});
  CHECK(lab.path->reclaim(lab.loan));
  // A second route has it nevertheless.
  TcpPair other;
  CHECK(lab.path->set_route(1, lab_route()));
  const auto other_loan = lab.path->lend(1, other.near, kForever);
  lab.path->lend_again(lab.loan, kForever);
  lab.arm();
  const auto taken = lab.serve(lab_request(tip_transaction(2)));
  CHECK(taken && taken->send_count == 1 && taken->sends[0].loan == *other_loan);
  CHECK_EQ(partner_ids(receive_now(other.far)).size(), size_t{1});
}

TEST(submission_fast_path_takes_a_bounded_number_that_is_not_claimed) {
  FastPathLab lab;
  constexpr uint32_t kMax = kFastPathUnclaimedMax;
  std::vector<std::unique_ptr<TcpPair>> callers;
  std::vector<uint32_t> connections;
  const auto call = [&](uint64_t number) {
    lab.path->arm(connections[number], 0);
    send_text(callers[number]->near, lab_request(tip_transaction(number)));
  };
  for (uint64_t i = 0; i <= kMax; i++) {
    callers.push_back(std::make_unique<TcpPair>());
    connections.push_back(*lab.path->watch(callers.back()->far));
    CHECK(lab.learn(connections.back()));
    if (i > 0) CHECK(lab.path->lend(0, lab.partner.near, kForever).has_value());
  }
  for (uint32_t i = 0; i < kMax; i++) {
    call(i);
    CHECK(wait_until([&] { return lab.path->counts().taken == i + 1; }));
  }
  CHECK_EQ(lab.path->counts().unclaimed, kMax);
  call(kMax);
  usleep(20'000);
  CHECK(!lab.path->is_taken(connections[kMax], 0));
  CHECK(!lab.path->claim(connections[kMax], 0));
  CHECK_EQ(lab.path->counts().taken, uint64_t{kMax});
  for (uint32_t i = 0; i < kMax; i++) CHECK(lab.path->claim(connections[i], 0).has_value());
  CHECK_EQ(lab.path->counts().unclaimed, uint32_t{0});
  // Each was written to the same socket, by its own loan.
  std::string received;
  CHECK(wait_until([&] {
    received += receive_now(lab.partner.far);
    return partner_ids(received).size() >= kMax;
  }));
  CHECK_EQ(partner_ids(received).size(), size_t{kMax});
  lab.path->lend_again(lab.loan, kForever);
  lab.arm();
  CHECK(lab.serve(lab_request(tip_transaction(1000))).has_value());
}

// ---- the end --------------------------------------------------------------------------------

TEST(submission_fast_path_stops_and_sends_nothing_more) {
  FastPathLab lab;
  lab.arm();
  const std::string taken_request = lab_request(tip_transaction(1));
  lab.write(taken_request);
  lab.wait_for_thread();
  lab.path->stop();
  lab.path->stop();
  // A request that was sent before is still reported.
  lab.read(taken_request.size());
  CHECK(lab.claim().has_value());
  CHECK_EQ(partner_ids(receive_now(lab.partner.far)).size(), size_t{1});
  lab.path->lend_again(lab.loan, kForever);
  lab.arm();
  lab.write(lab_request(tip_transaction(2)));
  usleep(20'000);
  CHECK(!lab.claim());
  CHECK_EQ(receive_now(lab.partner.far), "");
  CHECK(lab.path->reclaim(lab.loan));
  lab.path->release(lab.loan);
  lab.path->unwatch(lab.connection);
}

TEST(submission_fast_path_forgets_connections) {
  FastPathLab lab;
  const uint32_t before = lab.path->counts().connections;
  lab.path->unwatch(lab.connection);
  lab.path->unwatch(lab.connection);
  CHECK_EQ(lab.path->counts().connections, before - 1);
  CHECK(!lab.learn(lab.connection));
  lab.check_left(lab_request(tip_transaction(1)));
  // The number is used again, without the pattern of the former connection.
  const uint32_t former = lab.connection;
  lab.connection = *lab.path->watch(lab.caller.far);
  CHECK_EQ(lab.connection, former);
  lab.check_left(lab_request(tip_transaction(1)));
  CHECK(lab.learn(lab.connection));
  lab.check_sent(tip_transaction(1));
  // Numbers that do not exist are ignored.
  lab.path->arm(9999, 0);
  lab.path->forget(9999);
  lab.path->unwatch(9999);
  lab.path->lend_again(9999, 0);
  lab.path->release(9999);
  CHECK(lab.path->reclaim(9999));
  CHECK(!lab.path->claim(9999, 0) && !lab.path->is_taken(9999, 0) && !lab.learn(9999));
  CHECK(!lab.path->watch(-1) && !lab.path->lend(0, -1, kForever));
}

// ---- at any time ----------------------------------------------------------------------------

// Everything that the partner gets is claimed, once, with the transaction of the request that was
// read.
TEST(submission_fast_path_reports_every_send_whenever_it_is_claimed) {
  constexpr size_t kRounds = 3000;
  std::mt19937_64 random(1);
  FastPathLab lab;
  const std::vector<std::string> requests = racing_requests(kRounds);
  RacingCaller caller(lab.caller.near, requests);
  size_t sent = 0, left = 0;
  std::set<uint32_t> ids;
  for (size_t i = 0; i < kRounds; i++) {
    lab.arm();
    caller.allow_next();
    pass_time(lab, i, random);
    const bool is_read_first = random() % 4 != 0;
    if (is_read_first) CHECK_EQ(lab.read(requests[i].size()), requests[i]);
    if (random() % 4 == 0) (void)lab.is_taken();
    const auto taken = lab.claim();
    const std::string partner = receive_now(lab.partner.far);
    if (!is_read_first) CHECK_EQ(lab.read(requests[i].size()), requests[i]);
    CHECK(!lab.claim());
    if (!taken) {
      left++;
      CHECK_EQ(partner, "");
      continue;
    }
    sent++;
    const Bytes transaction = tip_transaction(i);
    CHECK_EQ(std::string(taken->signature.data(), taken->signature_length),
             signature_of(transaction));
    CHECK_EQ(taken->send_count, uint32_t{1});
    CHECK(ids.insert(taken->sends[0].id).second);
    CHECK_EQ(partner, partner_request(lab_route(), taken->sends[0].id, transaction));
    lab.path->lend_again(lab.loan, kForever);
  }
  lab.wait_for_thread();
  CHECK_EQ(receive_now(lab.partner.far), "");
  const FastPathCounts counts = lab.path->counts();
  CHECK_EQ(counts.taken, sent);
  CHECK_EQ(counts.unclaimed, uint32_t{0});
  CHECK_EQ(counts.rejected, uint64_t{0});
  CHECK(sent >= kRounds / 8);
  CHECK_EQ(sent + left, kRounds);
}

// A connection that was taken back is not written to; one that was written to is not given back.
TEST(submission_fast_path_gives_a_connection_back_or_writes_to_it) {
  constexpr size_t kRounds = 2000;
  std::mt19937_64 random(2);
  FastPathLab lab;
  const std::vector<std::string> requests = racing_requests(kRounds);
  RacingCaller caller(lab.caller.near, requests);
  for (size_t i = 0; i < kRounds; i++) {
    lab.arm();
    caller.allow_next();
    pass_time(lab, i, random);
    const bool is_back = lab.path->reclaim(lab.loan);
    if (is_back) {  // JavaScript writes its own request
      send_text(lab.partner.near, "mine");
      CHECK_EQ(receive_text(lab.partner.far, 4), "mine");
    }
    lab.read(requests[i].size());
    const auto taken = lab.claim();
    CHECK_EQ(taken.has_value(), !is_back);
    const std::vector<uint32_t> ids = partner_ids(receive_now(lab.partner.far));
    CHECK_EQ(ids.size(), size_t{is_back ? 0u : 1u});
    if (taken && !ids.empty()) CHECK_EQ(taken->sends[0].id, ids[0]);
    lab.path->lend_again(lab.loan, kForever);
  }
  CHECK_EQ(lab.path->counts().unclaimed, uint32_t{0});
}

// Connections of callers and partners end while the thread looks at requests and writes.
TEST(submission_fast_path_ends_connections_at_any_time) {
  constexpr size_t kRounds = 2000;
  std::mt19937_64 random(3);
  FastPathLab lab;
  TcpPair other_caller;
  const FastPathCounts before = lab.path->counts();
  const std::vector<std::string> requests = racing_requests(kRounds);
  RacingCaller caller(lab.caller.near, requests);
  size_t claimed = 0, written = 0;
  for (size_t i = 0; i < kRounds; i++) {
    lab.arm();
    caller.allow_next();
    pass_time(lab, i, random);
    const uint64_t first = random() % 4;
    if (first == 0) lab.path->forget_all();
    if (first == 1) lab.path->release(lab.loan);
    if (first == 2) lab.path->forget(lab.connection);
    claimed += lab.claim().has_value();
    lab.path->unwatch(lab.connection);
    if (first != 1) lab.path->release(lab.loan);
    written += partner_ids(receive_now(lab.partner.far)).size();
    CHECK_EQ(written, claimed);
    lab.read(requests[i].size());
    if (random() % 4 == 0) usleep(100);  // the thread ends its look before
    lab.connection = *lab.path->watch(lab.caller.far);
    CHECK(lab.connection < 8);  // numbers are used again
    const uint32_t other = *lab.path->watch(other_caller.far);
    CHECK(other != lab.connection);
    lab.path->unwatch(other);
    CHECK(lab.learn(lab.connection));
    lab.loan = *lab.path->lend(0, lab.partner.near, kForever);
  }
  const FastPathCounts counts = lab.path->counts();
  CHECK_EQ(counts.connections, before.connections);
  CHECK_EQ(counts.loans, before.loans);
  CHECK_EQ(counts.unclaimed, uint32_t{0});
  CHECK_EQ(counts.taken, claimed);
  CHECK(claimed >= kRounds / 8);
}

// A decision of JavaScript holds as soon as the call has returned: nothing is sent afterwards.
TEST(submission_fast_path_follows_decisions_at_once) {
  constexpr size_t kRounds = 2000;
  std::mt19937_64 random(5);
  FastPathLab lab;
  const std::vector<std::string> requests = racing_requests(kRounds);
  std::vector<std::string> signatures;
  for (size_t i = 0; i < kRounds; i++) signatures.push_back(signature_of(tip_transaction(i)));
  RacingCaller caller(lab.caller.near, requests);
  // Made before, because that takes longer than the look at a request.
  const auto rules = lab_inspector();
  const auto no_tips = std::make_shared<const TransactionInspector>(std::span<const PublicKey>(),
                                                                    std::span<const KeyRange>());
  lab.path->set_rules(rules, 1000);
  for (size_t i = 0; i < kRounds; i++) {
    lab.arm();
    caller.allow_next();
    pass_time(lab, i, random);
    const uint64_t decision = random() % 5;
    if (decision == 0) lab.path->set_rules(no_tips, 1000);
    if (decision == 1) lab.path->set_rules(rules, kLabTip + 1);
    if (decision == 2) lab.path->forget_all();
    if (decision == 3) lab.path->note(signatures[i]);
    if (decision == 4) lab.path->allow(kLabKey, 0);
    const bool is_taken = lab.is_taken();
    spin(random);
    CHECK_EQ(lab.read(requests[i].size()), requests[i]);
    CHECK_EQ(lab.claim().has_value(), is_taken);
    CHECK_EQ(partner_ids(receive_now(lab.partner.far)).size(), size_t{is_taken ? 1u : 0u});
    lab.path->set_rules(rules, 1000);
    lab.path->allow(kLabKey, 1000);
    CHECK(lab.learn(lab.connection));
    lab.path->lend_again(lab.loan, kForever);
  }
  CHECK_EQ(lab.path->counts().unclaimed, uint32_t{0});
}

// The path ends while callers write and before everything is claimed.
TEST(submission_fast_path_ends_in_any_state) {
  std::mt19937_64 random(4);
  for (uint64_t i = 0; i < 100; i++) {
    FastPathLab lab;
    if (i % 5 > 0) lab.arm();
    if (i % 5 > 1) send_text(lab.caller.near, lab_request(tip_transaction(i)));
    spin(random);
    if (i % 3 == 0) lab.path->unwatch(lab.connection);
    if (i % 4 == 0) lab.path->stop();
    lab.path.reset();
    if (i % 5 < 2) CHECK_EQ(receive_now(lab.partner.far), "");
  }
}
