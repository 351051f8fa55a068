#include "net/steering.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <tuple>

#include "net/shred_filter.h"

namespace shredway {

// The FEC sets of a slot go to the workers in turn, so that every worker gets its share even in a
// slot with few sets. The mixed slot number selects the first worker. If the set index were hashed
// too, one of eight workers would get none of the first 32 sets in one slot of nine.
uint32_t steered_worker(uint64_t slot, uint32_t fec_set_index, uint32_t workers) {
  // The program loads big-endian, but the field is little-endian. Neighbouring slots therefore
  // differ in the top bits, which the shift moves down before the first multiplication.
  uint32_t mixed = __builtin_bswap32(static_cast<uint32_t>(slot));
  mixed ^= mixed >> 16;
  mixed *= kSteeringMixFirst;
  mixed ^= mixed >> 15;
  mixed *= kSteeringMixSecond;
  mixed >>= 16;
  const uint32_t set = (fec_set_index & 0xffff) >> 5;
  return (mixed + set) % workers;
}

// The steps of steered_worker(), one by one. A load beyond the datagram ends the program with 0.
SteeringSteps steering_steps(uint32_t payload_at, uint32_t workers) {
  const uint32_t slot_at = payload_at + filter::kSlotAt;
  const uint32_t set_at = payload_at + filter::kFecSetIndexAt;
  return {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, slot_at),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
      BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
      BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, kSteeringMixFirst),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 15),
      BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
      BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, kSteeringMixSecond),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
      BPF_STMT(BPF_ST, 0),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, set_at + 1),
      BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 8),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, set_at),
      BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 5),
      BPF_STMT(BPF_LDX | BPF_MEM, 0),
      BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
      BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, workers),
  }};
}

std::string attach_steering(int fd, uint32_t workers) {
  if (workers == 0) return "expected at least one worker to steer to, got none";
  SteeringSteps steps = steering_steps(0, workers);
  std::array<sock_filter, std::tuple_size_v<SteeringSteps> + 1> program{};
  std::copy(steps.begin(), steps.end(), program.begin());
  program.back() = BPF_STMT(BPF_RET | BPF_A, 0);
  const sock_fprog attached = {static_cast<uint16_t>(program.size()), program.data()};
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &attached, sizeof attached) == 0)
    return "";
  return "cannot steer shreds to " + std::to_string(workers) +
         " workers (SO_ATTACH_REUSEPORT_CBPF, Linux 4.5): " +
         std::generic_category().message(errno) + "; configure one worker, which needs no steering";
}

}  // namespace shredway
