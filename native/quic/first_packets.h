// First packets: decides about packets with a long header that belong to no known connection.
//
// A flood of first packets from forged addresses ends here. A few first packets a second are passed
// on, so that clients connect without a further round trip; every other sender, and in a flood each
// one, must first return a token. A foreign token counts as none: clients keep tokens of other
// servers under the same name. Packets with a valid token and those of known connections are passed
// on as fast as handshakes need them. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quic/connection_ids.h"
#include "quic/pace.h"
#include "quic/retry.h"
#include "system/text_hash.h"

namespace shredway {

// Since the start.
struct FirstPacketCounts {
  uint64_t received = 0;
  uint64_t unproven = 0;  // read first packets without a token
  uint64_t retries = 0;
  uint64_t invalid_tokens = 0;   // foreign or too old
  uint64_t unknown = 0;          // not readable, or of a connection that does not exist
  uint64_t limited = 0;          // above the limits of a second
  uint64_t limited_packets = 0;  // of a known connection, above its limit
  uint64_t link_local = 0;
};

class FirstPackets {
 public:
  // ids: of the connections that begin after a retry.
  FirstPackets(const RetryKey& key, const ConnectionIds& ids);

  // Ids of connections: their packets are passed on.
  void know(std::string_view id);
  void forget(std::string_view id) { known_.erase(std::string(id)); }

  // retry: `answer` is for the sender. now_ns: CLOCK_MONOTONIC.
  enum class Verdict : uint8_t { pass, drop, retry };
  Verdict judge(ByteView packet, const Endpoint& from, uint64_t now_ns, RetryPacket& answer);

  // A packet from a link-local address. An answer needs the interface, which the confined process
  // cannot name.
  Verdict refuse_link_local();

  // Packets that the kernel has dropped, because too many arrived.
  void count_dropped(uint64_t packets);

  // So many packets arrived in this second, or in the one before, that reading them one by one
  // would be a burden.
  bool is_flooded() const { return second_.follows_flood || second_.received > kFloodPerSecond; }
  const FirstPacketCounts& counts() const { return counts_; }

 private:
  static constexpr uint64_t kFloodPerSecond = 2000;
  // Packets in a second, and how many more are handled in it.
  struct Second {
    uint64_t end_ns = 0;
    bool follows_flood = false;
    uint64_t received = 0;
    uint32_t others = 0;
  };

  void begin_second(uint64_t now_ns);
  Pace& proven_pace(const Endpoint& from);
  Verdict judge_unproven(const RetryRequest& request, RetryPacket& answer);
  Verdict drop(uint64_t& count);
  Verdict pass_if(uint32_t& left);
  Verdict judge_initial(ByteView packet, size_t token_at, const RetryRequest& request,
                        RetryPacket& answer);

  RetryKey key_;
  ConnectionIds ids_;
  std::unordered_map<std::string, Pace, TextHash, std::equal_to<>> known_;
  Second second_;
  Pace unproven_;
  Pace retries_;
  uint64_t seed_ = 0;         // of the places of addresses
  std::vector<Pace> proven_;  // of senders with a valid token, by a hash of their address
  FirstPacketCounts counts_;
};

}  // namespace shredway
