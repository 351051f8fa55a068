// First packet socket: reads the socket of first packets in batches and answers retries.
//
// Used by the addon on the event loop of the QUIC process. One call handles one batch, so that a
// flood never keeps the event loop busy.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/udp_socket.h"
#include "quic/first_packets.h"

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
  FirstPacketSocket(UdpSocket socket, const RetryKey& key);
  ~FirstPacketSocket();
  int fd() const { return socket_.fd(); }
  FirstPackets& packets() { return packets_; }
  // Reads at most one batch and sends its retries. Returns what is to be passed on.
  const std::vector<PassedPacket>& handle_batch();
  // Whether more packets may wait after the last batch.
  bool was_full() const { return was_full_; }

 private:
  struct Memory;

  UdpSocket socket_;
  FirstPackets packets_;
  std::unique_ptr<Memory> memory_;
  std::vector<PassedPacket> passed_;
  bool was_full_ = false;
};

}  // namespace shredway
