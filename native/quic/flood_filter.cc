#include "quic/flood_filter.h"

#include <linux/filter.h>

#include <algorithm>
#include <array>

#include "net/udp_socket.h"

namespace shredway {
namespace {

// A smaller share would make the estimate of what arrives too coarse.
constexpr uint64_t kPartsMin = FloodShare::kAll / 1000;

}  // namespace

bool FloodShare::adjust(uint64_t read, uint64_t now_ns) {
  if (now_ns < period_end_ns_) return false;
  const uint64_t elapsed_ns = now_ns - period_end_ns_ + kPeriod_ns;
  const uint64_t in_period = (read - read_before_) * kPeriod_ns / elapsed_ns;
  period_end_ns_ = now_ns + kPeriod_ns;
  read_before_ = read;
  const uint64_t before = parts_;
  const uint64_t arrived = in_period * kAll / parts_;
  // Between one and two times as many, what was decided before remains.
  const uint64_t limit = is_all() ? 2 * kWanted : kWanted;
  parts_ = arrived <= limit ? kAll : std::max(kWanted * kAll / arrived, kPartsMin);
  return parts_ != before;
}

// Loads are relative to the UDP header. A packet that ends before a load is dropped: no first
// packet is that short.
bool attach_flood_filter(int fd, uint64_t parts) {
  constexpr uint32_t kPass = 0xffffffff, kDrop = 0, kHeaderBytes = 8;
  constexpr uint32_t kFirst = kHeaderBytes, kVersion = kHeaderBytes + 1,
                     kIdLength = kHeaderBytes + 5;
  constexpr uint32_t kLongAndType = 0xb0, kLongInitial = 0x80, kVersion1 = 1;
  constexpr auto kRandom = static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM);
  const auto limit = static_cast<uint32_t>(std::min(parts, FloodShare::kAll - 1));
  // Jumps skip that many instructions: if true, if false.
  std::array<sock_filter, 16> program = {{
      /* 0*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFirst),
      /* 1*/ BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kLongAndType),
      /* 2*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kLongInitial, 0, 11),
      /* 3*/ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kVersion),
      /* 4*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kVersion1, 0, 9),
      /* 5*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kIdLength),
      /* 6*/ BPF_STMT(BPF_MISC | BPF_TAX, 0),
      /* 7*/ BPF_STMT(BPF_LD | BPF_B | BPF_IND, kIdLength + 1),  // length of the client's id
      /* 8*/ BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
      /* 9*/ BPF_STMT(BPF_MISC | BPF_TAX, 0),
      /*10*/ BPF_STMT(BPF_LD | BPF_B | BPF_IND, kIdLength + 2),  // length of the token
      /*11*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),
      /*12*/ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kRandom),
      /*13*/ BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, limit, 1, 0),
      /*14*/ BPF_STMT(BPF_RET | BPF_K, kPass),
      /*15*/ BPF_STMT(BPF_RET | BPF_K, kDrop),
  }};
  return attach_filter(fd, program);
}

}  // namespace shredway
