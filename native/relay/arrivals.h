// Arrivals: every sight of every shred, for those who measure feeds instead of passing them on.
//
// Written by the one worker of a relay that was opened for measuring, drained by the control plane.
// An arrival says which source brought which shred and when the kernel received it, duplicates
// included; with authentication on, each one's own bytes were checked, so that nobody arrives with
// a known signature over other bytes. Kept packets are the datagrams themselves, refused ones too.
// What finds a ring full is counted, never lost silently.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "net/address.h"
#include "net/udp_batch.h"
#include "relay/spsc_ring.h"
#include "shred/wire.h"

namespace shredway {

// 32 bytes, read by the control plane as they lie.
struct Arrival {
  uint64_t received_ns;  // kernel receive time, CLOCK_REALTIME
  uint64_t slot;
  uint32_t index;
  uint32_t fec_set_index;
  uint32_t signature;  // its first bytes: another one for the same identity is another shred
  uint16_t source;
  uint8_t type;   // ShredType
  uint8_t flags;  // of a data shred
};
static_assert(sizeof(Arrival) == 32);

inline constexpr size_t kArrivalsWaitingMax = 1u << 18;  // 1.3 s at 200,000 packets a second
using ArrivalRing = SpscRing<Arrival, kArrivalsWaitingMax>;

// 32 bytes and the packet, read by the control plane up to `length` of its packet.
struct KeptPacket {
  uint64_t received_ns;
  std::array<uint8_t, 16> sender;
  uint16_t sender_port;
  uint16_t port;    // own
  uint32_t length;  // kept; a longer datagram is cut
  std::array<uint8_t, kReceiveBufferBytes> bytes;
};
static_assert(sizeof(KeptPacket) == 32 + kReceiveBufferBytes);

inline constexpr size_t kPacketsWaitingMax = 1u << 14;  // 21 MB
using PacketRing = SpscRing<KeptPacket, kPacketsWaitingMax>;

struct ArrivalRings {
  ArrivalRing arrivals;
  std::unique_ptr<PacketRing> packets;  // nullptr: packets are not kept
  std::atomic<uint64_t> arrivals_lost{0};
  std::atomic<uint64_t> packets_lost{0};

  // Worker's thread. `packet` holds the shred.
  void note(const Shred& shred, const uint8_t* packet, uint16_t source, uint64_t received_ns);
  // The whole batch, when packets are kept. `port`: own one.
  void keep(const ReceiveBatch& batch, uint16_t port);
};

}  // namespace shredway
