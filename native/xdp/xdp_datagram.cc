#include "xdp/xdp_datagram.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>

#include <cstring>

#include "xdp/frame_layout.h"
#include "xdp/xdp_frame.h"

namespace shredway {
namespace {

// Byte offsets in each header.
constexpr size_t kTotalLengthAt = 2, kFragmentAt = 6, kIpv4ProtocolAt = 9, kIpv4SourceAt = 12,
                 kIpv4DestinationAt = 16;
constexpr size_t kPayloadLengthAt = 4, kNextHeaderAt = 6, kIpv6SourceAt = 8,
                 kIpv6DestinationAt = 24;

uint16_t number_at(const uint8_t* bytes) { return ntohs(word_at(bytes)); }

bool may_send(const AddressBytes& address) {
  if (is_ipv4(address)) {
    const uint8_t first = address[kIpv4At];
    constexpr uint8_t kBroadcast[4] = {0xff, 0xff, 0xff, 0xff};
    return first != 0 && first != 127 && first >> 4 != 0xe &&
           std::memcmp(address.data() + kIpv4At, kBroadcast, sizeof kBroadcast) != 0;
  }
  AddressBytes loopback{};
  loopback.back() = 1;
  return address[0] != 0xff && address != AddressBytes{} && address != loopback;
}

// `pseudo_sum`: of both addresses; without protocol and length.
FrameFault read_udp(const uint8_t* udp, size_t bytes, uint64_t pseudo_sum, XdpDatagram& out) {
  if (bytes < kUdpBytes) return FrameFault::length;
  const uint16_t length = number_at(udp + kUdpLengthAt);
  if (length < kUdpBytes || length > bytes) return FrameFault::length;
  out.payload = udp + kUdpBytes;
  out.length = static_cast<uint16_t>(length - kUdpBytes);
  out.from.port = number_at(udp);
  out.to.port = number_at(udp + kUdpDestinationAt);
  const uint16_t sum = word_at(udp + kUdpSumAt);
  if (sum == 0) return FrameFault::none;
  pseudo_sum += uint64_t{htons(IPPROTO_UDP)} + htons(length);
  if (sum == xdp_fold_sum(pseudo_sum)) return FrameFault::none;
  const bool correct = xdp_fold_sum(pseudo_sum + xdp_payload_sum(udp, length)) == 0xffff;
  return correct ? FrameFault::none : FrameFault::checksum;
}

FrameFault read_ipv4(const uint8_t* ip, size_t bytes, XdpDatagram& out) {
  if (bytes < kIpv4Bytes) return FrameFault::length;
  if (ip[0] != kVersionAndLength || ip[kIpv4ProtocolAt] != IPPROTO_UDP ||
      (number_at(ip + kFragmentAt) & kFragmentBits) != 0)
    return FrameFault::not_udp;
  const uint16_t length = number_at(ip + kTotalLengthAt);
  if (length < kIpv4Bytes || length > bytes) return FrameFault::length;
  if (xdp_payload_sum(ip, kIpv4Bytes) != 0xffff) return FrameFault::checksum;
  out.from.address = mapped_ipv4(ip + kIpv4SourceAt);
  out.to.address = mapped_ipv4(ip + kIpv4DestinationAt);
  if (!may_send(out.from.address)) return FrameFault::sender;
  constexpr size_t kBothBytes = kIpv4Bytes - kIpv4SourceAt;
  return read_udp(ip + kIpv4Bytes, length - kIpv4Bytes,
                  xdp_payload_sum(ip + kIpv4SourceAt, kBothBytes), out);
}

FrameFault read_ipv6(const uint8_t* ip, size_t bytes, XdpDatagram& out) {
  if (bytes < kIpv6Bytes) return FrameFault::length;
  if (ip[0] >> 4 != 6 || ip[kNextHeaderAt] != IPPROTO_UDP) return FrameFault::not_udp;
  const uint16_t length = number_at(ip + kPayloadLengthAt);
  if (length > bytes - kIpv6Bytes) return FrameFault::length;
  std::memcpy(out.from.address.data(), ip + kIpv6SourceAt, out.from.address.size());
  std::memcpy(out.to.address.data(), ip + kIpv6DestinationAt, out.to.address.size());
  // An IPv4 address in an IPv6 header would pass for that of another source.
  if (is_ipv4(out.from.address) || !may_send(out.from.address)) return FrameFault::sender;
  constexpr size_t kBothBytes = kIpv6Bytes - kIpv6SourceAt;
  return read_udp(ip + kIpv6Bytes, length, xdp_payload_sum(ip + kIpv6SourceAt, kBothBytes), out);
}

}  // namespace

FrameFault read_xdp_frame(const uint8_t* frame, size_t bytes, XdpDatagram& out) {
  if (bytes < kEthernetBytes) return FrameFault::length;
  const uint8_t* const ip = frame + kEthernetBytes;
  switch (number_at(frame + kProtocolAt)) {
    case ETH_P_IP:
      return read_ipv4(ip, bytes - kEthernetBytes, out);
    case ETH_P_IPV6:
      return read_ipv6(ip, bytes - kEthernetBytes, out);
    default:
      return FrameFault::not_udp;
  }
}

}  // namespace shredway
