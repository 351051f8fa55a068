#include "net/challenge_echo.h"

#include <algorithm>
#include <cstring>

namespace shredway {
namespace {

constexpr std::array<uint8_t, 8> kMagic = {'S', 'W', 'P', 'R', 'O', 'O', 'F', '1'};
constexpr int64_t kSecond_ns = 1'000'000'000;
static_assert(kMagic.size() + kChallengeTokenBytes == kChallengeBytesMin);
static_assert(kChallengeBytesMax <= kReceiveBufferBytes, "a challenge fits a receive buffer");

}  // namespace

bool is_challenge(const ReceivedPacket& packet) {
  return packet.length >= kChallengeBytesMin && packet.length <= kChallengeBytesMax &&
         std::equal(kMagic.begin(), kMagic.end(), packet.bytes);
}

bool ChallengeEcho::answer(int fd, const ReceivedPacket& packet) {
  if (!is_challenge(packet)) return false;
  Answer next;
  next.received_ns = packet.received_ns;
  std::memcpy(next.token.data(), packet.bytes + kMagic.size(), next.token.size());
  if (!may_answer(next)) return false;

  iovec part = {const_cast<uint8_t*>(packet.bytes), packet.length};  // the kernel only reads it
  mmsghdr message{};
  message.msg_hdr.msg_name = const_cast<sockaddr_storage*>(packet.sender);
  message.msg_hdr.msg_namelen =
      packet.sender->ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  message.msg_hdr.msg_iov = &part;
  message.msg_hdr.msg_iovlen = 1;
  if (calls_.sendmmsg(fd, &message, 1, MSG_DONTWAIT) != 1) return false;
  last_[oldest_] = next;
  oldest_ = (oldest_ + 1) % last_.size();
  return true;
}

// A time far before the last answers means that the clock was set back.
bool ChallengeEcho::may_answer(const Answer& next) const {
  const auto since_ns = static_cast<int64_t>(next.received_ns - last_[oldest_].received_ns);
  if (since_ns < kSecond_ns && since_ns > -kSecond_ns) return false;
  const auto same = std::count_if(last_.begin(), last_.end(), [&](const Answer& answer) {
    return answer.received_ns != 0 && answer.token == next.token;
  });
  return static_cast<size_t>(same) < kAnswersPerTokenMax;
}

}  // namespace shredway
