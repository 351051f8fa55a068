#include "quic/first_packets.h"

#include <cstring>

namespace shredway {
namespace {

// First packets without a token that are passed on: a handshake costs up to a millisecond of the
// event loop.
constexpr Pace kUnproven{10'000'000, 4};
// 5,000 a second. Those at once cost a few milliseconds.
constexpr Pace kRetries{200'000, 500};
// A handshake takes about ten packets of the client, and lost ones are repeated.
constexpr Pace kKnown{10'000'000, 100};
// First packets with a valid token, of the addresses that share a place.
constexpr Pace kProven{10'000'000, 50};
constexpr size_t kProvenPlaces = 1024;
constexpr uint64_t kHashFactor = 0x100000001b3;  // FNV-1a
// Packets of other versions.
constexpr uint32_t kOthersPerSecond = 1000;
constexpr uint32_t kQuicVersion1 = 1;
constexpr uint8_t kLongHeaderBit = 0x80;
constexpr uint8_t kTypeBits = 0x30;  // 0: Initial
constexpr size_t kIdsAt = 5;
constexpr size_t kFirstPacketBytesMin = 1200;  // RFC 9000, 14.1
constexpr size_t kFirstIdBytesMin = 8;         // RFC 9000, 7.2

std::string_view text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint32_t version_of(ByteView packet) {
  return uint32_t{packet[1]} << 24 | uint32_t{packet[2]} << 16 | uint32_t{packet[3]} << 8 |
         packet[4];
}

// An id with its length before it; false: it is cut off.
bool take_id(ByteView packet, size_t& at, ByteView& id) {
  if (at >= packet.size()) return false;
  const size_t length = packet[at];
  if (packet.size() - at - 1 < length) return false;
  id = packet.subspan(at + 1, length);
  at += 1 + length;
  return true;
}

// A token with its length as a variable-length integer before it; false: it is cut off.
bool take_token(ByteView packet, size_t at, ByteView& token) {
  if (at >= packet.size()) return false;
  const size_t more = (size_t{1} << (packet[at] >> 6)) - 1;
  if (packet.size() - at <= more) return false;
  uint64_t length = packet[at] & 0x3f;
  for (size_t i = 1; i <= more; i++) length = length << 8 | packet[at + i];
  at += 1 + more;
  if (packet.size() - at < length) return false;
  token = packet.subspan(at, static_cast<size_t>(length));
  return true;
}

}  // namespace

FirstPackets::FirstPackets(const RetryKey& key, const ConnectionIds& ids)
    : key_(key),
      ids_(ids),
      unproven_(kUnproven),
      retries_(kRetries),
      proven_(kProvenPlaces, kProven) {
  std::memcpy(&seed_, key.data(), sizeof seed_);
}

Pace& FirstPackets::proven_pace(const Endpoint& from) {
  uint64_t hash = seed_;
  for (const uint8_t byte : from.address) hash = (hash ^ byte) * kHashFactor;
  return proven_[(hash >> 32) % kProvenPlaces];
}

void FirstPackets::know(std::string_view id) { known_.emplace(id, kKnown); }

FirstPackets::Verdict FirstPackets::drop(uint64_t& count) {
  count++;
  return Verdict::drop;
}

FirstPackets::Verdict FirstPackets::pass_if(uint32_t& left) {
  if (left == 0) return drop(counts_.limited);
  left--;
  return Verdict::pass;
}

FirstPackets::Verdict FirstPackets::refuse_link_local() {
  counts_.received++;
  counts_.unknown++;
  return drop(counts_.link_local);
}

void FirstPackets::count_dropped(uint64_t packets) {
  counts_.received += packets;
  counts_.limited += packets;
}

void FirstPackets::begin_second(uint64_t now_ns) {
  const bool is_next = now_ns < second_.end_ns + kSecond_ns;
  const bool follows_flood = is_next && second_.received > kFloodPerSecond;
  second_ = {now_ns + kSecond_ns, follows_flood, 0, kOthersPerSecond};
}

FirstPackets::Verdict FirstPackets::judge(ByteView packet, const Endpoint& from, uint64_t now_ns,
                                          RetryPacket& answer) {
  counts_.received++;
  if (now_ns >= second_.end_ns) begin_second(now_ns);
  second_.received++;
  RetryRequest request{
      .from = from, .client_id = {}, .original_id = {}, .own_id = {}, .now_ns = now_ns};
  size_t at = kIdsAt;
  const bool is_readable = packet.size() > kIdsAt && (packet[0] & kLongHeaderBit) != 0 &&
                           take_id(packet, at, request.original_id) &&
                           take_id(packet, at, request.client_id);
  if (!is_readable) return drop(counts_.unknown);
  const auto known = known_.find(text_of(request.original_id));
  if (known != known_.end())
    return known->second.take(now_ns) ? Verdict::pass : drop(counts_.limited_packets);
  if (version_of(packet) != kQuicVersion1) return pass_if(second_.others);
  const bool is_first = packet.size() >= kFirstPacketBytesMin && (packet[0] & kTypeBits) == 0 &&
                        request.original_id.size() >= kFirstIdBytesMin &&
                        request.original_id.size() <= kQuicIdBytesMax &&
                        request.client_id.size() <= kQuicIdBytesMax;
  return is_first ? judge_initial(packet, at, request, answer) : drop(counts_.unknown);
}

FirstPackets::Verdict FirstPackets::judge_initial(ByteView packet, size_t token_at,
                                                  const RetryRequest& request,
                                                  RetryPacket& answer) {
  ByteView token;
  if (!take_token(packet, token_at, token)) return drop(counts_.unknown);
  if (token.empty()) {
    counts_.unproven++;
    return judge_unproven(request, answer);
  }
  if (!is_retry_token(token, request.from, request.original_id, request.now_ns, key_)) {
    counts_.invalid_tokens++;
    return judge_unproven(request, answer);
  }
  const bool is_in_time = proven_pace(request.from).take(request.now_ns);
  return is_in_time ? Verdict::pass : drop(counts_.limited);
}

FirstPackets::Verdict FirstPackets::judge_unproven(const RetryRequest& request,
                                                   RetryPacket& answer) {
  if (!is_flooded() && unproven_.take(request.now_ns)) return Verdict::pass;
  if (!retries_.take(request.now_ns)) return drop(counts_.limited);
  counts_.retries++;
  RetryRequest own = request;
  own.own_id = ids_.make_random();
  write_retry(own, key_, answer);
  return Verdict::retry;
}

}  // namespace shredway
