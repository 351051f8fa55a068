// Which first packets are passed on, answered or dropped.
#include "quic/first_packets.h"

#include <algorithm>
#include <random>
#include "check.h"

#include "support.h"

namespace shredway::test {
namespace {

using Verdict = FirstPackets::Verdict;

const RetryKey kPacketKey = {7};
const Endpoint kStranger = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}, 9000};
constexpr uint64_t kStart_ns = 5'000'000'000;

struct Fields {
  uint8_t first = 0xc0;
  uint32_t version = 1;
  Bytes original = {1, 2, 3, 4, 5, 6, 7, 8};
  Bytes client = {9, 9};
  Bytes token = {};
  size_t length = 1200;
};

Bytes packet_of(const Fields& fields) {
  Bytes bytes = {fields.first};
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<uint8_t>(fields.version >> shift));
  for (const Bytes& id : {fields.original, fields.client}) {
    bytes.push_back(static_cast<uint8_t>(id.size()));
    bytes.insert(bytes.end(), id.begin(), id.end());
  }
  bytes.push_back(0x40);  // the length of the token takes two bytes
  bytes.push_back(static_cast<uint8_t>(fields.token.size()));
  bytes.insert(bytes.end(), fields.token.begin(), fields.token.end());
  bytes.resize(std::max(bytes.size(), fields.length));
  return bytes;
}

struct FirstPacketLab {
  FirstPackets packets{kPacketKey, ConnectionIds(ConnectionIdKey{3})};
  RetryPacket answer{};

  Verdict judge(const Bytes& packet, uint64_t at_ns = kStart_ns) {
    return packets.judge(packet, kStranger, at_ns, answer);
  }
  Verdict judge(const Fields& fields, uint64_t at_ns = kStart_ns) {
    return judge(packet_of(fields), at_ns);
  }
  // Until senders have to prove their address.
  void use_up(uint64_t at_ns = kStart_ns) {
    while (judge(Fields{}, at_ns) == Verdict::pass) {
    }
  }
};

TEST(quic_first_packets_pass_a_few_and_ask_the_others_for_a_token) {
  FirstPacketLab lab;
  int passed = 0;
  while (lab.judge(Fields{}) == Verdict::pass) passed++;
  CHECK_EQ(passed, 4);
  CHECK(lab.judge(Fields{}) == Verdict::retry);
  CHECK(lab.judge(Fields{}, kStart_ns + 10'000'000) == Verdict::pass);
  CHECK(lab.judge(Fields{}, kStart_ns + 10'000'000) == Verdict::retry);
  passed = 0;
  while (lab.judge(Fields{}, kStart_ns + 10 * kSecond_ns) == Verdict::pass) passed++;
  CHECK_EQ(passed, 4);
  CHECK_EQ(lab.packets.counts().retries, 4u);
  CHECK_EQ(lab.packets.counts().received, 4u + 1 + 1 + 1 + 1 + 5);
}

TEST(quic_first_packets_pass_a_sender_that_returns_its_token) {
  FirstPacketLab lab;
  lab.use_up();
  const Bytes answer(lab.answer.bytes.begin(),
                     lab.answer.bytes.begin() + static_cast<long>(lab.answer.length));
  Fields second;
  second.original.assign(answer.begin() + 9, answer.begin() + 17);  // the id that it was given
  second.token.assign(answer.begin() + 17, answer.end() - 16);
  CHECK_EQ(answer[5], 2);
  CHECK_EQ(answer[8], 8);
  CHECK(lab.judge(second) == Verdict::pass);
  for (int i = 1; i < 50; i++) CHECK(lab.judge(second) == Verdict::pass);
  CHECK(lab.judge(second) == Verdict::drop);
  CHECK(lab.judge(second, kStart_ns + 10'000'000) == Verdict::pass);
  CHECK_EQ(lab.packets.counts().limited, 1u);
}

TEST(quic_first_packets_take_a_foreign_token_for_none) {
  FirstPacketLab lab;
  const Fields foreign{.token = Bytes(70, 3)};  // of a server with the same name
  for (int i = 0; i < 4; i++) CHECK(lab.judge(foreign) == Verdict::pass);
  CHECK(lab.judge(foreign) == Verdict::retry);
  const uint8_t* const answer = lab.answer.bytes.data();
  Fields second{.original = Bytes(answer + 9, answer + 17),
                .token = Bytes(answer + 17, answer + lab.answer.length - 16)};
  CHECK(lab.judge(second) == Verdict::pass);
  lab.use_up();
  CHECK(lab.judge(second, kStart_ns + 16 * kSecond_ns) == Verdict::pass);  // as if it had none
  second.token[20] ^= 1;
  CHECK(lab.judge(second) == Verdict::retry);
  CHECK_EQ(lab.packets.counts().invalid_tokens, 7u);
}

TEST(quic_first_packets_give_each_sender_another_id) {
  FirstPacketLab lab;
  lab.use_up();
  const auto first = lab.answer.bytes;
  CHECK(lab.judge(Fields{}) == Verdict::retry);
  CHECK(!std::equal(first.begin() + 9, first.begin() + 17, lab.answer.bytes.begin() + 9));
}

TEST(quic_first_packets_pass_everything_of_known_connections) {
  FirstPacketLab lab;
  lab.use_up();
  Fields handshake{.first = 0xe0, .original = {4, 4, 4}, .length = 40};
  CHECK(lab.judge(handshake) == Verdict::drop);
  lab.packets.know({"\4\4\4", 3});
  CHECK(lab.judge(handshake) == Verdict::pass);
  handshake.version = 77;
  CHECK(lab.judge(handshake) == Verdict::pass);
  lab.packets.forget({"\4\4\4", 3});
  handshake.version = 1;
  CHECK(lab.judge(handshake) == Verdict::drop);
  CHECK_EQ(lab.packets.counts().unknown, 2u);
}

TEST(quic_first_packets_limit_known_connections) {
  FirstPacketLab lab;
  const Fields handshake{.first = 0xe0, .original = {4, 4, 4}, .length = 40};
  const Fields other{.first = 0xe0, .original = {5, 5, 5}, .length = 40};
  lab.packets.know({"\4\4\4", 3});
  lab.packets.know({"\5\5\5", 3});
  for (int i = 0; i < 100; i++) CHECK(lab.judge(handshake) == Verdict::pass);
  for (int i = 0; i < 50; i++) CHECK(lab.judge(handshake) == Verdict::drop);
  CHECK(lab.judge(other) == Verdict::pass);
  CHECK(lab.judge(handshake, kStart_ns + 10'000'000) == Verdict::pass);
  CHECK(lab.judge(handshake, kStart_ns + 10'000'000) == Verdict::drop);
  CHECK_EQ(lab.packets.counts().limited_packets, 51u);
  CHECK_EQ(lab.packets.counts().limited, 0u);
}

TEST(quic_first_packets_limit_retries_and_other_versions) {
  FirstPacketLab lab;
  lab.use_up();
  int retries = 1;
  while (lab.judge(Fields{}) == Verdict::retry) retries++;
  CHECK_EQ(retries, 500);
  CHECK_EQ(lab.packets.counts().limited, 1u);
  for (int i = 1; i <= 5'000; i++)
    CHECK(lab.judge(Fields{}, kStart_ns + static_cast<uint64_t>(i) * 200'000) != Verdict::drop);
  const uint64_t end_ns = kStart_ns + kSecond_ns;
  retries = 0;
  while (lab.judge(Fields{}, end_ns) == Verdict::retry) retries++;
  CHECK(retries < 50);
  CHECK(lab.packets.is_flooded());
  int others = 0;
  while (lab.judge(Fields{.version = 2}, end_ns) == Verdict::pass) others++;
  CHECK_EQ(others, 1000);
  CHECK(lab.judge(Fields{.version = 2}, end_ns + kSecond_ns) == Verdict::pass);
}

TEST(quic_first_packets_ask_everyone_for_a_token_until_a_second_after_a_flood) {
  FirstPacketLab lab;
  for (int i = 0; i <= 2000; i++) (void)lab.judge(Fields{});
  CHECK(lab.packets.is_flooded());
  CHECK(lab.judge(Fields{}, kStart_ns + kSecond_ns) == Verdict::retry);
  CHECK(lab.packets.is_flooded());
  CHECK(lab.judge(Fields{}, kStart_ns + 2 * kSecond_ns) == Verdict::pass);
  CHECK(!lab.packets.is_flooded());
  for (int i = 0; i <= 2000; i++) (void)lab.judge(Fields{}, kStart_ns + 3 * kSecond_ns);
  CHECK(lab.judge(Fields{}, kStart_ns + 5 * kSecond_ns) == Verdict::pass);
}

TEST(quic_first_packets_count_what_the_kernel_dropped) {
  FirstPacketLab lab;
  lab.packets.count_dropped(7);
  CHECK_EQ(lab.packets.counts().received, 7u);
  CHECK_EQ(lab.packets.counts().limited, 7u);
}

TEST(quic_first_packets_drop_what_cannot_begin_a_connection) {
  FirstPacketLab lab;
  for (const Fields& fields :
       {Fields{.length = 1199}, Fields{.first = 0x40}, Fields{.first = 0xd0}, Fields{.first = 0xf0},
        Fields{.original = Bytes(7)}, Fields{.original = Bytes(21)}, Fields{.client = Bytes(21)}})
    CHECK(lab.judge(fields) == Verdict::drop);
  const Bytes fine = packet_of({});
  for (size_t length = 0; length < 20; length++)
    CHECK(lab.judge(Bytes(fine.begin(), fine.begin() + static_cast<long>(length))) ==
          Verdict::drop);
  Bytes long_token = fine;
  long_token[17] = 0xff;  // a token of 2^62 bytes
  CHECK(lab.judge(long_token) == Verdict::drop);
  CHECK_EQ(lab.packets.counts().unknown, 7u + 20 + 1);
  CHECK(lab.judge(fine) == Verdict::pass);
}

TEST(quic_first_packets_survive_arbitrary_packets) {
  FirstPacketLab lab;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; i++) {
    Bytes bytes = packet_of({});
    bytes.resize(random() % 2 == 0 ? random() % 40 : 1200);
    for (size_t changes = random() % 6; changes > 0 && !bytes.empty(); changes--)
      bytes[random() % std::min<size_t>(bytes.size(), 30)] = static_cast<uint8_t>(random());
    (void)lab.judge(bytes, kStart_ns + static_cast<uint64_t>(i) * 1'000'000);
  }
  const FirstPacketCounts& counts = lab.packets.counts();
  CHECK_EQ(counts.received, 200'000u);
  CHECK(counts.retries + counts.unknown + counts.limited < 200'000);
}

}  // namespace
}  // namespace shredway::test
