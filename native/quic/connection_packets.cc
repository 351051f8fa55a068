#include "quic/connection_packets.h"

#include "quic/connection_ids.h"

namespace shredway {
namespace {

// After a restart, each client of before sends one and waits.
constexpr uint64_t kStraysPerSecond = 1000;
// Each id has 20,000 a second. A transaction takes one packet or two. Those at once may have waited
// in the receive buffer.
constexpr Pace kAdmitted{50'000, 1000};
// Each id has so many before its client is admitted, which takes a round trip.
constexpr Pace kEarly{5'000'000, 200};
// All ids of an address have so many together.
constexpr Pace kSender{25'000, 2000};

constexpr size_t kIpv6PrefixBytes = 8;

std::string_view sender_of(const Endpoint& remote) {
  const size_t length = remote.is_ipv4() ? remote.address.size() : kIpv6PrefixBytes;
  return {reinterpret_cast<const char*>(remote.address.data()), length};
}

}  // namespace

void ConnectionPackets::know(std::string_view id, uint32_t number, const Endpoint& remote) {
  forget(id);
  auto& sender = *senders_.try_emplace(std::string(sender_of(remote)), Sender{kSender}).first;
  sender.second.connections++;
  known_.try_emplace(std::string(id), Connection{number, remote, kEarly, &sender});
}

void ConnectionPackets::admit(std::string_view id) {
  const auto found = known_.find(id);
  if (found != known_.end()) found->second.pace = kAdmitted;
}

void ConnectionPackets::forget(std::string_view id) {
  const auto found = known_.find(id);
  if (found == known_.end()) return;
  Senders::value_type& sender = *found->second.sender;
  known_.erase(found);
  if (--sender.second.connections == 0) senders_.erase(senders_.find(sender.first));
}

ConnectionPackets::Verdict ConnectionPackets::judge(std::span<const uint8_t> packet,
                                                    const Endpoint& from, uint64_t now_ns,
                                                    uint32_t& number) {
  counts_.received++;
  if (now_ns >= second_end_ns_) {
    second_end_ns_ = now_ns + kSecond_ns;
    strays_ = limited_ = 0;
  }
  if (packet.size() > kConnectionIdBytes) {
    const std::string_view id(reinterpret_cast<const char*>(packet.data()) + 1, kConnectionIdBytes);
    const auto found = known_.find(id);
    if (found != known_.end()) {
      Connection& connection = found->second;
      number = connection.number;
      if (connection.remote != from) {
        counts_.unknown++;
        strays_++;
        return Verdict::drop;
      }
      if (connection.pace.take(now_ns) && connection.sender->second.pace.take(now_ns))
        return Verdict::pass;
      counts_.limited++;
      limited_++;
      return Verdict::drop;
    }
  }
  counts_.unknown++;
  return ++strays_ <= kStraysPerSecond ? Verdict::stray : Verdict::drop;
}

void ConnectionPackets::refuse_link_local() {
  counts_.received++;
  counts_.unknown++;
  counts_.link_local++;
}

void ConnectionPackets::count_dropped(uint64_t packets) {
  counts_.received += packets;
  counts_.unknown += packets;
}

}  // namespace shredway
