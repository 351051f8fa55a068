// First packets: decides about packets with a long header that belong to no known connection.
//
// A flood of first packets from forged addresses ends here. A few first packets a second are passed
// on, so that clients connect without a further round trip; every other sender, and in a flood each
// one, must first return a token. Packets of known connections and with a valid token are always
// passed on. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "quic/connection_ids.h"
#include "quic/retry.h"
#include "system/text_hash.h"

namespace shredway {

// Since the start.
struct FirstPacketCounts {
  uint64_t received = 0;
  uint64_t unproven = 0;  // read first packets without a token
  uint64_t retries = 0;
  uint64_t invalid_tokens = 0;
  uint64_t unknown = 0;  // not readable, or of a connection that does not exist
  uint64_t limited = 0;  // above the limits of a second
  uint64_t link_local = 0;
};

class FirstPackets {
 public:
  // ids: of the connections that begin after a retry.
  FirstPackets(const RetryKey& key, const ConnectionIds& ids);

  // Ids of connections: their packets are passed on.
  void know(std::string_view id) { known_.emplace(id); }
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
  // So many at once, and one more in each interval.
  class Pace {
   public:
    Pace(uint64_t interval_ns, uint64_t at_once)
        : interval_ns_(interval_ns), ahead_max_ns_((at_once - 1) * interval_ns) {}
    bool take(uint64_t now_ns);

   private:
    uint64_t interval_ns_, ahead_max_ns_;
    uint64_t until_ns_ = 0;  // what was taken lasts until then
  };

  void begin_second(uint64_t now_ns);
  Verdict drop(uint64_t& count);
  Verdict pass_if(uint32_t& left);
  Verdict judge_initial(ByteView packet, size_t token_at, const RetryRequest& request,
                        RetryPacket& answer);

  RetryKey key_;
  ConnectionIds ids_;
  std::unordered_set<std::string, TextHash, std::equal_to<>> known_;
  Second second_;
  Pace unproven_;
  Pace retries_;
  FirstPacketCounts counts_;
};

}  // namespace shredway
