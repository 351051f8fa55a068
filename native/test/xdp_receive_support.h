// Support for tests that receive by AF_XDP: frames with chosen fields, a sender of raw frames at
// the other end of a cable, and a plane that receives.
//
// Included by xdp_*_test.cc and relay_receive_xdp_test.cc.
#pragma once

#include <fcntl.h>
#include <linux/if_ether.h>
#include <netpacket/packet.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "support.h"
#include "xdp/xdp_datagram.h"
#include "xdp_support.h"

namespace shredway::test {

// Ones' complement sum of big-endian words, as RFC 1071 defines it.
inline uint32_t internet_sum(const uint8_t* bytes, size_t count, uint32_t sum = 0) {
  for (size_t i = 0; i < count; i++) sum += uint32_t(bytes[i]) << (i % 2 ? 0 : 8);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

inline void put_word(Bytes& bytes, size_t at, uint32_t value) {
  bytes[at] = uint8_t(value >> 8);
  bytes[at + 1] = uint8_t(value);
}

enum class FrameSum : uint8_t { correct, none, partial, wrong };

struct FrameRequest {
  MacAddress to_mac{}, from_mac{};
  Endpoint from{}, to{};
  Bytes payload{};
  FrameSum sum = FrameSum::correct;
};

inline size_t udp_at(const FrameRequest& request) { return request.to.is_ipv4() ? 34 : 54; }

// Sets the checksum of an IPv4 header that begins at byte 14.
inline void sum_ipv4(Bytes& frame, size_t header_bytes = 20) {
  put_word(frame, 24, 0);
  put_word(frame, 24, ~internet_sum(&frame[14], header_bytes));
}

// A frame with one datagram, padded to the shortest length of Ethernet.
inline Bytes udp_frame(const FrameRequest& request) {
  const bool is_ipv4 = request.to.is_ipv4();
  const size_t udp = udp_at(request), udp_bytes = 8 + request.payload.size();
  Bytes frame(udp + udp_bytes);
  std::copy(request.to_mac.begin(), request.to_mac.end(), frame.begin());
  std::copy(request.from_mac.begin(), request.from_mac.end(), frame.begin() + 6);
  put_word(frame, 12, is_ipv4 ? ETH_P_IP : ETH_P_IPV6);
  const auto put_addresses = [&](size_t at, size_t skip) {
    for (const Endpoint* endpoint : {&request.from, &request.to}) {
      std::copy(endpoint->address.begin() + long(skip), endpoint->address.end(),
                frame.begin() + long(at));
      at += 16 - skip;
    }
  };
  if (is_ipv4) {
    frame[14] = 0x45;
    put_word(frame, 16, uint32_t(20 + udp_bytes));
    frame[22] = 64;
    frame[23] = IPPROTO_UDP;
    put_addresses(26, 12);
    sum_ipv4(frame);
  } else {
    frame[14] = 0x60;
    put_word(frame, 18, uint32_t(udp_bytes));
    frame[20] = IPPROTO_UDP;
    frame[21] = 64;
    put_addresses(22, 0);
  }
  put_word(frame, udp, request.from.port);
  put_word(frame, udp + 2, request.to.port);
  put_word(frame, udp + 4, uint32_t(udp_bytes));
  std::copy(request.payload.begin(), request.payload.end(), frame.begin() + long(udp) + 8);
  const size_t addresses = is_ipv4 ? 8 : 32;
  const uint32_t pseudo =
      internet_sum(&frame[udp - addresses], addresses, uint32_t(IPPROTO_UDP + udp_bytes));
  uint32_t sum = internet_sum(&frame[udp], udp_bytes, pseudo);
  sum = sum == 0xffff ? 0xffff : ~sum & 0xffff;
  if (request.sum == FrameSum::wrong) sum ^= 0x0101;
  if (request.sum == FrameSum::partial) sum = pseudo;
  if (request.sum != FrameSum::none) put_word(frame, udp + 6, sum);
  if (frame.size() < ETH_ZLEN) frame.resize(ETH_ZLEN, 0xee);
  return frame;
}

// `bytes` random bytes with the variant byte of a shred.
inline Bytes shred_like(Random& random, size_t bytes) {
  Bytes payload = random_bytes(random, bytes);
  if (bytes > 64) payload[64] = 0x96;
  return payload;
}

// Keeps a sender from overrunning a veth: with an XDP program, its queue has 256 places, and what
// finds it full is lost. Made in the namespace of our end.
class CablePace {
 public:
  explicit CablePace(std::string name) : name_(std::move(name)) {
    file_ = UdpSocket(open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC));
    base_ = arrived();
  }
  // After each datagram.
  void sent() {
    if (++sent_ % 64 != 0) return;
    for (int tries = 0; tries < 3000 && arrived() - base_ < sent_; tries++)
      std::this_thread::sleep_for(std::chrono::milliseconds(tries ? 1 : 0));
  }

 private:
  // Packets that our end has taken.
  uint64_t arrived() const {
    std::array<char, 4096> text{};
    CHECK(pread(file_.fd(), text.data(), text.size() - 1, 0) > 0);
    const char* row = std::strstr(text.data(), (name_ + ":").c_str());
    CHECK(row != nullptr);
    if (!row) return 0;
    char* end = nullptr;
    (void)std::strtoull(row + name_.size() + 1, &end, 10);  // bytes
    return std::strtoull(end, nullptr, 10);
  }
  std::string name_;
  UdpSocket file_;
  uint64_t base_ = 0, sent_ = 0;
};

// Sends raw frames from the other end of a cable.
class FrameSender {
 public:
  FrameSender(const Lab& lab, const CloneCable& cable)
      : number_(uint8_t(cable.number)), pace_(cable.name) {
    lab.in_theirs([&] {
      socket_ = UdpSocket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      sockaddr_ll address{};
      address.sll_family = AF_PACKET;
      address.sll_ifindex = int(lab.interface(cable.name));
      CHECK_EQ(bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    });
  }
  void send(const Bytes& frame) {
    CHECK_EQ(::send(socket_.fd(), frame.data(), frame.size(), 0), ssize_t(frame.size()));
    pace_.sent();
  }
  // A request to our end of the cable, from theirs.
  FrameRequest request(bool is_ipv4, uint16_t port, Bytes payload) const {
    FrameRequest request;
    request.to_mac = {2, 0, 0, 0, 0, number_};
    request.from_mac = {2, 0, 0, 0, 1, number_};
    request.from = end(is_ipv4, 2, 7000);
    request.to = end(is_ipv4, 1, port);
    request.payload = std::move(payload);
    return request;
  }
  Endpoint end(bool is_ipv4, uint8_t host, uint16_t port) const {
    if (is_ipv4) return ipv4(10, number_, 0, host, port);
    Endpoint endpoint;
    // As text, the number is decimal: fd00:<number>::<host>.
    endpoint.address = address_of("fd00:" + std::to_string(number_) + "::" + std::to_string(host));
    endpoint.port = port;
    return endpoint;
  }

 private:
  uint8_t number_;
  CablePace pace_;
  UdpSocket socket_;
};

inline Endpoint any_port(bool is_ipv4, uint16_t port) {
  Endpoint endpoint = any_endpoint(is_ipv4);
  endpoint.port = port;
  return endpoint;
}

// A datagram that a receiver delivered, as a copy.
struct XdpArrival {
  Bytes payload;
  Endpoint from;
  uint16_t port;
  uint64_t received_ns;
};

// Appends what waits now.
inline void take_arrivals(XdpReceiver& receiver, std::vector<XdpArrival>& out) {
  for (;;) {
    const auto packets = receiver.receive();
    for (const ReceivedPacket& packet : packets)
      out.push_back({Bytes(packet.bytes, packet.bytes + packet.length),
                     endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(packet.sender)),
                     packet.port, packet.received_ns});
    const bool more = receiver.may_have_more();
    receiver.release();
    if (!more) return;
  }
}

// Waits, bounded, until a receiver has delivered `expected` datagrams.
inline std::vector<XdpArrival> receive_by_xdp(XdpReceiver& receiver, size_t expected) {
  std::vector<XdpArrival> out;
  for (int tries = 0; tries < 3000; tries++) {
    take_arrivals(receiver, out);
    if (out.size() >= expected) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return out;
}

struct XdpPlaneRequest {
  std::vector<std::string> interfaces;
  std::vector<Endpoint> listen;
  uint32_t workers = 1;
  bool sends = false;
};
inline std::unique_ptr<XdpPlane> open_receiving_plane(const XdpPlaneRequest& request) {
  std::string error;
  auto plane = XdpPlane::open({.interfaces = request.interfaces,
                               .workers = request.workers,
                               .sends = request.sends,
                               .listen = request.listen},
                              error);
  if (!plane) report_failure(__FILE__, __LINE__, error);
  return plane;
}

}  // namespace shredway::test
