#include "quic/first_packet_socket.h"

#include <sys/socket.h>
#include <time.h>

#include <utility>

#include "net/thread.h"
#include "quic/packet_message.h"

namespace shredway {
struct FirstPacketSocket::Memory {
  std::array<std::array<uint8_t, kFirstPacketBytesMax>, kFirstPacketBatchMax> packets;
  std::array<sockaddr_storage, kFirstPacketBatchMax> addresses;
  std::array<iovec, kFirstPacketBatchMax> parts;
  std::array<mmsghdr, kFirstPacketBatchMax> messages;
  std::array<RetryPacket, kFirstPacketBatchMax> answers;
  std::array<iovec, kFirstPacketBatchMax> answer_parts;
  std::array<mmsghdr, kFirstPacketBatchMax> answer_messages;
};

FirstPacketSocket::FirstPacketSocket(UdpSocket socket, const RetryKey& key,
                                     const ConnectionIds& ids)
    : socket_(std::move(socket)),
      packets_(key, ids),
      memory_(std::make_unique<Memory>()),
      drops_(receive_drops(socket_.fd())) {
  passed_.reserve(kFirstPacketBatchMax);
  // An earlier process may have left its filter on the socket.
  detach_filter(socket_.fd());
}

FirstPacketSocket::~FirstPacketSocket() = default;

void FirstPacketSocket::adjust() {
  if (!can_filter_ || !share_.adjust(packets_.counts().unproven, clock_ns(CLOCK_MONOTONIC))) return;
  if (share_.is_all()) {
    detach_filter(socket_.fd());
  } else if (!attach_flood_filter(socket_.fd(), share_.parts())) {
    can_filter_ = false;
    share_ = {};
  }
}

const FirstPacketCounts& FirstPacketSocket::counts() {
  const uint32_t drops = receive_drops(socket_.fd());
  packets_.count_dropped(drops - drops_);
  drops_ = drops;
  return packets_.counts();
}

const std::vector<PassedPacket>& FirstPacketSocket::handle_batch() {
  Memory& memory = *memory_;
  passed_.clear();
  for (size_t i = 0; i < kFirstPacketBatchMax; i++) {
    set_packet_message(memory.messages[i], memory.parts[i], memory.packets[i].data(),
                       kFirstPacketBytesMax, memory.addresses[i], sizeof memory.addresses[i]);
  }
  const int count =
      recvmmsg(socket_.fd(), memory.messages.data(), kFirstPacketBatchMax, MSG_DONTWAIT, nullptr);
  const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  was_full_ = count == static_cast<int>(kFirstPacketBatchMax);
  unsigned answers = 0;
  for (int i = 0; i < count; i++) {
    const auto at = static_cast<size_t>(i);
    const auto* address = reinterpret_cast<const sockaddr*>(&memory.addresses[at]);
    const Endpoint from = endpoint_from_sockaddr(address);
    const ByteView packet(memory.packets[at].data(), memory.messages[at].msg_len);
    RetryPacket& answer = memory.answers[answers];
    const auto verdict = from.is_link_local() ? packets_.refuse_link_local()
                                              : packets_.judge(packet, from, now_ns, answer);
    if (verdict == FirstPackets::Verdict::pass) passed_.push_back({packet, from});
    if (verdict != FirstPackets::Verdict::retry) continue;
    set_packet_message(memory.answer_messages[answers], memory.answer_parts[answers],
                       answer.bytes.data(), answer.length, memory.addresses[at],
                       memory.messages[at].msg_hdr.msg_namelen);
    answers++;
  }
  // An answer that the kernel refuses is lost: the client sends its packet again.
  for (unsigned sent = 0; sent < answers;) {
    const int taken =
        sendmmsg(socket_.fd(), memory.answer_messages.data() + sent, answers - sent, MSG_DONTWAIT);
    sent += taken > 0 ? static_cast<unsigned>(taken) : 1;
  }
  return passed_;
}

}  // namespace shredway
