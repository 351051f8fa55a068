// Ownership challenges: proves that this machine owns an address by sending the challenge back.
//
// A service sends a challenge before it sends shreds, so that no user can direct shreds at a
// stranger's address. The worker checks only packets that are too short to be shreds. Only the
// datagram itself goes back to its sender, so nothing is amplified. No allocation, no blocking, no
// exception. Layout of a challenge, 24 to 64 bytes:
//   [0, 8) "SWPROOF1"   [8, 24) token   then anything
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "net/socket_calls.h"
#include "net/udp_batch.h"

namespace shredway {

inline constexpr size_t kChallengeTokenBytes = 16;
inline constexpr size_t kChallengeBytesMin = 24;
inline constexpr size_t kChallengeBytesMax = 64;

bool is_challenge(const ReceivedPacket& packet);

class ChallengeEcho {
 public:
  static constexpr size_t kAnswersPerSecondMax = 16;
  // An answer looks like a challenge: with one spoofed datagram, two answering machines could send
  // it back and forth for ever. An honest service repeats a token a few times at most.
  static constexpr size_t kAnswersPerTokenMax = 4;  // among the last 16 answers

  explicit ChallengeEcho(const SocketCalls& calls = system_socket_calls()) : calls_(calls) {}

  // Sends the packet back unchanged through `fd`, the socket that received it. Returns false
  // without sending if the packet is not a challenge, if the answers in total or to this token
  // exceed their limits (by the packets' receive times), or if the kernel refuses the datagram.
  bool answer(int fd, const ReceivedPacket& packet);

 private:
  struct Answer {
    uint64_t received_ns = 0;
    std::array<uint8_t, kChallengeTokenBytes> token{};
  };
  bool may_answer(const Answer& next) const;

  const SocketCalls& calls_;
  std::array<Answer, kAnswersPerSecondMax> last_{};
  size_t oldest_ = 0;
};

}  // namespace shredway
