// The relay over real sockets: which challenges it answers, and the verdicts of the others.
#include <numeric>

#include "loopback_relay.h"

using namespace shredway;
using namespace shredway::test;

namespace {

Bytes challenge(size_t length, uint8_t token) {
  Bytes bytes = {'S', 'W', 'P', 'R', 'O', 'O', 'F', '1'};
  bytes.resize(length, token);
  return bytes;
}

WorkerOptions answering() {
  WorkerOptions options = LoopbackRelay::default_worker();
  options.answer_challenges = true;
  return options;
}

}  // namespace

TEST(relay_answers_challenges_of_its_sources_and_nothing_else) {
  LoopbackRelay relayed(answering(), false);
  const std::vector<Bytes> answered = {challenge(24, 1), challenge(40, 2), challenge(64, 3)};
  Bytes other_magic = challenge(24, 4);
  other_magic[7] = '2';
  const std::vector<Bytes> others = {challenge(23, 5), challenge(65, 6), challenge(132, 7),
                                     challenge(1203, 8), other_magic};
  for (const Bytes& packet : answered) relayed.tier1_source.send(relayed.in(), packet);
  for (const Bytes& packet : others) relayed.tier1_source.send(relayed.in(), packet);
  relayed.stranger.send(relayed.in(), challenge(24, 9));
  CHECK(relayed.tier1_source.receive(answered.size()) == answered);
  CHECK(relayed.stranger.receive(0).empty());
  const auto counts = relayed.counts(answered.size() + others.size() + 1);
  CHECK_EQ(counts.verdict("challenge"), answered.size());
  CHECK_EQ(counts.verdict("too_short"), 3u);        // 23 bytes; another magic; from a stranger
  CHECK_EQ(counts.verdict("unknown_variant"), 3u);  // long enough to have a variant
}

TEST(relay_answers_challenges_over_ipv6) {
  if (!ipv6_supported()) SKIP("this machine has no IPv6");
  Endpoint loopback;
  loopback.address[15] = 1;
  const SocketResult service = open_receive_socket({loopback, 1u << 20, false});
  if (!service.error.empty()) SKIP("this machine has no IPv6 loopback");
  RelayOptions options;
  options.listen = {loopback};
  options.worker = answering();
  std::string error;
  const auto relay = Relay::open(options, error);
  CHECK_EQ(error, std::string());
  if (!relay) return;
  Bytes sources = source_table({{"127.0.0.1", 32, 0, 0, relay->addresses()[0].port}});
  sources[8 + 3] = 0;  // any address, identified by its own port
  std::fill(sources.begin() + 16, sources.begin() + 32, uint8_t{0});
  CHECK_EQ(relay->publish_sources(sources.data(), sources.size()), std::string());
  sockaddr_storage to{};
  const socklen_t to_bytes = to_sockaddr(relay->addresses()[0], to);
  const Bytes sent = challenge(24, 1);
  CHECK_EQ(sendto(service.socket.fd(), sent.data(), sent.size(), 0,
                  reinterpret_cast<sockaddr*>(&to), to_bytes),
           24);
  pollfd entry = {service.socket.fd(), POLLIN, 0};
  CHECK_EQ(poll(&entry, 1, 2000), 1);
  ReceiveBatch batch;
  CHECK_EQ(batch.receive(service.socket.fd()), 1u);
  if (batch.size() == 0) return;
  const ReceivedPacket packet = batch.packet(0);
  CHECK(Bytes(packet.bytes, packet.bytes + packet.length) == sent);
  CHECK(endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(packet.sender)) ==
        relay->addresses()[0]);
}

TEST(relay_ignores_challenges_unless_enabled) {
  LoopbackRelay relayed;
  relayed.tier1_source.send(relayed.in(), challenge(24, 1));
  const auto counts = relayed.counts(1);
  CHECK_EQ(counts.verdict("too_short"), 1u);
  CHECK(relayed.tier1_source.receive(0).empty());
}

TEST(relay_limits_answers_and_forwards_every_shred_in_a_flood_of_challenges) {
  LoopbackRelay relayed(answering());
  const auto slot = make_slot({.slot = kSlot, .fec_sets = 2});
  const auto begin = std::chrono::system_clock::now();
  for (size_t i = 0; i < slot.packets.size(); i++) {
    relayed.tier1_source.send(relayed.in(), slot.packets[i]);
    relayed.tier2_source.send(relayed.in(), challenge(24, static_cast<uint8_t>(i)));
    relayed.tier2_source.send(relayed.in(), challenge(24, static_cast<uint8_t>(i)));
  }
  CHECK_EQ(relayed.tier1.receive(slot.packets.size()).size(), slot.packets.size());
  const auto counts = relayed.counts(3 * slot.packets.size());
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(std::chrono::system_clock::now() - begin);
  CHECK_EQ(counts.verdict("first"), slot.packets.size());
  CHECK_EQ(counts.verdict("challenge") + counts.verdict("too_short"), 2 * slot.packets.size());
  CHECK(counts.verdict("challenge") >= 16);
  CHECK(counts.verdict("challenge") <= 16 * static_cast<uint64_t>(seconds.count()));
  CHECK_EQ(relayed.tier2_source.receive(counts.verdict("challenge")).size(),
           counts.verdict("challenge"));
}
