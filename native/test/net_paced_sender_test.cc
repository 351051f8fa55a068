// The paced sender over loopback: everything arrives, in order and not before its time; closed
// ports, full buffers and invalid lists do not stop it.
#include "net/paced_sender.h"

#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "net_support.h"

namespace shredway::test {
namespace {

uint64_t clock_ns(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

std::unique_ptr<PacedSender> open_to(const Endpoint& to,
                                     const SocketCalls& calls = system_socket_calls()) {
  PacedSenderOptions options;
  options.to = to;
  std::string error;
  std::unique_ptr<PacedSender> sender = PacedSender::open(options, error, calls);
  CHECK_EQ(error, std::string());
  return sender;
}

// `count` packets with an interval of every_ns, numbered from `first`.
PacedPackets numbered(uint32_t first, uint32_t count, uint64_t every_ns) {
  PacedPackets packets;
  packets.offsets.push_back(0);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t number = first + i;
    packets.bytes.resize(packets.bytes.size() + 4 + number % 1200, static_cast<uint8_t>(number));
    std::memcpy(packets.bytes.data() + packets.offsets.back(), &number, sizeof number);
    packets.offsets.push_back(static_cast<uint32_t>(packets.bytes.size()));
    packets.times_ns.push_back(i * every_ns);
  }
  return packets;
}

uint32_t number_of(const ReceivedDatagram& arrival) {
  uint32_t number = 0;
  std::memcpy(&number, arrival.bytes.data(), sizeof number);
  return number;
}

// Waits, at most half a minute, until nothing is queued.
void wait_until_played(const PacedSender& sender) {
  for (int i = 0; i < 30'000 && sender.counts().queued; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK_EQ(sender.counts().queued, 0u);
}

// A kernel with injected failures.
std::atomic<uint32_t> faults_left{0};
std::atomic<int> fault{0};
std::atomic<int> poll_result{1};
std::atomic<uint32_t> polls{0};

int failing_sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  CHECK(count >= 1 && count <= kSendBatchMax);
  if (faults_left.load() == 0) return sendmmsg(fd, messages, count, flags);
  faults_left--;
  errno = fault;
  return -1;
}

int counted_poll(pollfd*, nfds_t, int timeout_ms) {
  CHECK(timeout_ms <= 50);
  polls++;
  return poll_result;
}

const SocketCalls kFailingCalls = {&::recvmmsg, &failing_sendmmsg, &::recvmsg, &counted_poll};

TEST(paced_sender_sends_in_order_and_not_early) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket in = receiver(is_ipv4);
    const auto sender = open_to(local_endpoint(in.fd()));
    constexpr uint32_t kPackets = 600;
    constexpr uint64_t kEvery_ns = 100'000;
    const uint64_t before_ns = clock_ns(CLOCK_REALTIME);
    CHECK(sender->enqueue(numbered(0, kPackets, kEvery_ns)));
    CHECK(sender->enqueue(numbered(kPackets, kPackets, kEvery_ns)));
    const std::vector<ReceivedDatagram> got = arrivals(in.fd(), 2 * kPackets);
    CHECK_EQ(got.size(), 2 * kPackets);
    for (uint32_t i = 0; i < got.size(); i++) {
      CHECK_EQ(number_of(got[i]), i);
      CHECK_EQ(got[i].length, 4 + i % 1200);
      CHECK(got[i].from == sender->local() || !sender->local().port);
      // The second list starts after the last packet of the first. (A millisecond of tolerance: the
      // schedule uses another clock, which may be slewed against this one.)
      const uint64_t due_ns = (i < kPackets ? i : i - 1) * kEvery_ns;
      CHECK(got[i].received_ns + 1'000'000 >= before_ns + due_ns);
    }
    wait_until_played(*sender);
    CHECK_EQ(sender->counts().sent, 2 * kPackets);
    CHECK_EQ(sender->counts().failed, 0u);
    CHECK_EQ(sender->counts().refused, 0u);
    CHECK(sender->counts().late_max_ns > 0);
  }
}

TEST(paced_sender_sends_whole_bursts) {
  const UdpSocket in = receiver(true);
  faults_left = 0;
  const auto sender = open_to(local_endpoint(in.fd()), kFailingCalls);
  // Seventy due at once: more than one call can hold. Repeated, so that the receiver keeps up.
  for (uint32_t burst = 0; burst < 20; burst++) {
    CHECK(sender->enqueue(numbered(burst * 70, 70, 0)));
    const std::vector<ReceivedDatagram> got = arrivals(in.fd(), 70);
    CHECK_EQ(got.size(), 70u);
    for (uint32_t i = 0; i < got.size(); i++) CHECK_EQ(number_of(got[i]), burst * 70 + i);
  }
}

TEST(paced_sender_survives_a_closed_port) {
  for (const bool is_ipv4 : families()) {
    Endpoint dead;
    {
      const UdpSocket closed_soon = receiver(is_ipv4);
      dead = local_endpoint(closed_soon.fd());
    }
    const auto sender = open_to(dead);
    CHECK(sender->enqueue(numbered(0, 1000, 10'000)));
    wait_until_played(*sender);
    CHECK_EQ(sender->counts().sent, 1000u);
    CHECK_EQ(sender->counts().failed, 0u);
    CHECK(sender->counts().refused > 0);
  }
}

TEST(paced_sender_stops_in_the_middle_of_a_long_wait) {
  const UdpSocket in = receiver(true);
  const auto sender = open_to(local_endpoint(in.fd()));
  PacedPackets packets = numbered(0, 3, 0);
  packets.times_ns[1] = 3'600'000'000'000;
  packets.times_ns[2] = UINT64_MAX;
  CHECK(sender->enqueue(std::move(packets)));
  CHECK(sender->enqueue(numbered(0, 5, 0)));
  CHECK_EQ(arrivals(in.fd(), 1).size(), 1u);
  const uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
  sender->stop();
  CHECK(clock_ns(CLOCK_MONOTONIC) - before_ns < 60'000'000'000);
  CHECK_EQ(sender->counts().sent, 1u);
  CHECK_EQ(sender->counts().queued, 0u);
  CHECK(!sender->enqueue(numbered(0, 1, 0)));
  sender->stop();  // the second call has no effect
}

TEST(paced_sender_refuses_inconsistent_lists) {
  const UdpSocket in = receiver(true);
  const auto sender = open_to(local_endpoint(in.fd()));
  CHECK(!sender->enqueue({}));
  PacedPackets beyond = numbered(0, 3, 0);
  beyond.bytes.pop_back();
  CHECK(!sender->enqueue(beyond));
  PacedPackets falling = numbered(0, 3, 0);
  std::swap(falling.offsets[1], falling.offsets[2]);
  CHECK(!sender->enqueue(falling));
  PacedPackets timeless = numbered(0, 3, 0);
  timeless.times_ns.pop_back();
  CHECK(!sender->enqueue(timeless));
  CHECK_EQ(sender->counts().queued, 0u);
  CHECK(sender->enqueue({{}, {0}, {}}));      // no packet: nothing to send
  CHECK(sender->enqueue({{}, {0, 0}, {0}}));  // one packet without payload
  CHECK(sender->enqueue(numbered(9, 1, 0)));
  CHECK_EQ(arrivals(in.fd(), 2).size(), 2u);
}

TEST(paced_sender_accepts_lists_from_several_threads) {
  const UdpSocket in = receiver(true);
  const auto sender = open_to(local_endpoint(in.fd()));
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; i++)
    threads.emplace_back([&] {
      for (uint32_t list = 0; list < 50; list++) sender->enqueue(numbered(1, 2, 50'000));
    });
  const size_t arrived = arrivals(in.fd(), 400).size();
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(arrived, 400u);
}

TEST(paced_sender_reports_invalid_addresses) {
  std::string error;
  PacedSenderOptions options;
  options.to = loopback(true, 0);
  CHECK(!PacedSender::open(options, error));
  CHECK(error.find("with a port") != std::string::npos);
  options.to = loopback(true, 9);
  options.from = loopback(false, 0);
  CHECK(!PacedSender::open(options, error));
  CHECK(error.find("of the same address family") != std::string::npos);
  options.from = ipv4(192, 0, 2, 77);
  CHECK(!PacedSender::open(options, error));
  CHECK(error.find("192.0.2.77") != std::string::npos);
  options.from = ipv4(0, 0, 0, 0);
  CHECK(PacedSender::open(options, error) != nullptr);
  CHECK_EQ(error, std::string());
}

TEST(paced_sender_retries_temporary_failures) {
  const UdpSocket in = receiver(true);
  for (const int error_number : {EAGAIN, EINTR, ECONNREFUSED, EHOSTUNREACH}) {
    fault = error_number;
    faults_left = 10;
    poll_result = 1;
    polls = 0;
    const auto sender = open_to(local_endpoint(in.fd()), kFailingCalls);
    CHECK(sender->enqueue(numbered(0, 5, 0)));
    CHECK_EQ(arrivals(in.fd(), 5).size(), 5u);
    wait_until_played(*sender);
    CHECK_EQ(sender->counts().sent, 5u);
    CHECK_EQ(sender->counts().failed, 0u);
    CHECK_EQ(polls.load(), error_number == EAGAIN ? 10u : 0u);
  }
}

TEST(paced_sender_counts_refusals_of_the_kernel) {
  const UdpSocket in = receiver(true);
  for (const int error_number : {EAGAIN, EPERM, EMSGSIZE, ENOBUFS}) {
    fault = error_number;
    // EMSGSIZE may come from ICMP, so the send is retried; the others fail one packet per error.
    faults_left = error_number == EMSGSIZE ? 32 : 2;
    poll_result = 0;  // still full after the wait
    const auto sender = open_to(local_endpoint(in.fd()), kFailingCalls);
    CHECK(sender->enqueue(numbered(0, 5, 0)));
    const std::vector<ReceivedDatagram> got = arrivals(in.fd(), 3);
    CHECK_EQ(got.size(), 3u);
    for (uint32_t i = 0; i < got.size(); i++) CHECK_EQ(number_of(got[i]), i + 2);
    wait_until_played(*sender);
    CHECK_EQ(sender->counts().sent, 3u);
    CHECK_EQ(sender->counts().failed, 2u);
  }
}

}  // namespace
}  // namespace shredway::test
