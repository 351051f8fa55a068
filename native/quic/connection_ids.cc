#include "quic/connection_ids.h"

#include <linux/filter.h>
#include <sys/random.h>

#include <vector>

#include "net/udp_socket.h"

namespace shredway {
namespace {

constexpr size_t kWordBytes = 4;
// Places in the datagram, relative to the UDP header.
constexpr uint32_t kNumberAt = 8 + 1;
constexpr uint32_t kCheckAt = kNumberAt + kWordBytes;

uint32_t word_at(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void put_word(uint32_t word, uint8_t* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) *bytes++ = static_cast<uint8_t>(word >> shift);
}

}  // namespace

ConnectionIds::ConnectionIds(const ConnectionIdKey& key) {
  const uint8_t* at = key.data();
  for (Round& round : rounds_) {
    round = {word_at(at), word_at(at + kWordBytes) | 1};
    at += 2 * kWordBytes;
  }
}

uint32_t ConnectionIds::check_of(uint32_t number) const {
  uint32_t value = number;
  for (const auto& [added, factor] : rounds_) {
    value = (value ^ added) * factor;
    value ^= value >> kShift;
  }
  return value;
}

ConnectionId ConnectionIds::make(uint32_t number) const {
  ConnectionId id;
  put_word(number, id.data());
  put_word(check_of(number), id.data() + kWordBytes);
  return id;
}

ConnectionId ConnectionIds::make_random() const {
  uint32_t number = 0;
  // Never fails for so few bytes.
  (void)!getrandom(&number, sizeof number, 0);
  return make(number);
}

bool ConnectionIds::is_own(std::span<const uint8_t> id) const {
  return id.size() == kConnectionIdBytes &&
         word_at(id.data() + kWordBytes) == check_of(word_at(id.data()));
}

// A packet that ends before a load is dropped: no packet is that short.
bool ConnectionIds::attach_filter(int fd) const {
  constexpr uint32_t kPass = 0xffffffff, kDrop = 0;
  std::vector<sock_filter> program = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumberAt)};
  for (const auto& [added, factor] : rounds_) {
    const std::array<sock_filter, 7> round = {{
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, added),
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, factor),
        BPF_STMT(BPF_ST, 0),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, kShift),
        BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 0),
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
    }};
    program.insert(program.end(), round.begin(), round.end());
  }
  const std::array<sock_filter, 4> comparison = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kCheckAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, kPass),
      BPF_STMT(BPF_RET | BPF_K, kDrop),
  }};
  program.insert(program.end(), comparison.begin(), comparison.end());
  return shredway::attach_filter(fd, program);
}

}  // namespace shredway
