// A fast path in a simulation: connections in memory, and the work of its thread in two steps.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "check.h"
#include "fast_path_support.h"
#include "submission/fast_path.h"
#include "submission/memory_streams.h"

namespace shredway::test {
namespace {

constexpr int kCaller = 1, kPartner = 2;

// One caller and one partner on route 0.
struct SimulatedFastPathLab {
  MemoryStreams streams;
  std::unique_ptr<FastPath> path = FastPath::simulate(streams);
  uint32_t connection = 0, loan = 0;
  uint32_t received = 0;  // bytes that JavaScript has read

  SimulatedFastPathLab() {
    streams.set_time(1);
    streams.arrive(kCaller, "");
    streams.arrive(kPartner, "");
    path->set_rules(lab_inspector(), 1000);
    path->allow(kLabKey, 100);
    CHECK(path->set_route(0, lab_route()));
    connection = *path->watch(kCaller);
    CHECK(path->learn(connection, lab_head("9"), lab_body("AQID"), TransactionTextEncoding::base64,
                      kLabKey, kForever));
    loan = *path->lend(0, kPartner, 1'000'000);
    path->arm(connection, received);
  }
  std::optional<TakenRequest> claim() {
    auto claim = path->claim(connection, 0);
    return claim ? std::optional(std::move(claim->taken)) : std::nullopt;
  }
  bool is_taken() { return path->is_taken(connection, 0); }
  void read(size_t bytes) {
    CHECK(streams.read(kCaller, bytes));
    received += static_cast<uint32_t>(bytes);
  }
};

}  // namespace

TEST(submission_fast_path_simulated_sends_at_the_time_of_the_simulation) {
  SimulatedFastPathLab lab;
  const std::string request = lab_request(tip_transaction(1));
  lab.streams.arrive(kCaller, request.substr(0, request.size() - 40));
  CHECK(lab.path->look(lab.streams));
  lab.path->conclude();
  CHECK(lab.streams.written().empty());
  lab.streams.arrive(kCaller, request.substr(request.size() - 40));
  lab.streams.set_time(500);
  CHECK(lab.path->look(lab.streams));
  CHECK(!lab.is_taken());
  lab.streams.set_time(600);
  lab.path->conclude();
  CHECK(!lab.path->look(lab.streams));
  CHECK(lab.is_taken());
  CHECK_EQ(lab.streams.written().size(), size_t{1});
  const auto& [fd, bytes] = lab.streams.written().front();
  CHECK_EQ(fd, kPartner);
  const auto taken = lab.claim();
  CHECK(taken && taken->send_count == 1);
  CHECK_EQ(taken->taken_ns, uint64_t{500});
  CHECK_EQ(taken->sends[0].sent_ns, uint64_t{600});
  CHECK_EQ(bytes, partner_request(lab_route(), taken->sends[0].id, tip_transaction(1)));
}

TEST(submission_fast_path_simulated_leaves_what_javascript_has_read_or_claimed) {
  SimulatedFastPathLab lab;
  const std::string request = lab_request(tip_transaction(1));
  // JavaScript claims it during the look.
  lab.streams.arrive(kCaller, request);
  CHECK(lab.path->look(lab.streams));
  CHECK(!lab.claim());
  lab.path->conclude();
  CHECK(lab.streams.written().empty());
  CHECK_EQ(lab.path->counts().late, uint64_t{1});
  lab.read(request.size());
  CHECK(!lab.streams.read(kCaller, 1));
  // JavaScript has read a part before the look.
  lab.path->arm(lab.connection, lab.received);
  lab.streams.arrive(kCaller, request);
  lab.read(1);
  CHECK(lab.path->look(lab.streams));
  lab.path->conclude();
  CHECK(lab.streams.written().empty());
}

TEST(submission_fast_path_simulated_sends_nothing_to_an_ended_connection) {
  SimulatedFastPathLab lab;
  lab.streams.arrive(kCaller, lab_request(tip_transaction(1)));
  CHECK(lab.path->look(lab.streams));
  lab.streams.end(kPartner);
  lab.path->conclude();
  CHECK(lab.streams.written().empty());
  CHECK(!lab.claim());
  lab.path->release(lab.loan);
  lab.streams.end(kCaller);
  lab.path->unwatch(lab.connection);
  CHECK_EQ(lab.path->counts().connections, uint32_t{0});
  CHECK(!lab.path->watch(kCaller));
}

}  // namespace shredway::test
