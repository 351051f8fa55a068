#include "quic/connection_packets.h"

#include "quic/connection_ids.h"

namespace shredway {
namespace {

constexpr uint64_t kSecond_ns = 1'000'000'000;
// After a restart, each client of before sends one and waits.
constexpr uint64_t kStraysPerSecond = 1000;

}  // namespace

void ConnectionPackets::know(std::string_view id, uint32_t number, const Endpoint& remote) {
  known_.insert_or_assign(std::string(id), Connection{number, remote});
}

ConnectionPackets::Verdict ConnectionPackets::judge(std::span<const uint8_t> packet,
                                                    const Endpoint& from, uint64_t now_ns,
                                                    uint32_t& number) {
  counts_.received++;
  if (now_ns >= second_end_ns_) {
    second_end_ns_ = now_ns + kSecond_ns;
    strays_ = 0;
  }
  if (packet.size() > kConnectionIdBytes) {
    const std::string_view id(reinterpret_cast<const char*>(packet.data()) + 1, kConnectionIdBytes);
    const auto found = known_.find(id);
    if (found != known_.end()) {
      const auto& [known_number, remote] = found->second;
      number = known_number;
      return remote == from ? Verdict::pass : drop();
    }
  }
  counts_.unknown++;
  return ++strays_ <= kStraysPerSecond ? Verdict::stray : Verdict::drop;
}

ConnectionPackets::Verdict ConnectionPackets::drop() {
  counts_.unknown++;
  strays_++;
  return Verdict::drop;
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
