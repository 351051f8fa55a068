// The order in which Transmit sends: everything of a list before anything of the next one, whatever
// the address families and send paths of their targets. The kernel is the test's; no privilege is
// needed.
#include <set>

#include "clone_support.h"
#include "relay/transmit.h"
#include "support.h"

namespace shredway::test {
namespace {

// A kernel that executes triggers, accepts datagrams, and records the targets in order.
struct RecordingKernel {
  std::vector<CloneTargetRow> rows = std::vector<CloneTargetRow>(kCloneTargetsMax);
  std::vector<CloneJobRow> jobs = std::vector<CloneJobRow>(kCloneJobsMax);
  UdpSocket ipv4 = sender(true), ipv6 = sender(false);
  UdpSocket trigger_ipv4 = sender(true), trigger_ipv6 = sender(false);
  std::set<int> refused;  // triggers by these sockets
  const TargetLists* lists = nullptr;
  std::vector<uint32_t> sent;  // the tag of each datagram
  uint64_t calls = 0;

  RecordingKernel() { current() = this; }
  ~RecordingKernel() { current() = nullptr; }
  static RecordingKernel*& current() {
    static RecordingKernel* kernel = nullptr;
    return kernel;
  }
  static const SocketCalls& socket_calls() {
    static const SocketCalls kCalls = {&::recvmmsg, &send, &::recvmsg, &::poll};
    return kCalls;
  }
  static int send(int fd, mmsghdr* messages, unsigned count, int) {
    return current()->accept(fd, messages, count);
  }

  int accept(int fd, mmsghdr* messages, unsigned count) {
    calls++;
    if (refused.contains(fd)) {
      errno = EPERM;
      return -1;
    }
    for (unsigned i = 0; i < count; i++) {
      const msghdr& message = messages[i].msg_hdr;
      const uint16_t port =
          endpoint_from_sockaddr(static_cast<const sockaddr*>(message.msg_name)).port;
      if (fd == trigger_ipv4.fd() || fd == trigger_ipv6.fd()) execute(jobs[port - 1u]);
      else sent.insert(sent.end(), message.msg_iovlen, port - 1u);
    }
    return static_cast<int>(count);
  }
  void execute(CloneJobRow& job) {
    job.runs++;
    for (uint32_t i = 0; i < job.targets; i++)
      sent.insert(sent.end(), job.datagrams,
                  lists->clones().tags()[job.first + (job.start + i) % job.count]);
  }
  TransmitOptions options(bool clones, bool gso) const {
    TransmitOptions options{{ipv4.fd(), ipv6.fd(), gso}};
    if (clones)
      options.clone = {const_cast<CloneTargetRow*>(rows.data()),
                       const_cast<CloneJobRow*>(jobs.data()),
                       0,
                       0,
                       trigger_ipv4.fd(),
                       trigger_ipv6.fd(),
                       gso};
    return options;
  }
};

struct OrderFixture {
  static constexpr uint32_t kTiers = 3;
  RecordingKernel kernel;
  struct Nothing final : TransmitObserver {
    void cloned(uint32_t, uint64_t, uint64_t) override {}
    void clone_failed(uint32_t, uint64_t, SendFailure) override {}
    void sent(uint32_t, uint32_t) override {}
    void failed(uint32_t, uint32_t, SendFailure) override { CHECK(false); }
  } observer;
  Transmit transmit;
  std::vector<DestinationEntry> entries;  // by tag
  std::vector<NextHops::Entry> hops;
  std::unique_ptr<const FanoutTable> fanout;
  std::unique_ptr<TargetLists> lists;

  explicit OrderFixture(bool clones = true, bool gso = true)
      : transmit(kernel.options(clones, gso), observer, RecordingKernel::socket_calls()) {}

  // `cloned`: its next hop is known.
  void add(uint32_t count, uint8_t tier, bool is_ipv4, bool cloned, bool wants_recovered = false) {
    for (uint32_t i = 0; i < count; i++) {
      const auto tag = static_cast<uint32_t>(entries.size());
      const auto port = static_cast<uint16_t>(tag + 1);
      entries.push_back({cloned ? behind_cable(is_ipv4, tag, port) : loopback(is_ipv4, port), tier,
                         tag, wants_recovered});
      if (cloned)
        hops.push_back({entries.back().endpoint.address, NextHopState::resolved, NextHop{}});
    }
  }
  void use_lists() {
    const Bytes bytes = fanout_table(entries);
    std::string error;
    fanout = FanoutTable::parse(bytes.data(), bytes.size(), kTiers, error);
    CHECK_EQ(error, "");
    const NextHops next_hops(hops);
    auto next =
        std::make_unique<TargetLists>(fanout.get(), &next_hops, transmit.target_rules(kTiers));
    transmit.set_lists(*next);
    lists = std::move(next);
    kernel.lists = lists.get();
  }
  // Sends so many payloads of two lengths to every tier, as a worker does.
  void send(uint32_t short_payloads, uint32_t long_payloads, bool recovered = false) {
    static std::array<uint8_t, 1228> payload{};
    static std::array<iovec, 32> parts;
    parts.fill({payload.data(), payload.size()});
    TransmitGroups groups{};
    for (size_t kind = recovered ? 1 : 0; kind < kTransmitKinds; kind++)
      groups[kind] = {PayloadGroup{parts.data(), short_payloads, 1203},
                      PayloadGroup{parts.data(), long_payloads, 1228}};
    kernel.sent.clear();
    kernel.calls = 0;
    for (uint32_t tier = kTiers; tier-- > 0;) transmit.add(tier, groups, recovered);
    transmit.flush();
  }
  void check_order() const {
    for (size_t i = 1; i < kernel.sent.size(); i++)
      CHECK(entries[kernel.sent[i - 1]].tier >= entries[kernel.sent[i]].tier);
  }
};

}  // namespace

TEST(transmit_order_of_tiers_holds_for_all_mixtures_of_families_and_send_paths) {
  if (families().size() < 2) SKIP("needs IPv6");
  Random random{5};
  for (int round = 0; round < 300; round++) {
    OrderFixture fixture(!random.one_in(4), !random.one_in(3));
    for (int part = 0; part < 6; part++)
      fixture.add(uint32_t(random.below(random.one_in(3) ? 90 : 5)), uint8_t(random.below(3)),
                  random.one_in(2), random.one_in(2), random.one_in(3));
    if (random.one_in(4)) fixture.kernel.refused.insert(fixture.kernel.trigger_ipv4.fd());
    if (random.one_in(4)) fixture.kernel.refused.insert(fixture.kernel.trigger_ipv6.fd());
    fixture.use_lists();
    for (int batch = 0; batch < 4; batch++) {
      const auto short_payloads = uint32_t(random.below(8)),
                 long_payloads = uint32_t(random.below(8));
      const bool recovered = random.one_in(4);
      fixture.send(short_payloads, long_payloads, recovered);
      fixture.check_order();
      std::vector<uint32_t> expected;
      for (const DestinationEntry& entry : fixture.entries)
        if (!recovered || entry.wants_recovered)
          expected.insert(expected.end(), short_payloads + long_payloads, entry.id);
      std::sort(fixture.kernel.sent.begin(), fixture.kernel.sent.end());
      CHECK(fixture.kernel.sent == expected);
    }
  }
}

TEST(transmit_order_of_lists_of_one_send_path_costs_no_system_call) {
  if (families().size() < 2) SKIP("needs IPv6");
  for (const bool clones : {false, true}) {
    for (const bool is_ipv4 : {true, false}) {
      OrderFixture fixture;
      for (uint8_t tier = 0; tier < 3; tier++) fixture.add(10, tier, is_ipv4, clones);
      fixture.use_lists();
      fixture.send(1, 1);
      fixture.check_order();
      CHECK_EQ(fixture.kernel.sent.size(), 60u);
      CHECK_EQ(fixture.kernel.calls, 1u);
    }
  }
}

// Also if recovered shreds are sent after each batch, and if a family fills whole batches.
TEST(transmit_order_of_families_alternates_inside_a_tier) {
  if (families().size() < 2) SKIP("needs IPv6");
  for (const uint32_t ipv4_count : {2u, 40u, 128u, 200u}) {
    for (const bool recovered : {false, true}) {
      OrderFixture fixture(false);
      fixture.add(ipv4_count, 1, true, false, true);
      fixture.add(2, 1, false, false, true);
      fixture.add(2, 0, false, false);
      fixture.add(2, 0, true, false);
      fixture.use_lists();
      const uint32_t size = ipv4_count + 2;
      double ipv6_places = 0;
      for (uint32_t batch = 0; batch < 2 * size; batch++) {
        fixture.send(1, 0);
        fixture.check_order();
        for (uint32_t place = 0; place < size; place++)
          if (fixture.kernel.sent[place] >= ipv4_count) ipv6_places += place;
        if (recovered) fixture.send(1, 0, true);
      }
      const double mean = ipv6_places / (2.0 * 2.0 * size);
      CHECK(mean > 0.3 * size && mean < 0.7 * size);
    }
  }
}

}  // namespace shredway::test
