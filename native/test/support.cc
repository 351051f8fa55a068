#include "support.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>

namespace shredway::test {

Bytes plain_shred(uint8_t variant) {
  const bool code = (variant & 0xc0) == 0x40;
  Bytes packet(code ? kCodeShredBytes : kDataShredBytes, 0);
  packet[offset::kVariant] = variant;
  store(packet, offset::kSlot, uint64_t{7});
  store(packet, offset::kVersion, uint16_t{1});
  if (code) {
    store(packet, offset::kDataCount, uint16_t{32});
    store(packet, offset::kCodeCount, uint16_t{32});
  } else {
    store(packet, offset::kParentOffset, uint16_t{1});
    store(packet, offset::kSize, uint16_t{100});
  }
  return packet;
}

namespace {

const SigningKey& signing_key(uint8_t seed) {
  static std::unique_ptr<SigningKey> keys[256];
  if (!keys[seed]) {
    std::array<uint8_t, 32> bytes{};
    bytes.fill(seed);
    keys[seed] = std::make_unique<SigningKey>(bytes);
  }
  return *keys[seed];
}

}  // namespace

PublicKey leader_key(uint8_t seed) { return signing_key(seed).public_key(); }

AuthenticSlot make_slot(const SlotRequest& request) {
  const SigningKey& key = signing_key(request.leader_seed);
  SlotPosition position{request.slot, static_cast<uint16_t>(request.slot ? 1 : 0), request.version,
                        Root{}, request.first_fec_set_index};
  // One byte less than a resigned set holds, so that every set but the last is full and chained.
  Bytes entries((request.fec_sets - 1) * 32 * 963 + 100, request.first_byte);
  PacketList packets;
  if (!Shredder(key).shred(entries.data(), entries.size(), 5, request.last_in_slot, position,
                           packets))
    std::abort();
  AuthenticSlot slot{key.public_key(), {}};
  for (size_t i = 0; i < packets.size(); i++)
    slot.packets.emplace_back(packets.packet(i), packets.packet(i) + packets.packet_bytes(i));
  return slot;
}

std::vector<Bytes> sorted(std::vector<Bytes> packets) {
  std::sort(packets.begin(), packets.end());
  return packets;
}

Endpoint ipv4_endpoint(const char* address, uint16_t port) {
  sockaddr_in socket_address{};
  socket_address.sin_family = AF_INET;
  socket_address.sin_port = htons(port);
  inet_pton(AF_INET, address, &socket_address.sin_addr);
  return endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(&socket_address));
}

Bytes source_table(const std::vector<SourceEntry>& entries) {
  Bytes bytes{'S', 'W', 'S', '1'};
  append(bytes, static_cast<uint32_t>(entries.size()));
  for (const SourceEntry& entry : entries) {
    append(bytes, entry.id);
    append(bytes, entry.tier);
    // A range of 0 IPv4 prefix bits with a port stands for every sender, also by IPv6.
    const bool is_any_sender = entry.ipv4_prefix == 0 && entry.port;
    append(bytes, static_cast<uint8_t>(is_any_sender ? 0 : 96 + entry.ipv4_prefix));
    append(bytes, entry.port);
    append(bytes, uint16_t{entry.own_use});
    const Endpoint endpoint = ipv4_endpoint(entry.address, 0);
    bytes.insert(bytes.end(), endpoint.address.begin(), endpoint.address.end());
  }
  return bytes;
}

Bytes fanout_table(const std::vector<DestinationEntry>& entries) {
  Bytes bytes{'S', 'W', 'F', '1'};
  append(bytes, static_cast<uint32_t>(entries.size()));
  for (const DestinationEntry& entry : entries) {
    append(bytes, entry.id);
    append(bytes, entry.tier);
    append(bytes, static_cast<uint8_t>(entry.wants_recovered));
    bytes.insert(bytes.end(), entry.endpoint.address.begin(), entry.endpoint.address.end());
    append(bytes, entry.endpoint.port);
  }
  return bytes;
}

Bytes leader_table(const PublicKey& key, uint64_t first_slot, uint32_t slots) {
  Bytes bytes{'S', 'W', 'L', '1'};
  append(bytes, uint32_t{1});
  append(bytes, first_slot);
  append(bytes, slots);
  bytes.insert(bytes.end(), key.begin(), key.end());
  for (uint32_t i = 0; i < slots; i++) append(bytes, uint32_t{0});
  return bytes;
}

}  // namespace shredway::test
