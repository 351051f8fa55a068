#include "relay/arrivals.h"

#include <algorithm>
#include <cstring>

namespace shredway {

void ArrivalRings::record(const Shred& shred, const uint8_t* packet, uint16_t source,
                          uint64_t received_ns) {
  const bool pushed =
      arrivals.push({received_ns, shred.slot, shred.index, shred.fec_set_index, load_u32(packet),
                     source, static_cast<uint8_t>(shred.type), shred.flags});
  if (!pushed) arrivals_lost.fetch_add(1, std::memory_order_relaxed);
}

void ArrivalRings::capture(std::span<const ReceivedPacket> batch, uint16_t port) {
  if (!packets) return;
  for (size_t i = 0; i < batch.size(); i++) {
    CapturedPacket* to = packets->place();
    if (!to) {
      packets_lost.fetch_add(batch.size() - i, std::memory_order_relaxed);
      return;
    }
    const ReceivedPacket& packet = batch[i];
    const Endpoint sender =
        endpoint_from_sockaddr(reinterpret_cast<const sockaddr*>(packet.sender));
    to->received_ns = packet.received_ns;
    to->sender = sender.address;
    to->sender_port = sender.port;
    to->port = packet.port ? packet.port : port;
    to->length = std::min<uint32_t>(packet.length, kReceiveBufferBytes);
    std::memcpy(to->bytes.data(), packet.bytes, to->length);
    packets->publish();
  }
}

}  // namespace shredway
