// Connection socket: reads and sends the packets of QUIC connections in batches.
//
// Used by the addon on the event loop of the QUIC process. Packets are read into memory of the
// caller, where JavaScript decrypts them. Packets that are sent wait until `flush`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/udp_socket.h"
#include "quic/connection_packets.h"

namespace shredway {

inline constexpr size_t kConnectionBatchMax = 64;
inline constexpr size_t kConnectionPacketBytesMax = 1536;  // longer ones are not read

// A packet that is passed on.
struct ConnectionPacket {
  size_t slot;  // of the memory
  size_t length;
  bool is_stray;
  uint32_t number;  // of its connection; of a stray packet 0
  Endpoint from;
};

struct SendFailures {
  uint64_t packets = 0;
  int last_error = 0;  // errno
};

class ConnectionSocket {
 public:
  explicit ConnectionSocket(UdpSocket socket);
  ~ConnectionSocket();
  int fd() const { return socket_.fd(); }
  ConnectionPackets& packets() { return packets_; }
  bool is_flooded() const { return packets_.is_flooded(); }

  // Reads at most one batch. `memory`: kConnectionBatchMax slots of kConnectionPacketBytesMax
  // bytes.
  const std::vector<ConnectionPacket>& read_batch(uint8_t* memory);
  // Whether more packets may wait after the last batch.
  bool was_full() const { return was_full_; }

  // Takes a copy. Precondition: at most kConnectionPacketBytesMax bytes.
  void send(std::span<const uint8_t> packet, const Endpoint& to);
  void flush();

  // Packets that the kernel refused. QUIC treats them as lost.
  const SendFailures& failures() const { return failures_; }
  // Together with what the kernel has dropped.
  const ConnectionPacketCounts& counts();

 private:
  struct Memory;

  UdpSocket socket_;
  ConnectionPackets packets_;
  std::unique_ptr<Memory> memory_;
  std::vector<ConnectionPacket> passed_;
  bool was_full_ = false;
  size_t waiting_ = 0;
  SendFailures failures_;
  uint32_t drops_;  // of the kernel since the socket was opened, up to the last count
};

}  // namespace shredway
