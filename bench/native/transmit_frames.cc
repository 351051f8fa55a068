#include "transmit_frames.h"

#include <arpa/inet.h>

#include <cstring>

namespace shredway::bench {
namespace {

constexpr size_t kIp = 14, kUdp = kIp + 20, kPayload = kUdp + 8;
constexpr size_t kTotalLength = kIp + 2, kIpChecksum = kIp + 10, kAddresses = kIp + 12;
constexpr size_t kUdpLength = kUdp + 4, kUdpChecksum = kUdp + 6;
constexpr uint8_t kUdpProtocol = 17;

void store16(uint8_t* to, uint16_t value) { std::memcpy(to, &value, sizeof value); }

uint32_t fold(uint64_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint32_t>(sum);
}

uint16_t finished(uint64_t sum) { return static_cast<uint16_t>(~fold(sum)); }

}  // namespace

uint32_t sum_of(const uint8_t* bytes, size_t count) {
  uint64_t sum = 0;
  for (; count >= 4; bytes += 4, count -= 4) {
    uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    sum += word;
  }
  uint32_t rest = 0;
  std::memcpy(&rest, bytes, count);
  return fold(sum + rest);
}

FrameHeads::FrameHeads(const TransmitPath& path, uint16_t source_port) {
  for (const Endpoint& destination : path.destinations) {
    Head& header = heads_.emplace_back();
    uint8_t* at = header.bytes.data();
    std::memcpy(at, path.hop.to.data(), 6);
    std::memcpy(at + 6, path.hop.from.data(), 6);
    store16(at + 12, htons(0x0800));
    at[kIp] = 0x45;                        // version 4, five words
    store16(at + kIp + 6, htons(0x4000));  // do not fragment
    at[kIp + 8] = 64;                      // TTL
    at[kIp + 9] = kUdpProtocol;
    std::memcpy(at + kAddresses, path.hop.source.data() + 12, 4);
    std::memcpy(at + kAddresses + 4, destination.address.data() + 12, 4);
    store16(at + kUdp, htons(source_port));
    store16(at + kUdp + 2, htons(destination.port));
    header.ip_sum = sum_of(at + kIp, 20);
    header.udp_sum = sum_of(at + kAddresses, 8) + sum_of(at + kUdp, 8) + htons(kUdpProtocol);
  }
}

uint32_t FrameHeads::write(uint8_t* to, size_t i, const uint8_t* payload, size_t payload_bytes,
                           uint32_t payload_sum) const {
  const Head& header = heads_[i];
  const uint16_t total = htons(static_cast<uint16_t>(20 + 8 + payload_bytes));
  const uint16_t length = htons(static_cast<uint16_t>(8 + payload_bytes));
  std::memcpy(to, header.bytes.data(), kPayload);
  store16(to + kTotalLength, total);
  store16(to + kIpChecksum, finished(uint64_t{header.ip_sum} + total));
  store16(to + kUdpLength, length);
  const uint16_t checksum = finished(uint64_t{header.udp_sum} + 2u * length + payload_sum);
  // 0 would mean that there is no checksum
  store16(to + kUdpChecksum, checksum ? checksum : 0xffff);
  std::memcpy(to + kPayload, payload, payload_bytes);
  return static_cast<uint32_t>(kPayload + payload_bytes);
}

}  // namespace shredway::bench
