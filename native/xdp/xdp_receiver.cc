#include "xdp/xdp_receiver.h"

#include <time.h>

#include <cstring>

#include "xdp/xdp_datagram.h"
#include "xdp/xdp_receive_code.h"

namespace shredway {
namespace {

static_assert(kReceiveTimeBytes <= XdpSocket::kXdpHeadroomBytes);
constexpr uint64_t kWaitMax_ns = 10'000'000'000;  // an older receive time is not one

void write_sender(const Endpoint& from, sockaddr_storage& out) {
  if (from.is_ipv4()) {
    auto& ipv4 = reinterpret_cast<sockaddr_in&>(out);
    ipv4.sin_family = AF_INET;
    ipv4.sin_port = htons(from.port);
    std::memcpy(&ipv4.sin_addr, from.address.data() + kIpv4At, sizeof ipv4.sin_addr);
  } else {
    auto& ipv6 = reinterpret_cast<sockaddr_in6&>(out);
    ipv6.sin6_family = AF_INET6;
    ipv6.sin6_port = htons(from.port);
    std::memcpy(&ipv6.sin6_addr, from.address.data(), sizeof ipv6.sin6_addr);
  }
}

}  // namespace

XdpReceiver::XdpReceiver(std::span<XdpSocket* const> sockets, const SocketCalls& calls)
    : calls_(calls) {
  for (XdpSocket* socket : sockets) {
    sockets_.push_back({socket, {}});
    sockets_.back().returning.reserve(kXdpReceiveFrames);
  }
}

// Begins with another socket each time, so that none of them is always last.
std::span<const ReceivedPacket> XdpReceiver::receive() {
  release();
  taken_ = count_ = 0;
  has_time_ = false;
  for (size_t i = 0; i < sockets_.size() && taken_ < kReceiveBatchMax; i++)
    take(sockets_[(first_ + i) % sockets_.size()]);
  first_++;
  return std::span(packets_).first(count_);
}

void XdpReceiver::take(Own& own) {
  uint8_t* frame = nullptr;
  uint32_t bytes = 0;
  for (; taken_ < kReceiveBatchMax && own.socket->next_received(frame, bytes); taken_++) {
    own.returning.push_back(frame);
    if (read(frame, bytes)) count_++;
    else refused_++;
  }
}

bool XdpReceiver::read(uint8_t* frame, uint32_t bytes) {
  XdpDatagram datagram;
  const uint64_t received_ns = receive_time(frame);
  if (read_xdp_frame(frame, bytes, datagram) != FrameFault::none) return false;
  sockaddr_storage& sender = senders_[count_];
  write_sender(datagram.from, sender);
  packets_[count_] = {frame + (datagram.payload - frame),
                      datagram.length,
                      received_ns,
                      &sender,
                      nullptr,
                      datagram.to.port};
  return true;
}

// The time is removed, so that a frame of a driver that writes none has none.
uint64_t XdpReceiver::receive_time(uint8_t* frame) {
  uint64_t received_ns;
  std::memcpy(&received_ns, frame - sizeof received_ns, sizeof received_ns);
  std::memset(frame - sizeof received_ns, 0, sizeof received_ns);
  if (!has_time_) {
    now_ns_ = calls_.clock_ns(CLOCK_REALTIME);
    monotonic_now_ns_ = calls_.clock_ns(CLOCK_MONOTONIC);
    has_time_ = true;
  }
  const uint64_t waited_ns = monotonic_now_ns_ - received_ns;
  return waited_ns < kWaitMax_ns ? now_ns_ - waited_ns : now_ns_;
}

void XdpReceiver::release() {
  for (Own& own : sockets_) {
    if (!own.returning.empty() && own.socket->refill(own.returning)) own.returning.clear();
    if (!own.socket->needs_receive_wakeup()) continue;
    msghdr nothing{};
    (void)calls_.recvmsg(own.socket->fd(), &nothing, MSG_DONTWAIT);
  }
}

std::vector<int> XdpReceiver::descriptors() const {
  std::vector<int> descriptors;
  for (const Own& own : sockets_) descriptors.push_back(own.socket->fd());
  return descriptors;
}

XdpReceiveDrops XdpReceiver::drops() const {
  XdpReceiveDrops sum;
  for (const Own& own : sockets_) {
    const XdpReceiveDrops drops = own.socket->receive_drops();
    sum.datagrams += drops.datagrams;
    sum.fill_ring_empty += drops.fill_ring_empty;
  }
  return sum;
}

}  // namespace shredway
