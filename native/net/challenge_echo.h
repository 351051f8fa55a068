// Ownership challenges: "is this address yours?", answered by sending the question back.
//
// A service sends a challenge before it sends shreds, so that nobody can have shreds sent to a
// stranger. Asked by the worker for packets that are too short to be shreds, never for others. Only
// the datagram itself goes back, to where it came from: nothing is amplified. No allocation, no
// blocking, no exception. Bytes of a challenge, 24 to 64 in all:
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
  // An answer looks like a challenge: one datagram with a false sender could make two that answer
  // send it to and fro for ever. Whoever asks honestly repeats a token a few times at most.
  static constexpr size_t kAnswersPerTokenMax = 4;  // among the last 16 answers

  explicit ChallengeEcho(const SocketCalls& calls = system_socket_calls()) : calls_(calls) {}

  // Sends the packet back unchanged through `fd`, the socket that it came in on. False, and nothing
  // was sent, when it is no challenge, when answers or those to this token are too many by the
  // packets' receive times, or when the kernel does not take it.
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
