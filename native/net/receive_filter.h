// Receive filter: a kernel program on each receive socket that drops what the relay cannot use.
//
// It runs before a datagram takes space in the receive buffer or wakes a worker, so that noise
// costs a fraction of a microsecond and displaces nothing. Datagrams that pass:
//   - 1203 to 1232 bytes with the variant byte of a shred (0x40 to 0xbf, legacy and unchained
//     variants too: they tell an operator that a source is outdated);
//   - 24 to 64 bytes that begin with SWPROOF1: ownership challenges;
//   - 8 to 116 bytes that begin with 0x0a: trace packets of Jito's block engine (TraceShred).
// The filter does not decide what is a shred; the worker does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shredway {

// Length of a trace packet.
inline constexpr size_t kTraceBytesMin = 8, kTraceBytesMax = 116;

// Attaches the filter to a UDP socket. Returns an error text, empty on success.
std::string attach_receive_filter(int fd);

// Datagrams that the kernel dropped at receive sockets.
struct ReceiveDrops {
  uint64_t buffer_full = 0;
  uint64_t filtered = 0;
};

// Counts the drops of filtered sockets by cause. The kernel has one count per socket for both
// causes, and one per network namespace for full buffers. A drop counts as `buffer_full` as long as
// the namespace's count of this interval or the one before explains it: a full buffer of another
// program may be counted here, but no loss is missed. Without /proc, all drops count as
// `buffer_full`. One thread.
class ReceiveDropCounter {
 public:
  // `fds`: sockets that the caller keeps open. `steering`: those of them whose filter also drops
  // what another worker gets (multicast_socket.h), so that only their full buffers count.
  // `filtered`: whether the sockets have a filter.
  ReceiveDropCounter(const std::vector<int>& fds, const std::vector<int>& steering, bool filtered);
  ~ReceiveDropCounter();
  ReceiveDropCounter(const ReceiveDropCounter&) = delete;
  ReceiveDropCounter& operator=(const ReceiveDropCounter&) = delete;

  // Counts since construction. Takes about 50 us, because it reads two files of /proc: call it
  // once a second.
  const ReceiveDrops& update();

 private:
  struct NewDrops {
    uint64_t all = 0;
    uint64_t steering = 0;
  };
  NewDrops take_new_drops();
  // Datagrams that full buffers of this network namespace have cost until now; false: unknown.
  bool read_namespace_drops(uint64_t& drops) const;

  struct Socket {
    int fd;
    bool steers;
    uint32_t drops;
  };
  std::vector<Socket> sockets_;
  int ipv4_file_ = -1;
  int ipv6_file_ = -1;
  uint64_t namespace_drops_ = 0;
  uint64_t unused_ = 0;  // drops of the last interval that no socket has explained
  ReceiveDrops counts_;
};

}  // namespace shredway
