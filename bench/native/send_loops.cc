#include "send_loops.h"

#include <cstring>
#include <numeric>

namespace shredway::bench {
namespace {

UdpSocket open_socket() { return open_send_socket({any_endpoint(true), 16u << 20}).socket; }

}  // namespace

std::vector<sockaddr_in> socket_addresses(const std::vector<Endpoint>& destinations) {
  std::vector<sockaddr_in> addresses;
  for (const Endpoint& destination : destinations) {
    sockaddr_storage storage;
    to_sockaddr(destination, storage);
    sockaddr_in address;
    std::memcpy(&address, &storage, sizeof address);
    addresses.push_back(address);
  }
  return addresses;
}

BareLoop::BareLoop(const std::vector<Endpoint>& destinations, bool gso)
    : socket_(open_socket()), destinations_(socket_addresses(destinations)), gso_(gso) {
  for (mmsghdr& message : messages_) {
    message.msg_hdr.msg_namelen = sizeof(sockaddr_in);
    message.msg_hdr.msg_iovlen = 1;
  }
}

void BareLoop::flush() {
  for (size_t sent = 0; sent < count_;) {
    const int result =
        sendmmsg(socket_.fd(), &messages_[sent], static_cast<unsigned>(count_ - sent), 0);
    for (int i = 0; i < result; i++)
      sent_count_ += messages_[sent + static_cast<size_t>(i)].msg_hdr.msg_iovlen;
    sent += result > 0 ? static_cast<size_t>(result) : 1;
  }
  count_ = 0;
}

void BareLoop::send(const PacketList& packets, size_t begin, size_t end) {
  const size_t burst = end - begin;
  fill_payloads(packets, begin, end, payloads_.data());
  const bool together = gso_ && burst > 1;
  const auto segment_bytes = static_cast<uint16_t>(packets.packet_bytes(begin));
  for (size_t i = 0; i < (together ? 1 : burst); i++) {
    for (sockaddr_in& destination : destinations_) {
      msghdr& header = messages_[count_].msg_hdr;
      header.msg_name = &destination;
      header.msg_iov = &payloads_[i];
      header.msg_iovlen = together ? burst : 1;
      header.msg_control = nullptr;
      header.msg_controllen = 0;
      if (together) segment_control_.attach(header, segment_bytes);
      if (++count_ == kAtOnce) flush();
    }
  }
  flush();
}

BatchLoop::BatchLoop(const std::vector<Endpoint>& destinations, bool gso)
    : socket_(open_socket()),
      destinations_(socket_addresses(destinations)),
      sent_(destinations.size()),
      batch_(socket_.fd(), gso, *this) {}

void BatchLoop::send(const PacketList& packets, size_t begin, size_t end) {
  const auto count = static_cast<uint32_t>(end - begin);
  fill_payloads(packets, begin, end, payloads_.data());
  const PayloadGroup group{payloads_.data(), count,
                           static_cast<uint16_t>(packets.packet_bytes(begin))};
  for (uint32_t i = 0; i < destinations_.size(); i++)
    batch_.add(group, reinterpret_cast<const sockaddr*>(&destinations_[i]), sizeof(sockaddr_in), i);
  batch_.flush();
}

uint64_t BatchLoop::sent_count() {
  return std::accumulate(sent_.begin(), sent_.end(), uint64_t{0});
}

}  // namespace shredway::bench
