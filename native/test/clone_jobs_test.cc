// Clone batch without a kernel that clones: the jobs that are written, the results of triggers that
// are refused, partly accepted or not executed, and the reported counts. Needs no privilege.
#include <set>

#include "clone_support.h"

namespace shredway::test {
namespace {

constexpr uint32_t kFirstTarget = 3 * kCloneTargetsMax, kFirstJob = 3 * kCloneJobsMax;

// A worker's region, and triggers that end in the test.
struct FakePlane {
  FakePlane() : ipv4(sender(true)), ipv6(sender(true)) {}
  CloneRegion region() {
    return {targets.data(), jobs.data(), kFirstTarget, kFirstJob, ipv4.fd(), ipv6.fd(), true};
  }
  CloneJobRow& job_of(const mmsghdr& message) {
    const auto* address = static_cast<const sockaddr_in*>(message.msg_hdr.msg_name);
    const uint32_t number = ntohs(address->sin_port) - 1u - kFirstJob;
    CHECK(number < kCloneJobsMax);
    return jobs[number % kCloneJobsMax];
  }
  // Does what the program does with a trigger; returns the positions in the list that it served.
  std::vector<uint32_t> execute(const mmsghdr& message) {
    CloneJobRow& job = job_of(message);
    CHECK(job.socket_cookie != 0);
    CHECK(job.targets >= 1 && job.targets <= kCloneTargetsPerJob && job.targets <= job.count);
    CHECK(job.start < job.count);
    CHECK_EQ(job.datagrams, message.msg_hdr.msg_iovlen);
    job.runs++;
    std::vector<uint32_t> served;
    for (uint32_t i = 0; i < job.targets; i++) {
      const uint32_t position = (job.start + i) % job.count;
      CloneTargetRow& row = targets[job.first + position - kFirstTarget];
      (job.recovered ? row.recovered_sent : row.sent) += job.datagrams;
      served.push_back(job.first + position - kFirstTarget);
    }
    return served;
  }
  std::vector<CloneTargetRow> targets = std::vector<CloneTargetRow>(kCloneTargetsMax);
  std::vector<CloneJobRow> jobs = std::vector<CloneJobRow>(kCloneJobsMax);
  UdpSocket ipv4, ipv6;
};

std::vector<CloneTarget> fake_targets(uint32_t count, uint32_t first_tag = 0, bool is_ipv4 = true) {
  std::vector<CloneTarget> out(count);
  for (uint32_t i = 0; i < count; i++) {
    out[i].tag = first_tag + i;
    out[i].destination = behind_cable(is_ipv4, i, 9000);
  }
  return out;
}

TEST(clone_jobs_serve_each_position_once_beginning_at_the_start) {
  Random random{21};
  FakePlane plane;
  CloneCounts tally;
  std::vector<uint32_t> served;
  const FakeSend fake([&](mmsghdr* messages, unsigned count) {
    for (unsigned i = 0; i < count; i++)
      for (const uint32_t position : plane.execute(messages[i])) served.push_back(position);
    return int(count);
  });
  CloneBatch batch(plane.region(), {}, true, tally, FakeSend::calls());
  for (uint32_t round = 0; round < 300; round++) {
    const auto before = uint32_t(random.below(3));
    const auto size = 1 + uint32_t(random.below(round % 3 ? 300 : 4000));
    const std::vector<std::vector<CloneTarget>> lists = {fake_targets(before), fake_targets(size)};
    CHECK_EQ(batch.set_lists(lists), before + size);
    Burst burst(random, 1 + uint32_t(random.below(120)), 100);
    const auto start = uint32_t(random.next());
    const uint64_t triggers_before = batch.triggers();
    served.clear();
    batch.add(1, burst.group(), start, false);
    batch.flush();
    // The minimum of triggers: one per full job and part of the burst.
    const auto parts = uint32_t((burst.group().count + kGsoSegmentsMax - 1) / kGsoSegmentsMax);
    const uint32_t jobs = (size + kCloneTargetsPerJob - 1) / kCloneTargetsPerJob;
    CHECK_EQ(batch.triggers() - triggers_before, parts * jobs);
    std::vector<uint32_t> expected;
    for (uint32_t part = 0; part < parts; part++)
      for (uint32_t i = 0; i < size; i++)
        expected.push_back(before + uint32_t((uint64_t{start} + i) % size));
    CHECK(served == expected);
    tally.sent.clear();
    batch.settle();
    for (uint32_t tag = 0; tag < size; tag++) CHECK_EQ(tally.sent[tag], burst.group().count);
  }
  CHECK(tally.not_executed.empty());
}

TEST(clone_jobs_without_gso_are_single_payloads) {
  Random random{22};
  FakePlane plane;
  CloneCounts tally;
  uint64_t messages_seen = 0;
  const FakeSend fake([&](mmsghdr* messages, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
      CHECK_EQ(messages[i].msg_hdr.msg_iovlen, 1u);
      CHECK(messages[i].msg_hdr.msg_control == nullptr);
      plane.execute(messages[i]);
    }
    messages_seen += count;
    return int(count);
  });
  CloneBatch batch(plane.region(), {}, false, tally, FakeSend::calls());
  const std::vector<CloneTarget> list = fake_targets(300);
  batch.set_lists({&list, 1});
  Burst burst(random, 70, 100);
  batch.add(0, burst.group(), 0, true);
  batch.flush();
  batch.settle();
  CHECK_EQ(messages_seen, 140u);
  for (uint32_t tag = 0; tag < 300; tag++) CHECK_EQ(tally.recovered[tag], 70u);
}

TEST(clone_jobs_leave_targets_that_do_not_fit_to_the_socket) {
  FakePlane plane;
  CloneCounts tally;
  CloneBatch batch(plane.region(), {}, true, tally);
  const std::vector<std::vector<CloneTarget>> lists = {fake_targets(4000), fake_targets(200),
                                                       fake_targets(5)};
  CHECK_EQ(batch.set_lists(lists), kCloneTargetsMax);
  CHECK_EQ(batch.list_size(0), 4000u);
  CHECK_EQ(batch.list_size(1), 96u);
  CHECK_EQ(batch.list_size(2), 0u);

  CloneRegion region = plane.region();
  region.trigger_ipv6 = -1;
  CloneBatch without_ipv6(region, {}, true, tally);
  const std::vector<std::vector<CloneTarget>> families = {fake_targets(2, 0, false),
                                                          fake_targets(3, 0, true)};
  CHECK_EQ(without_ipv6.set_lists(families), 3u);
  CHECK_EQ(without_ipv6.list_size(0), 0u);
  CHECK_EQ(without_ipv6.list_size(1), 3u);
}

// Ten triggers for 600 targets each: thirty jobs. `fate` is the result of each message by its
// index: 0 is executed, kIgnored is accepted but not executed, otherwise the negative errno.
constexpr int kNotExecuted = 1;
struct CallResults {
  std::vector<int> results;
  bool one_call_each = false;  // the kernel may stop early without a reason
};
CloneCounts run_with(const CallResults& results) {
  Random random{23};
  FakePlane plane;
  CloneCounts tally;
  size_t next = 0;
  const FakeSend fake([&](mmsghdr* messages, unsigned count) {
    unsigned accepted = 0;
    for (; accepted < count && next < results.results.size(); accepted++) {
      const int result_of_message = results.results[next];
      if (result_of_message < 0) {
        if (accepted) return int(accepted);
        next++;
        return result_of_message;
      }
      next++;
      if (result_of_message != kNotExecuted) plane.execute(messages[accepted]);
      if (results.one_call_each) return int(accepted) + 1;
    }
    return int(accepted);
  });
  CloneBatch batch(plane.region(), {}, true, tally, FakeSend::calls());
  const std::vector<CloneTarget> list = fake_targets(600);
  batch.set_lists({&list, 1});
  std::vector<Burst> bursts;
  bursts.reserve(10);
  for (uint32_t i = 0; i < 10; i++) {
    bursts.emplace_back(random, 2, 100);
    batch.add(0, bursts.back().group(), 500, false);
  }
  batch.flush();
  batch.settle();
  for (const CloneJobRow& job : plane.jobs) CHECK_EQ(job.socket_cookie, 0u);
  return tally;
}

void check_served(CloneCounts& tally, const std::map<uint32_t, uint64_t>& missing) {
  for (uint32_t tag = 0; tag < 600; tag++) {
    const auto found = missing.find(tag);
    CHECK_EQ(tally.sent[tag], 20 - (found == missing.end() ? 0 : found->second));
  }
}

TEST(clone_jobs_report_a_refusal_once_and_do_not_affect_others) {
  for (const bool one_call_each : {false, true})
    for (const int error : {ENOBUFS, EPERM, ENODEV, ENETUNREACH, EAGAIN, EIO})
      for (const size_t at : {size_t{0}, size_t{14}, size_t{29}}) {
        CallResults results{std::vector<int>(30, 0), one_call_each};
        results.results[at] = -error;
        CloneCounts tally = run_with(results);
        CHECK_EQ(tally.not_executed.size(), 1u);
        if (tally.not_executed.size() != 1) continue;
        const CloneCounts::NotCloned& reported = tally.not_executed[0];
        // The jobs of one burst begin at 500, 756 and 1012 of 600.
        const uint32_t piece = uint32_t(at % 3);
        CHECK_EQ(reported.list, 0u);
        CHECK_EQ(reported.from, (500 + piece * 256) % 600);
        CHECK_EQ(reported.count, piece < 2 ? 256u : 88u);
        CHECK_EQ(reported.datagrams, 2u);
        CHECK_EQ(reported.error_number, error);
        std::map<uint32_t, uint64_t> missing;
        for (uint32_t i = 0; i < reported.count; i++) missing[(reported.from + i) % 600] = 2;
        check_served(tally, missing);
      }
}

TEST(clone_jobs_that_are_not_executed_are_reported) {
  CallResults results{std::vector<int>(30, 0), false};
  results.results[3] = results.results[4] = results.results[29] = kNotExecuted;
  CloneCounts tally = run_with(results);
  CHECK_EQ(tally.not_executed.size(), 3u);
  std::map<uint32_t, uint64_t> missing;
  for (const CloneCounts::NotCloned& reported : tally.not_executed) {
    CHECK_EQ(reported.error_number, ENOLINK);
    for (uint32_t i = 0; i < reported.count; i++) missing[(reported.from + i) % 600] += 2;
  }
  check_served(tally, missing);
}

TEST(clone_jobs_survive_interruptions) {
  CallResults results{{}, true};
  for (int i = 0; i < 30; i++) {
    for (int j = 0; j < i % 5; j++) results.results.push_back(-EINTR);
    results.results.push_back(0);
  }
  CloneCounts tally = run_with(results);
  CHECK(tally.not_executed.empty());
  check_served(tally, {});
  // The retries are bounded.
  CallResults endless{std::vector<int>(100'000, -EINTR), true};
  CloneCounts gave_up = run_with(endless);
  CHECK_EQ(gave_up.not_executed.size(), 30u);
  for (const CloneCounts::NotCloned& reported : gave_up.not_executed)
    CHECK_EQ(reported.error_number, EINTR);
}

TEST(clone_jobs_report_refusals_by_reason) {
  FakePlane plane;
  CloneCounts tally;
  CloneBatch batch(plane.region(), {}, true, tally);
  const std::vector<std::pair<int32_t, SendFailure>> reasons = {
      {1, SendFailure::buffer_full},         {2, SendFailure::buffer_full},
      {-ENOBUFS, SendFailure::buffer_full},  {-ENOMEM, SendFailure::buffer_full},
      {-ENETDOWN, SendFailure::unreachable}, {-ENODEV, SendFailure::unreachable},
      {-ENXIO, SendFailure::unreachable},    {-EINVAL, SendFailure::unreachable},
      {-ERANGE, SendFailure::other},         {-EPERM, SendFailure::other}};
  const std::vector<CloneTarget> list = fake_targets(uint32_t(reasons.size()), 70);
  batch.set_lists({&list, 1});
  for (size_t i = 0; i < reasons.size(); i++) {
    plane.targets[i].refused = 5 + i;
    plane.targets[i].sent = i;
    plane.targets[i].last_error = reasons[i].first;
  }
  // Reported once, then only new counts.
  batch.settle();
  batch.settle();
  plane.targets[0].refused += 2;
  batch.set_lists({});
  for (size_t i = 0; i < reasons.size(); i++) {
    const auto tag = uint32_t(70 + i);
    CHECK_EQ(tally.refused[tag].size(), 1u);
    CHECK_EQ(tally.refused[tag][reasons[i].second], 5 + i + (i == 0 ? 2 : 0));
    CHECK_EQ(tally.sent[tag], i);
  }
}

}  // namespace
}  // namespace shredway::test
