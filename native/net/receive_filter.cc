#include "net/receive_filter.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include "net/challenge_echo.h"
#include "net/shred_filter.h"
#include "net/udp_socket.h"

namespace shredway {
namespace {

using filter::kShredBytesMin, filter::kPacketBytesMax, filter::kUdpHeaderBytes;
using filter::kVariantAt, filter::kVariantMin, filter::kVariantMax;
constexpr uint32_t kMagicFirst = 0x53575052;   // "SWPR"
constexpr uint32_t kMagicSecond = 0x4f4f4631;  // "OOF1"
constexpr uint32_t kTraceFirstByte = 0x0a;     // protobuf: field 1, a string

// Number after `name` in the text, which is a word of its own; false without it.
bool number_after(std::string_view text, std::string_view name, uint64_t& out) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return false;
  out = std::strtoull(text.data() + at + name.size(), nullptr, 10);
  return true;
}

// Value of a column in the two lines "Udp: names…" and "Udp: values…".
bool udp_column(std::string_view text, std::string_view column, uint64_t& out) {
  size_t names = text.find("\nUdp: ");
  if (names == std::string_view::npos) return false;
  size_t values = text.find("\nUdp: ", ++names);
  if (values == std::string_view::npos) return false;
  values++;
  for (;;) {
    const size_t name_end = text.find_first_of(" \n", names);
    const size_t value_end = text.find_first_of(" \n", values);
    if (name_end == std::string_view::npos || value_end == std::string_view::npos) return false;
    if (text.substr(names, name_end - names) == column) {
      out = std::strtoull(text.data() + values, nullptr, 10);
      return true;
    }
    if (text[name_end] == '\n') return false;
    names = name_end + 1;
    values = value_end + 1;
  }
}

// Reads the file from its beginning into `buffer` and terminates the text.
template <size_t size>
std::string_view read_again(int file, std::array<char, size>& buffer) {
  size_t length = 0;
  while (length + 1 < size) {
    const ssize_t got =
        pread(file, buffer.data() + length, size - 1 - length, static_cast<off_t>(length));
    if (got <= 0) break;
    length += static_cast<size_t>(got);
  }
  buffer[length] = '\0';
  return {buffer.data(), length};
}

}  // namespace

std::string attach_receive_filter(int fd) {
  constexpr uint32_t kPass = 0xffffffff, kDrop = 0;
  // Jumps skip that many instructions: if true, if false.
  std::array<sock_filter, 20> program = {{
      /* 0*/ BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
      /* 1*/ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kUdpHeaderBytes + kPacketBytesMax, 17, 0),
      /* 2*/ BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kUdpHeaderBytes + kShredBytesMin, 0, 3),
      /* 3*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kUdpHeaderBytes + kVariantAt),
      /* 4*/ BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, kVariantMin),  // a lower byte wraps
      /* 5*/ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kVariantMax - kVariantMin, 13, 12),
      /* 6*/ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kUdpHeaderBytes + kTraceBytesMax, 12, 0),
      /* 7*/ BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kUdpHeaderBytes + kTraceBytesMin, 0, 11),
      /* 8*/ BPF_STMT(BPF_MISC | BPF_TAX, 0),
      /* 9*/ BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kUdpHeaderBytes),
      /*10*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kTraceFirstByte, 7, 0),
      /*11*/ BPF_STMT(BPF_MISC | BPF_TXA, 0),
      /*12*/ BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kUdpHeaderBytes + kChallengeBytesMax, 6, 0),
      /*13*/ BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kUdpHeaderBytes + kChallengeBytesMin, 0, 5),
      /*14*/ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kUdpHeaderBytes),
      /*15*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMagicFirst, 0, 3),
      /*16*/ BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kUdpHeaderBytes + 4),
      /*17*/ BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMagicSecond, 0, 1),
      /*18*/ BPF_STMT(BPF_RET | BPF_K, kPass),
      /*19*/ BPF_STMT(BPF_RET | BPF_K, kDrop),
  }};
  if (attach_filter(fd, program)) return "";
  return "cannot attach the receive filter (SO_ATTACH_FILTER): " +
         std::generic_category().message(errno);
}

ReceiveDropCounter::ReceiveDropCounter(const std::vector<int>& fds,
                                       const std::vector<int>& steering, bool filtered) {
  for (const int fd : fds) {
    const bool steers = std::find(steering.begin(), steering.end(), fd) != steering.end();
    sockets_.push_back({fd, steers, receive_drops(fd)});
  }
  if (!filtered && steering.empty()) return;
  ipv4_file_ = open("/proc/thread-self/net/snmp", O_RDONLY | O_CLOEXEC);
  ipv6_file_ = open("/proc/thread-self/net/snmp6", O_RDONLY | O_CLOEXEC);
  read_namespace_drops(namespace_drops_);
}

ReceiveDropCounter::~ReceiveDropCounter() {
  if (ipv4_file_ >= 0) close(ipv4_file_);
  if (ipv6_file_ >= 0) close(ipv6_file_);
}

const ReceiveDrops& ReceiveDropCounter::update() {
  const auto [drops, steering] = take_new_drops();
  const uint64_t before = namespace_drops_;
  if (!read_namespace_drops(namespace_drops_)) {
    counts_.buffer_full += drops;
    return counts_;
  }
  const uint64_t explained = unused_ + (namespace_drops_ - before);
  const uint64_t buffer_full = std::min(drops, explained);
  unused_ = std::min(explained - buffer_full, namespace_drops_ - before);
  counts_.buffer_full += buffer_full;
  counts_.filtered += drops - std::min(drops, std::max(buffer_full, steering));
  return counts_;
}

// The kernel's count of a socket has 32 bits and wraps.
ReceiveDropCounter::NewDrops ReceiveDropCounter::take_new_drops() {
  NewDrops total;
  for (Socket& socket : sockets_) {
    const uint32_t now = receive_drops(socket.fd);
    const auto drops = static_cast<uint32_t>(now - socket.drops);
    total.all += drops;
    if (socket.steers) total.steering += drops;
    socket.drops = now;
  }
  return total;
}

bool ReceiveDropCounter::read_namespace_drops(uint64_t& drops) const {
  std::array<char, 8192> buffer;
  uint64_t value = 0, memory = 0;
  if (ipv4_file_ < 0 || !udp_column(read_again(ipv4_file_, buffer), "RcvbufErrors", value))
    return false;
  udp_column({buffer.data(), std::strlen(buffer.data())}, "MemErrors", memory);  // newer kernels
  drops = value + memory;
  if (ipv6_file_ < 0) return true;  // no IPv6
  const std::string_view ipv6 = read_again(ipv6_file_, buffer);
  if (number_after(ipv6, "Udp6RcvbufErrors", value)) drops += value;
  if (number_after(ipv6, "Udp6MemErrors", memory)) drops += memory;
  return true;
}

}  // namespace shredway
