// Which packets of connections are passed on, and which ids the kernel lets through.
#include "quic/connection_packets.h"

#include <sys/socket.h>

#include <random>
#include <string>
#include "check.h"
#include "net/udp_socket.h"
#include "quic/connection_ids.h"
#include "quic/connection_socket.h"
#include "support.h"

namespace shredway::test {
namespace connection_packets {
namespace {

using Verdict = ConnectionPackets::Verdict;

const ConnectionIds kIds(ConnectionIdKey{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13});
const Endpoint kClient = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1}, 9000};
constexpr uint64_t kStart_ns = 5'000'000'000;

std::string_view text_of(const ConnectionId& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

// With a short header.
Bytes packet_of(const ConnectionId& id, size_t length = 40) {
  Bytes packet(length, 0x40);
  std::copy(id.begin(), id.end(), packet.begin() + 1);
  return packet;
}

Endpoint loopback() { return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, 0}; }

// A bound socket, and another one that sends to it.
struct SocketPair {
  UdpSocket to = open_bound_socket(loopback()).socket;
  UdpSocket from = open_bound_socket(loopback()).socket;
  const Endpoint address = local_endpoint(to.fd());

  void send(const Bytes& packet) {
    sockaddr_storage storage;
    const socklen_t bytes = to_sockaddr(address, storage);
    CHECK_EQ(sendto(from.fd(), packet.data(), packet.size(), 0,
                    reinterpret_cast<const sockaddr*>(&storage), bytes),
             static_cast<ssize_t>(packet.size()));
  }
  // Loopback delivers within the call that sends.
  bool has_received() {
    uint8_t bytes[2048];
    return recv(to.fd(), bytes, sizeof bytes, MSG_DONTWAIT) >= 0;
  }
};

TEST(quic_connection_ids_recognise_their_own) {
  const ConnectionIds others(
      ConnectionIdKey{99, 5, 77, 201, 3, 17, 94, 52, 250, 6, 1, 8, 9, 40, 2});
  int accepted = 0;
  for (uint32_t number = 0; number < 100'000; number++) {
    const ConnectionId id = kIds.make(number * 2654435761u);
    CHECK(kIds.is_own(id));
    if (others.is_own(id)) accepted++;
    ConnectionId changed = id;
    changed[number % 8] ^= static_cast<uint8_t>(1 + number % 255);
    CHECK(!kIds.is_own(changed) || number % 8 < 4);
  }
  CHECK(accepted <= 1);
  CHECK(!kIds.is_own(Bytes(7)));
  CHECK(!kIds.is_own(Bytes(9)));
  CHECK(kIds.make_random() != kIds.make_random());
}

TEST(quic_connection_ids_filter_agrees_with_the_check) {
  SocketPair pair;
  CHECK(kIds.attach_filter(pair.to.fd()));
  std::mt19937_64 random(1);
  for (int i = 0; i < 3000; i++) {
    ConnectionId id = kIds.make(static_cast<uint32_t>(random()));
    for (uint64_t changes = random() % 3; changes > 0; changes--)
      id[random() % 8] ^= static_cast<uint8_t>(random());
    pair.send(packet_of(id));
    CHECK_EQ(pair.has_received(), kIds.is_own(id));
  }
  for (size_t length = 0; length < 9; length++) {
    pair.send(Bytes(length, 0x40));
    CHECK(!pair.has_received());
  }
  pair.send(packet_of(kIds.make(7), 9));
  CHECK(pair.has_received());
}

TEST(quic_connection_packets_pass_those_of_their_client) {
  ConnectionPackets packets;
  const ConnectionId id = kIds.make(1);
  packets.know(text_of(id), 42, kClient);
  uint32_t number = 0;
  CHECK(packets.judge(packet_of(id), kClient, kStart_ns, number) == Verdict::pass);
  CHECK_EQ(number, 42u);
  Endpoint other = kClient;
  other.port++;
  CHECK(packets.judge(packet_of(id), other, kStart_ns, number) == Verdict::drop);
  CHECK(packets.judge(packet_of(kIds.make(2)), kClient, kStart_ns, number) == Verdict::stray);
  CHECK(packets.judge(packet_of(id, 9), kClient, kStart_ns, number) == Verdict::pass);
  const Bytes whole = packet_of(id);
  for (size_t length = 0; length < 9; length++)
    CHECK(packets.judge(std::span(whole).first(length), kClient, kStart_ns, number) ==
          Verdict::stray);
  packets.forget(text_of(id));
  CHECK(packets.judge(packet_of(id), kClient, kStart_ns, number) == Verdict::stray);
  CHECK_EQ(packets.counts().received, 4u + 9 + 1);
  CHECK_EQ(packets.counts().unknown, 2u + 9 + 1);
}

TEST(quic_connection_packets_limit_each_connection) {
  ConnectionPackets packets;
  const ConnectionId flooding = kIds.make(1);
  const ConnectionId other = kIds.make(2);
  packets.know(text_of(flooding), 1, kClient);
  packets.know(text_of(other), 2, kClient);
  packets.admit(text_of(flooding));
  uint32_t number = 0;
  const auto judge = [&](const ConnectionId& id, uint64_t at_ns) {
    return packets.judge(packet_of(id), kClient, at_ns, number);
  };
  for (int i = 0; i < 1000; i++) CHECK(judge(flooding, kStart_ns) == Verdict::pass);
  for (int i = 0; i < 2000; i++) CHECK(judge(flooding, kStart_ns) == Verdict::drop);
  CHECK(!packets.is_flooded());
  CHECK(judge(flooding, kStart_ns) == Verdict::drop);
  CHECK(packets.is_flooded());
  CHECK(judge(other, kStart_ns) == Verdict::pass);
  CHECK(judge(kIds.make(3), kStart_ns) == Verdict::stray);
  constexpr uint64_t kLater_ns = kStart_ns + 1'000'000;
  for (int i = 0; i < 20; i++) CHECK(judge(flooding, kLater_ns) == Verdict::pass);
  CHECK(judge(flooding, kLater_ns) == Verdict::drop);
  CHECK(judge(other, kStart_ns + kSecond_ns) == Verdict::pass);
  CHECK(!packets.is_flooded());
  CHECK_EQ(packets.counts().limited, 2002u);
  CHECK_EQ(packets.counts().unknown, 1u);
}

TEST(quic_connection_packets_give_clients_little_before_they_are_admitted) {
  ConnectionPackets packets;
  const ConnectionId id = kIds.make(1);
  packets.know(text_of(id), 1, kClient);
  uint32_t number = 0;
  const auto judge = [&](uint64_t at_ns) {
    return packets.judge(packet_of(id), kClient, at_ns, number);
  };
  for (int i = 0; i < 200; i++) CHECK(judge(kStart_ns) == Verdict::pass);
  CHECK(judge(kStart_ns) == Verdict::drop);
  CHECK(judge(kStart_ns + 5'000'000) == Verdict::pass);
  CHECK(judge(kStart_ns + 5'000'000) == Verdict::drop);
  packets.admit(text_of(id));
  packets.admit(text_of(kIds.make(2)));  // unknown
  for (int i = 0; i < 1000; i++) CHECK(judge(kStart_ns + 5'000'000) == Verdict::pass);
}

TEST(quic_connection_packets_limit_each_address) {
  ConnectionPackets packets;
  const auto begin = [&](uint32_t number, const Endpoint& remote) {
    const ConnectionId id = kIds.make(number);
    packets.know(text_of(id), number, remote);
    packets.admit(text_of(id));
  };
  Endpoint other = kClient;
  other.address[15]++;
  for (uint32_t number = 0; number < 3; number++) {
    Endpoint remote = kClient;
    remote.port = static_cast<uint16_t>(remote.port + number);
    begin(number, remote);
  }
  begin(3, other);
  const auto passed_of = [&](uint32_t of, Endpoint remote) {
    uint32_t number = 0;
    uint64_t passed = 0;
    for (int i = 0; i < 5000; i++)
      passed += packets.judge(packet_of(kIds.make(of)), remote, kStart_ns, number) == Verdict::pass;
    return passed;
  };
  const auto port_of = [](uint32_t number) {
    Endpoint remote = kClient;
    remote.port = static_cast<uint16_t>(remote.port + number);
    return remote;
  };
  CHECK_EQ(passed_of(0, port_of(0)), 1000u);
  CHECK_EQ(passed_of(1, port_of(1)), 1000u);
  CHECK_EQ(passed_of(2, port_of(2)), 0u);
  CHECK_EQ(passed_of(3, other), 1000u);
  // A new connection of the address does not renew its share.
  packets.forget(text_of(kIds.make(0)));
  begin(0, kClient);
  CHECK_EQ(passed_of(0, port_of(0)), 0u);
}

TEST(quic_connection_packets_limit_strays_but_nothing_else) {
  ConnectionPackets packets;
  const ConnectionId id = kIds.make(1);
  packets.know(text_of(id), 1, kClient);
  const Bytes stray = packet_of(kIds.make(2));
  uint32_t number = 0;
  int strays = 0;
  while (packets.judge(stray, kClient, kStart_ns, number) == Verdict::stray) strays++;
  CHECK_EQ(strays, 1000);
  CHECK(!packets.is_flooded());
  for (int i = 0; i < 1000; i++)
    CHECK(packets.judge(stray, kClient, kStart_ns, number) == Verdict::drop);
  CHECK(packets.is_flooded());
  CHECK(packets.judge(packet_of(id), kClient, kStart_ns, number) == Verdict::pass);
  CHECK(packets.judge(stray, kClient, kStart_ns + kSecond_ns, number) == Verdict::stray);
  CHECK(!packets.is_flooded());
}

TEST(quic_connection_socket_reads_what_its_connections_sent) {
  SocketPair pair;
  const Endpoint client = local_endpoint(pair.from.fd());
  const ConnectionId id = kIds.make(5);
  CHECK(kIds.attach_filter(pair.to.fd()));
  for (size_t i = 0; i < kConnectionBatchMax + 6; i++) pair.send(packet_of(id, 40 + i));
  pair.send(packet_of(kIds.make(6)));
  pair.send(Bytes(100, 0x55));  // dropped before
  ConnectionSocket socket(std::move(pair.to));
  socket.packets().know(text_of(id), 9, client);
  Bytes memory(kConnectionBatchMax * kConnectionPacketBytesMax);
  const auto first = socket.read_batch(memory.data());
  CHECK_EQ(first.size(), kConnectionBatchMax);
  CHECK(socket.was_full());
  for (size_t i = 0; i < first.size(); i++) {
    CHECK(first[i].slot == i && first[i].length == 40 + i && first[i].number == 9);
    CHECK(!first[i].is_stray && first[i].from == client);
    const Bytes sent = packet_of(id, 40 + i);
    CHECK(std::equal(sent.begin(), sent.end(),
                     memory.begin() + static_cast<long>(i * kConnectionPacketBytesMax)));
  }
  const auto second = socket.read_batch(memory.data());
  CHECK_EQ(second.size(), 7u);
  CHECK(second.back().is_stray && !socket.was_full());
  CHECK(socket.read_batch(memory.data()).empty());
  CHECK_EQ(socket.counts().received, kConnectionBatchMax + 7);
  CHECK_EQ(socket.counts().unknown, 1u);
  pair.send(Bytes(100, 0x55));
  pair.send(Bytes(100, 0x55));
  CHECK_EQ(socket.counts().received, kConnectionBatchMax + 9);
  CHECK_EQ(socket.counts().unknown, 3u);
}

TEST(quic_connection_socket_sends_in_order_and_counts_refusals) {
  SocketPair pair;
  const Endpoint peer = local_endpoint(pair.from.fd());
  ConnectionSocket socket(std::move(pair.to));
  const size_t count = 2 * kConnectionBatchMax + 3;
  for (size_t i = 0; i < count; i++) socket.send(Bytes(i + 1, 7), peer);
  socket.send(Bytes(5), {});  // no address
  socket.send(Bytes(3), peer);
  socket.flush();
  uint8_t bytes[2048];
  for (size_t i = 0; i < count; i++)
    CHECK_EQ(recv(pair.from.fd(), bytes, sizeof bytes, MSG_DONTWAIT), static_cast<ssize_t>(i + 1));
  CHECK_EQ(recv(pair.from.fd(), bytes, sizeof bytes, MSG_DONTWAIT), 3);
  CHECK_EQ(socket.failures().packets, 1u);
  CHECK(socket.failures().last_error != 0);
}

}  // namespace
}  // namespace connection_packets
}  // namespace shredway::test
