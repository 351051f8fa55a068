// Arrivals: every arrival of every shred, recorded when feeds are measured and nothing is
// forwarded.
//
// The one worker of a measuring relay writes them; the control plane drains them. An arrival
// records the source, the shred and the kernel's receive time, duplicates included. With
// authentication on, the worker checks every packet in full, so altered bytes under a known
// signature never count as an arrival. Captured packets are the received datagrams, refused ones
// included. Records that find a ring full are counted as lost.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "net/address.h"
#include "net/udp_batch.h"
#include "shred/wire.h"
#include "system/spsc_ring.h"

namespace shredway {

// Arrival of one shred from one source. 32 bytes in the layout that the control plane reads.
struct ArrivalRecord {
  uint64_t received_ns;  // kernel receive time, CLOCK_REALTIME
  uint64_t slot;
  uint32_t index;
  uint32_t fec_set_index;
  uint32_t signature;  // first four bytes; differs between two shreds of the same identity
  uint16_t source;
  uint8_t type;   // ShredType
  uint8_t flags;  // flags of a data shred
};
static_assert(sizeof(ArrivalRecord) == 32);

inline constexpr size_t kArrivalsWaitingMax = 1u << 18;  // 1.3 s at 200,000 packets a second
using ArrivalRing = SpscRing<ArrivalRecord, kArrivalsWaitingMax>;

// Header of 32 bytes, then the packet. The control plane reads `length` bytes of the packet.
struct CapturedPacket {
  uint64_t received_ns;
  std::array<uint8_t, 16> sender;
  uint16_t sender_port;
  uint16_t port;    // receiving port of this relay
  uint32_t length;  // captured bytes; a longer datagram is truncated
  std::array<uint8_t, kReceiveBufferBytes> bytes;
};
static_assert(sizeof(CapturedPacket) == 32 + kReceiveBufferBytes);

inline constexpr size_t kPacketsWaitingMax = 1u << 14;  // 21 MB
using PacketRing = SpscRing<CapturedPacket, kPacketsWaitingMax>;

struct ArrivalRings {
  ArrivalRing arrivals;
  std::unique_ptr<PacketRing> packets;  // nullptr: packet capture is off
  std::atomic<uint64_t> arrivals_lost{0};
  std::atomic<uint64_t> packets_lost{0};

  // Worker's thread. `packet` holds the shred.
  void record(const Shred& shred, const uint8_t* packet, uint16_t source, uint64_t received_ns);
  // Captures the whole batch if packet capture is on. `port`: receiving port of packets without
  // one.
  void capture(std::span<const ReceivedPacket> batch, uint16_t port);
};

}  // namespace shredway
