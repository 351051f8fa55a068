// First packet socket: reads the socket of first packets in batches and answers retries.
//
// Used by the addon on the event loop of the QUIC process. One call handles one batch, so that a
// flood never keeps the event loop busy. The kernel drops most of a flood (flood_filter.h).
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/udp_socket.h"
#include "quic/first_packets.h"
#include "quic/flood_filter.h"

namespace shredway {

inline constexpr size_t kFirstPacketBatchMax = 64;
inline constexpr size_t kFirstPacketBytesMax = 1536;  // longer ones are not read

// A packet that is passed on. The bytes are valid until the next batch.
struct PassedPacket {
  ByteView bytes;
  Endpoint from;
};

class FirstPacketSocket {
 public:
  FirstPacketSocket(UdpSocket socket, const RetryKey& key, const ConnectionIds& ids);
  ~FirstPacketSocket();
  int fd() const { return socket_.fd(); }
  FirstPackets& packets() { return packets_; }
  bool is_flooded() const { return packets_.is_flooded(); }
  // Reads at most one batch and sends its retries. Returns what is to be passed on.
  const std::vector<PassedPacket>& handle_batch();
  // Whether more packets may wait after the last batch.
  bool was_full() const { return was_full_; }
  // Adjusts the share that the kernel drops. Call it after each batch, and while `is_dropping` at
  // least once in FloodShare::kPeriod_ns, because no packet may arrive any more.
  void adjust();
  bool is_dropping() const { return !share_.is_all(); }
  // Together with what the kernel has dropped.
  const FirstPacketCounts& counts();

 private:
  struct Memory;

  UdpSocket socket_;
  FirstPackets packets_;
  std::unique_ptr<Memory> memory_;
  std::vector<PassedPacket> passed_;
  bool was_full_ = false;
  FloodShare share_;
  bool can_filter_ = true;
  uint32_t drops_;  // of the kernel since the socket was opened, up to the last count
};

}  // namespace shredway
