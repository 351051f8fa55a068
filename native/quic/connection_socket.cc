#include "quic/connection_socket.h"

#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "net/thread.h"
#include "quic/packet_message.h"

namespace shredway {

struct ConnectionSocket::Memory {
  struct Batch {
    std::array<sockaddr_storage, kConnectionBatchMax> addresses;
    std::array<iovec, kConnectionBatchMax> parts;
    std::array<mmsghdr, kConnectionBatchMax> messages;

    void set(size_t at, uint8_t* bytes, size_t length, socklen_t address_bytes) {
      set_packet_message(messages[at], parts[at], bytes, length, addresses[at], address_bytes);
    }
  };
  Batch read;
  Batch sent;
  std::array<std::array<uint8_t, kConnectionPacketBytesMax>, kConnectionBatchMax> sent_bytes;
};

ConnectionSocket::ConnectionSocket(UdpSocket socket)
    : socket_(std::move(socket)),
      memory_(std::make_unique<Memory>()),
      drops_(receive_drops(socket_.fd())) {
  passed_.reserve(kConnectionBatchMax);
}

ConnectionSocket::~ConnectionSocket() = default;

const std::vector<ConnectionPacket>& ConnectionSocket::read_batch(uint8_t* memory) {
  using Verdict = ConnectionPackets::Verdict;
  Memory::Batch& batch = memory_->read;
  passed_.clear();
  for (size_t i = 0; i < kConnectionBatchMax; i++)
    batch.set(i, memory + i * kConnectionPacketBytesMax, kConnectionPacketBytesMax,
              sizeof batch.addresses[i]);
  const int count =
      recvmmsg(socket_.fd(), batch.messages.data(), kConnectionBatchMax, MSG_DONTWAIT, nullptr);
  was_full_ = count == static_cast<int>(kConnectionBatchMax);
  const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  for (int i = 0; i < count; i++) {
    const auto at = static_cast<size_t>(i);
    const Endpoint from =
        endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&batch.addresses[at]));
    if (from.is_link_local()) {
      packets_.refuse_link_local();
      continue;
    }
    const size_t length = batch.messages[at].msg_len;
    uint32_t number = 0;
    const Verdict verdict =
        packets_.judge({memory + at * kConnectionPacketBytesMax, length}, from, now_ns, number);
    if (verdict == Verdict::drop) continue;
    passed_.push_back({at, length, verdict == Verdict::stray, number, from});
  }
  return passed_;
}

void ConnectionSocket::send(std::span<const uint8_t> packet, const Endpoint& to) {
  if (waiting_ == kConnectionBatchMax) flush();
  Memory::Batch& batch = memory_->sent;
  auto& bytes = memory_->sent_bytes[waiting_];
  std::copy(packet.begin(), packet.end(), bytes.begin());
  batch.set(waiting_, bytes.data(), packet.size(), to_sockaddr(to, batch.addresses[waiting_]));
  waiting_++;
}

void ConnectionSocket::flush() {
  mmsghdr* const messages = memory_->sent.messages.data();
  for (size_t sent = 0; sent < waiting_;) {
    const int taken = sendmmsg(socket_.fd(), messages + sent,
                               static_cast<unsigned>(waiting_ - sent), MSG_DONTWAIT);
    if (taken > 0) {
      sent += static_cast<size_t>(taken);
      continue;
    }
    failures_.packets++;
    failures_.last_error = errno;
    sent++;
  }
  waiting_ = 0;
}

const ConnectionPacketCounts& ConnectionSocket::counts() {
  const uint32_t drops = receive_drops(socket_.fd());
  packets_.count_dropped(drops - drops_);
  drops_ = drops;
  return packets_.counts();
}

}  // namespace shredway
