// Connection packets: decides about packets with a short header, which belong to connections.
//
// A packet is passed on if a connection has its id and its sender's address, and neither has sent
// too many: each one costs the event loop 10 to 15 µs, also if it cannot be decrypted. Before a
// client is admitted, it has a small share. A few strays a second, whose id belongs to no
// connection, are passed on as well: their sender may need a stateless reset. A packet from another
// address than the connection's is dropped, because the token in a reset would let a stranger end
// the connection. No I/O.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "net/address.h"
#include "quic/pace.h"
#include "system/text_hash.h"

namespace shredway {

// Since the start.
struct ConnectionPacketCounts {
  uint64_t received = 0;
  uint64_t unknown = 0;  // of no connection, or from another address
  uint64_t limited = 0;  // of a connection, above its limit or that of its address
  uint64_t link_local = 0;
};

class ConnectionPackets {
 public:
  // number: what `judge` returns for packets of the connection.
  void know(std::string_view id, uint32_t number, const Endpoint& remote);
  // The client of the connection may submit.
  void admit(std::string_view id);
  void forget(std::string_view id);

  // pass: to the connection with the number. stray: of no connection; its sender may get a reset.
  enum class Verdict : uint8_t { pass, stray, drop };
  // now_ns: CLOCK_MONOTONIC.
  Verdict judge(std::span<const uint8_t> packet, const Endpoint& from, uint64_t now_ns,
                uint32_t& number);

  // A packet from a link-local address, which cannot be answered.
  void refuse_link_local();
  // Packets that the kernel has dropped.
  void count_dropped(uint64_t packets);

  // So many packets were superfluous in this second that a wake-up for each one would be a burden.
  bool is_flooded() const { return strays_ + limited_ > kFloodPerSecond; }
  const ConnectionPacketCounts& counts() const { return counts_; }

 private:
  static constexpr uint64_t kFloodPerSecond = 2000;
  // All connections of an address (IPv6: of a /64).
  struct Sender {
    Pace pace;
    uint32_t connections = 0;
  };
  using Senders = std::unordered_map<std::string, Sender, TextHash, std::equal_to<>>;
  struct Connection {
    uint32_t number;
    Endpoint remote;
    Pace pace;
    Senders::value_type* sender;
  };

  Senders senders_;
  std::unordered_map<std::string, Connection, TextHash, std::equal_to<>> known_;
  uint64_t second_end_ns_ = 0;
  // In this second:
  uint64_t strays_ = 0;  // with packets from another address
  uint64_t limited_ = 0;
  ConnectionPacketCounts counts_;
};

}  // namespace shredway
