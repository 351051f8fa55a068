// Challenges and packets that only resemble one; limits on answers by the packets' own times.
#include "net/challenge_echo.h"

#include "net_support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

constexpr uint64_t kStart_ns = 1'800'000'000'000'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;

Bytes challenge_bytes(size_t length, uint8_t token) {
  Bytes bytes = {'S', 'W', 'P', 'R', 'O', 'O', 'F', '1'};
  bytes.resize(length, token);
  return bytes;
}

// A packet from 127.0.0.1:9 with the given bytes and time.
struct Challenge {
  Bytes bytes;
  Address from{ipv4(127, 0, 0, 1, 9)};
  uint64_t received_ns = kStart_ns;
  ReceivedPacket packet() {
    return {bytes.data(), static_cast<uint32_t>(bytes.size()), received_ns, &from.storage};
  }
};

// True if a challenge with this time is answered.
bool is_answered(ChallengeEcho& echo, uint64_t at_ns, uint8_t token) {
  Challenge challenge{challenge_bytes(24, token), Address(ipv4(127, 0, 0, 1, 9)), at_ns};
  return echo.answer(-1, challenge.packet());
}

}  // namespace

TEST(challenge_returns_unchanged_from_the_receiving_socket) {
  for (const bool is_ipv4 : families()) {
    const UdpSocket service = receiver(is_ipv4);
    const UdpSocket owner = receiver(is_ipv4);
    ChallengeEcho echo;
    ReceiveBatch batch;
    for (const size_t length : {size_t{24}, size_t{41}, size_t{64}}) {
      const Bytes bytes = challenge_bytes(length, static_cast<uint8_t>(length));
      const Address to(local_endpoint(owner.fd()));
      CHECK_EQ(sendto(service.fd(), bytes.data(), bytes.size(), 0, to.get(), to.bytes),
               static_cast<ssize_t>(length));
      pollfd entry = {owner.fd(), POLLIN, 0};
      CHECK_EQ(poll(&entry, 1, 2000), 1);
      CHECK_EQ(batch.receive(owner.fd()), 1u);
      CHECK(echo.answer(owner.fd(), batch.packet(0)));
      const auto back = arrivals(service.fd(), 1);
      CHECK_EQ(back.size(), 1u);
      if (back.empty()) return;
      CHECK(back[0].bytes == bytes);
      CHECK(back[0].from == local_endpoint(owner.fd()));
    }
  }
}

TEST(challenge_requires_its_magic_and_24_to_64_bytes) {
  FakeSend fake([](mmsghdr*, unsigned count) { return static_cast<int>(count); });
  for (size_t length = 0; length <= 200; length++) {
    ChallengeEcho echo(FakeSend::calls());
    Challenge challenge{challenge_bytes(length, 7)};
    challenge.bytes.resize(length);
    CHECK_EQ(echo.answer(-1, challenge.packet()), length >= 24 && length <= 64);
  }
  for (size_t at = 0; at < 8; at++) {
    ChallengeEcho echo(FakeSend::calls());
    Challenge challenge{challenge_bytes(24, 7)};
    challenge.bytes[at] ^= 0x20;
    CHECK(!echo.answer(-1, challenge.packet()));
  }
  // The buffer holds only the beginning of a longer one.
  ChallengeEcho echo(FakeSend::calls());
  Challenge whole{challenge_bytes(64, 7)};
  ReceivedPacket packet = whole.packet();
  packet.length = 5000;
  CHECK(!echo.answer(-1, packet));
}

TEST(challenge_answers_are_limited_to_16_per_second) {
  size_t sent = 0;
  FakeSend fake([&](mmsghdr*, unsigned count) {
    sent += count;
    return static_cast<int>(count);
  });
  ChallengeEcho echo(FakeSend::calls());
  uint8_t token = 0;
  // Answers late in one second do not allow as many early in the next.
  for (int i = 0; i < 40; i++)
    CHECK_EQ(is_answered(echo, kStart_ns + kSecondNs - 40 + static_cast<uint64_t>(i), token++),
             i < 16);
  for (int i = 0; i < 40; i++) CHECK(!is_answered(echo, kStart_ns + kSecondNs, token++));
  CHECK_EQ(sent, 16u);
  for (int i = 0; i < 40; i++)
    CHECK_EQ(is_answered(echo, kStart_ns + 2 * kSecondNs, token++), i < 16);
  CHECK_EQ(sent, 32u);
}

TEST(challenge_answers_continue_after_the_clock_was_set_back) {
  FakeSend fake([](mmsghdr*, unsigned count) { return static_cast<int>(count); });
  ChallengeEcho echo(FakeSend::calls());
  uint8_t token = 0;
  for (int i = 0; i < 16; i++) CHECK(is_answered(echo, kStart_ns, token++));
  CHECK(!is_answered(echo, kStart_ns - 1000, token++));  // a packet that arrived out of order
  const uint64_t hour_ns = 3600 * kSecondNs;
  for (int i = 0; i < 40; i++) CHECK_EQ(is_answered(echo, kStart_ns - hour_ns, token++), i < 16);
}

// Two machines that answer, and one datagram to one of them with the other as spoofed sender.
TEST(challenge_does_not_loop_between_two_answering_machines) {
  const UdpSocket sockets[2] = {receiver(true), receiver(true)};
  ChallengeEcho echoes[2];
  ReceiveBatch batch;
  const Bytes bytes = challenge_bytes(24, 9);
  const Address to(local_endpoint(sockets[0].fd()));
  CHECK_EQ(sendto(sockets[1].fd(), bytes.data(), bytes.size(), 0, to.get(), to.bytes), 24);
  size_t answers = 0;
  for (size_t turn = 0; turn < 100; turn++) {
    const size_t at = turn % 2;
    pollfd entry = {sockets[at].fd(), POLLIN, 0};
    if (poll(&entry, 1, answers < 2 * ChallengeEcho::kAnswersPerTokenMax ? 2000 : 0) <= 0) break;
    batch.receive(sockets[at].fd());
    if (echoes[at].answer(sockets[at].fd(), batch.packet(0))) answers++;
  }
  CHECK_EQ(answers, 2 * ChallengeEcho::kAnswersPerTokenMax);
}

TEST(challenge_refused_by_the_kernel_does_not_count) {
  int error_number = EAGAIN;
  FakeSend fake([&](mmsghdr*, unsigned) { return -error_number; });
  ChallengeEcho echo(FakeSend::calls());
  for (const int number : {EAGAIN, ENOBUFS, EPERM, EHOSTUNREACH, EINTR}) {
    error_number = number;
    for (int i = 0; i < 40; i++) CHECK(!is_answered(echo, kStart_ns, 1));
  }
  // None of them counted as an answer.
  error_number = -1;  // one message accepted
  CHECK(is_answered(echo, kStart_ns, 1));
}
