// SendBatch against a kernel with injected failures: whatever it returns, each message is reported
// exactly once, as sent or failed, for its own destination.
#include <algorithm>
#include <set>

#include "net_support.h"

namespace shredway::test {
namespace {

constexpr uint16_t kPayloadBytes = 8;

// A simulated kernel. It accepts messages in order, stops at the first failure, and returns an
// errno only if the first message of the call failed, like sendmmsg.
struct FakeKernel {
  struct Accepted {
    uint16_t port;
    uint64_t payload;
  };
  std::vector<Accepted> accepted;
  size_t calls = 0;
  // 0: accept it; otherwise the errno of this attempt.
  std::function<int(const msghdr&)> judge = [](const msghdr&) { return 0; };

  int send(mmsghdr* messages, unsigned count) {
    calls++;
    for (unsigned i = 0; i < count; i++) {
      const msghdr& message = messages[i].msg_hdr;
      if (const int error_number = judge(message)) return i ? static_cast<int>(i) : -error_number;
      CHECK_EQ(message.msg_controllen > 0, message.msg_iovlen > 1);
      for (size_t part = 0; part < message.msg_iovlen; part++) {
        CHECK_EQ(message.msg_iov[part].iov_len, kPayloadBytes);
        uint64_t payload;
        std::memcpy(&payload, message.msg_iov[part].iov_base, sizeof payload);
        accepted.push_back({port_of(message), payload});
      }
    }
    return static_cast<int>(count);
  }
  static uint16_t port_of(const msghdr& message) {
    return endpoint_from_sockaddr(static_cast<const sockaddr*>(message.msg_name)).port;
  }
};

// A batch on that kernel; destination n has port n and tag n.
struct BatchFixture {
  FakeKernel kernel;
  FakeSend fake{[this](mmsghdr* messages, unsigned count) { return kernel.send(messages, count); }};
  SendCounts tally;
  SendBatch batch;
  std::vector<Address> addresses;
  std::vector<uint64_t> payloads;
  std::vector<iovec> parts;

  explicit BatchFixture(bool gso = true) : batch(3, gso, tally, FakeSend::calls()) {
    for (uint16_t port = 0; port < 128; port++) addresses.emplace_back(loopback(true, port));
    payloads.resize(4096);
    for (uint64_t i = 0; i < payloads.size(); i++) {
      payloads[i] = i;
      parts.push_back({&payloads[i], kPayloadBytes});
    }
  }
  void add(uint32_t destination, uint64_t first, uint32_t count = 1) {
    batch.add({&parts[first], count, kPayloadBytes}, addresses[destination].get(),
              addresses[destination].bytes, destination);
  }
  uint64_t accepted_by(uint32_t destination) const {
    return static_cast<uint64_t>(
        std::count_if(kernel.accepted.begin(), kernel.accepted.end(),
                      [&](const FakeKernel::Accepted& one) { return one.port == destination; }));
  }
};

// Each class of errno, at the first, a middle and the last position, and several in a row.
TEST(udp_batch_faults_are_attributed_to_their_message) {
  const std::vector<std::pair<int, SendFailure>> kinds = {{EAGAIN, SendFailure::buffer_full},
                                                          {ENOBUFS, SendFailure::buffer_full},
                                                          {EHOSTUNREACH, SendFailure::unreachable},
                                                          {ENETUNREACH, SendFailure::unreachable},
                                                          {EHOSTDOWN, SendFailure::unreachable},
                                                          {ENETDOWN, SendFailure::unreachable},
                                                          {ECONNREFUSED, SendFailure::refused},
                                                          {EPERM, SendFailure::not_permitted},
                                                          {EACCES, SendFailure::not_permitted},
                                                          {EMSGSIZE, SendFailure::too_big},
                                                          {EINVAL, SendFailure::invalid},
                                                          {EAFNOSUPPORT, SendFailure::invalid},
                                                          {EBADF, SendFailure::invalid},
                                                          {EOPNOTSUPP, SendFailure::invalid},
                                                          {EIO, SendFailure::other},
                                                          {ENOMEM, SendFailure::other},
                                                          {EINTR, SendFailure::other},
                                                          {9999, SendFailure::other}};
  const std::vector<std::set<uint32_t>> places = {
      {0}, {31}, {63}, {0, 1, 2}, {30, 31, 32}, {61, 62, 63}, {0, 31, 63}, {}};
  for (const auto& [error_number, failure] : kinds) {
    for (const std::set<uint32_t>& failing : places) {
      BatchFixture fixture;
      fixture.kernel.judge = [&](const msghdr& message) {
        return failing.count(FakeKernel::port_of(message)) ? error_number : 0;
      };
      for (uint32_t tag = 0; tag < 64; tag++) fixture.add(tag, tag);
      fixture.batch.flush();
      for (uint32_t tag = 0; tag < 64; tag++) {
        const bool fails = failing.count(tag) > 0;
        CHECK_EQ(fixture.accepted_by(tag), fails ? 0u : 1u);
        CHECK_EQ(fixture.tally.sent_by_tag[tag], fails ? 0u : 1u);
        CHECK_EQ(fixture.tally.failures(tag), fails ? 1u : 0u);
        if (fails) CHECK_EQ(fixture.tally.failed_by_tag[tag][failure], 1u);
      }
      CHECK(fixture.kernel.calls <= 2 + failing.size() * 80);
      CHECK_EQ(fixture.batch.system_calls(), fixture.kernel.calls);
    }
  }
}

TEST(udp_batch_faults_everything_fails_within_bounds) {
  for (const int error_number : {EAGAIN, EINTR, ECONNREFUSED, EINVAL}) {
    BatchFixture fixture;
    fixture.kernel.judge = [&](const msghdr&) { return error_number; };
    for (uint32_t tag = 0; tag < 64; tag++) fixture.add(tag, tag * 2, 2);
    for (uint32_t tag = 0; tag < 64; tag++) CHECK_EQ(fixture.tally.failures(tag), 2u);
    CHECK(fixture.kernel.calls <= 64 * 80);
    if (error_number == EAGAIN) CHECK_EQ(fixture.kernel.calls, 64u);
  }
}

TEST(udp_batch_faults_a_pending_icmp_error_costs_one_retry) {
  for (const int error_number : {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, EPROTO,
                                 EOPNOTSUPP, EMSGSIZE, ENOPROTOOPT, EACCES}) {
    for (const uint32_t place : {0u, 5u, 39u}) {
      for (const uint32_t group : {1u, 4u}) {
        BatchFixture fixture;
        bool pending = true;
        fixture.kernel.judge = [&](const msghdr& message) {
          if (!pending || FakeKernel::port_of(message) != place) return 0;
          pending = false;
          return error_number;
        };
        for (uint32_t tag = 0; tag < 40; tag++) fixture.add(tag, tag * group, group);
        fixture.batch.flush();
        for (uint32_t tag = 0; tag < 40; tag++) {
          CHECK_EQ(fixture.tally.sent_by_tag[tag], group);
          CHECK_EQ(fixture.accepted_by(tag), group);
          CHECK_EQ(fixture.tally.failures(tag), 0u);
        }
        CHECK_EQ(fixture.kernel.calls, 2u);
        CHECK_EQ(fixture.batch.gso_fallbacks(), 0u);
      }
    }
  }
}

TEST(udp_batch_faults_interruptions_lose_nothing) {
  BatchFixture fixture;
  uint32_t interruptions = 0;
  fixture.kernel.judge = [&](const msghdr&) { return ++interruptions % 16 ? EINTR : 0; };
  for (uint32_t tag = 0; tag < 20; tag++) fixture.add(tag, tag);
  fixture.batch.flush();
  for (uint32_t tag = 0; tag < 20; tag++) CHECK_EQ(fixture.tally.sent_by_tag[tag], 1u);
}

TEST(udp_batch_faults_refused_gso_is_sent_singly) {
  for (const int error_number : {EIO, EINVAL, EMSGSIZE, EOPNOTSUPP, ENOPROTOOPT}) {
    BatchFixture fixture;
    // Destination 1 refuses GSO and the third of its single datagrams.
    fixture.kernel.judge = [&](const msghdr& message) {
      if (FakeKernel::port_of(message) != 1) return 0;
      if (message.msg_iovlen > 1) return error_number;
      return *static_cast<const uint64_t*>(message.msg_iov[0].iov_base) == 102 ? EPERM : 0;
    };
    for (uint32_t tag = 0; tag < 3; tag++) fixture.add(tag, tag * 100, 50);
    fixture.batch.flush();
    CHECK_EQ(fixture.batch.gso_fallbacks(), 1u);
    for (uint32_t tag = 0; tag < 3; tag++) {
      CHECK_EQ(fixture.tally.sent_by_tag[tag], tag == 1 ? 49u : 50u);
      CHECK_EQ(fixture.accepted_by(tag), tag == 1 ? 49u : 50u);
      CHECK_EQ(fixture.tally.failures(tag), tag == 1 ? 1u : 0u);
    }
    CHECK_EQ(fixture.tally.failed_by_tag[1][SendFailure::not_permitted], 1u);
  }
}

TEST(udp_batch_faults_a_destination_that_refused_gso_gets_single_datagrams) {
  BatchFixture fixture;
  fixture.kernel.judge = [&](const msghdr& message) {
    return FakeKernel::port_of(message) == 1 && message.msg_iovlen > 1 ? EIO : 0;
  };
  for (int burst = 0; burst < 5; burst++) {
    for (uint32_t tag = 0; tag < 3; tag++) fixture.add(tag, tag * 100, 20);
    fixture.batch.flush();
  }
  CHECK_EQ(fixture.batch.gso_fallbacks(), 1u);
  for (uint32_t tag = 0; tag < 3; tag++) CHECK_EQ(fixture.accepted_by(tag), 100u);
  fixture.batch.forget_refusals();
  for (uint32_t tag = 0; tag < 3; tag++) fixture.add(tag, tag * 100, 20);
  fixture.batch.flush();
  CHECK_EQ(fixture.batch.gso_fallbacks(), 2u);
}

TEST(udp_batch_faults_other_failures_charge_the_whole_group) {
  BatchFixture fixture;
  fixture.kernel.judge = [&](const msghdr& message) {
    return FakeKernel::port_of(message) == 1 ? EAGAIN : 0;
  };
  for (uint32_t tag = 0; tag < 3; tag++) fixture.add(tag, tag * 100, 7);
  fixture.batch.flush();
  CHECK_EQ(fixture.tally.failed_by_tag[1][SendFailure::buffer_full], 7u);
  CHECK_EQ(fixture.tally.sent_by_tag[0] + fixture.tally.sent_by_tag[2], 14u);
  CHECK_EQ(fixture.batch.gso_fallbacks(), 0u);
}

TEST(udp_batch_faults_tolerates_results_out_of_range) {
  BatchFixture fixture;
  FakeSend absurd([&](mmsghdr*, unsigned count) { return static_cast<int>(count) + 1000; });
  for (uint32_t tag = 0; tag < 10; tag++) fixture.add(tag, tag);
  fixture.batch.flush();
  for (uint32_t tag = 0; tag < 10; tag++) CHECK_EQ(fixture.tally.sent_by_tag[tag], 1u);
  CHECK_EQ(fixture.tally.reports, 10u);
  FakeSend nothing([&](mmsghdr*, unsigned) { return 0; });
  for (uint32_t tag = 10; tag < 20; tag++) fixture.add(tag, tag);
  fixture.batch.flush();
  for (uint32_t tag = 10; tag < 20; tag++)
    CHECK_EQ(fixture.tally.failed_by_tag[tag][SendFailure::other], 1u);
}

TEST(udp_batch_faults_flushes_when_full) {
  BatchFixture fixture(false);
  fixture.add(1, 0, 63);
  CHECK_EQ(fixture.kernel.calls, 0u);
  fixture.add(2, 63, 70);
  CHECK_EQ(fixture.kernel.calls, 2u);
  fixture.batch.flush();
  CHECK_EQ(fixture.kernel.calls, 3u);
  fixture.batch.flush();  // nothing left to send: no call
  CHECK_EQ(fixture.kernel.calls, 3u);
  CHECK_EQ(fixture.kernel.accepted.size(), 133u);
}

// ---- random interleavings against a model ---------------------------------------------------

// Failures of one round: some destinations always fail, some refuse GSO, and a temporary failure
// may affect any attempt.
struct Failures {
  std::map<uint16_t, int> permanent;
  std::set<uint16_t> refuses_gso;
  uint64_t passing_one_in;
  bool full_buffers;  // temporary failures may be EAGAIN, which costs the message
  uint32_t in_a_row = 0;

  int judge(Random& random, const msghdr& message) {
    const uint16_t port = FakeKernel::port_of(message);
    if (in_a_row < 2 && random.one_in(passing_one_in)) {
      in_a_row++;
      constexpr std::array<int, 6> kPassing = {ECONNREFUSED, EHOSTUNREACH, EINTR,
                                               EPROTO,       ENETUNREACH,  EAGAIN};
      return kPassing[random.below(full_buffers ? 6 : 5)];
    }
    in_a_row = 0;
    if (const auto found = permanent.find(port); found != permanent.end()) return found->second;
    return message.msg_iovlen > 1 && refuses_gso.count(port) ? EIO : 0;
  }
};

void check_round(uint64_t seed) {
  Random random{seed};
  BatchFixture fixture(random.one_in(3) == false);
  constexpr std::array<int, 5> kPermanent = {EPERM, EHOSTUNREACH, EINVAL, EAGAIN, EMSGSIZE};
  Failures failures{{}, {}, 2 + random.below(20), random.one_in(2)};
  for (uint16_t port = 0; port < 12; port++) {
    if (random.one_in(4)) failures.permanent[port] = kPermanent[random.below(kPermanent.size())];
    if (random.one_in(4)) failures.refuses_gso.insert(port);
  }
  fixture.kernel.judge = [&](const msghdr& message) { return failures.judge(random, message); };

  std::map<uint32_t, uint64_t> added;
  uint64_t payload = 0;
  while (payload < 600) {
    const auto destination = static_cast<uint32_t>(random.below(12));
    const auto count = static_cast<uint32_t>(1 + (random.one_in(2) ? random.below(20) : 0));
    fixture.add(destination, payload, count);
    added[destination] += count;
    payload += count;
    if (random.one_in(40)) fixture.batch.flush();
  }
  fixture.batch.flush();

  std::map<uint16_t, uint64_t> next;
  for (const FakeKernel::Accepted& one : fixture.kernel.accepted) {
    CHECK(one.payload >= next[one.port]);  // in order and without repetition
    next[one.port] = one.payload + 1;
  }
  for (const auto& [destination, datagrams] : added) {
    const uint64_t sent = fixture.tally.sent_by_tag[destination];
    CHECK_EQ(sent + fixture.tally.failures(destination), datagrams);
    CHECK_EQ(sent, fixture.accepted_by(destination));
    const bool fails = failures.permanent.count(static_cast<uint16_t>(destination)) > 0;
    if (fails) CHECK_EQ(sent, 0u);
    // Temporary errors, at most two in a row, cost no datagram.
    if (!fails && !failures.full_buffers) CHECK_EQ(sent, datagrams);
  }
}

TEST(udp_batch_faults_random_interleavings_match_the_model) {
  for (uint64_t seed = 1; seed <= 2000; seed++) check_round(seed);
}

}  // namespace
}  // namespace shredway::test
