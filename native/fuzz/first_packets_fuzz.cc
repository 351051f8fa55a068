// Fuzz target of the QUIC process's first packets.
//
// The input is a packet. It is judged among a few others, as from the network. Invariants: no read
// beyond the packet; an answer fits its buffer and is smaller than a third of the packet; the next
// packet of an answered sender, with its token, is passed on.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "quic/first_packets.h"

using namespace shredway;

namespace {

using Verdict = FirstPackets::Verdict;

void require(bool holds) {
  if (!holds) std::abort();
}

Endpoint sender() {
  Endpoint from;
  from.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1};
  from.port = 9000;
  return from;
}

// The packet that the sender of an answered one sends next: the ids and the token of the answer.
std::vector<uint8_t> next_packet(const RetryPacket& answer) {
  const auto begin = answer.bytes.begin();
  const size_t client_bytes = answer.bytes[5];
  const auto own_at = static_cast<std::ptrdiff_t>(7 + client_bytes);
  const auto token_at = own_at + static_cast<std::ptrdiff_t>(kOwnQuicIdBytes);
  const auto token_end = static_cast<std::ptrdiff_t>(answer.length - 16);
  std::vector<uint8_t> packet = {0xc0, 0, 0, 0, 1, kOwnQuicIdBytes};
  packet.insert(packet.end(), begin + own_at, begin + token_at);
  packet.push_back(0);
  packet.push_back(0x40);
  packet.push_back(static_cast<uint8_t>(token_end - token_at));
  packet.insert(packet.end(), begin + token_at, begin + token_end);
  packet.resize(1200);
  return packet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);
  std::copy_n(data, size, exact.get());
  FirstPackets packets(RetryKey{1}, ConnectionIds(ConnectionIdKey{2}));
  RetryPacket answer;
  for (int i = 0; i < 6; i++) {
    if (packets.judge({exact.get(), size}, sender(), 1, answer) != Verdict::retry) continue;
    require(answer.length <= answer.bytes.size() && 3 * answer.length < size);
    RetryPacket unused;
    require(packets.judge(next_packet(answer), sender(), 2, unused) == Verdict::pass);
  }
  return 0;
}
