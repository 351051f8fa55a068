// Netlink socket: a socket to one of the kernel's subsystems, for whole datagrams.
//
// Used by next_hop_watch and output_rules, each from one thread. Never blocks: the kernel answers a
// request inside send(), so an answer that is missing afterwards was lost. Drops messages that did
// not come from the kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shredway {

class NetlinkSocket {
 public:
  // Joins the multicast groups in the network namespace of the calling thread. `protocol`: the
  // subsystem, NETLINK_*. Returns nullptr and fills `error` if the kernel refuses; errno then has
  // the reason.
  static std::unique_ptr<NetlinkSocket> open(int protocol, std::span<const unsigned> groups,
                                             uint32_t receive_buffer_bytes, std::string& error);
  ~NetlinkSocket();
  NetlinkSocket(const NetlinkSocket&) = delete;
  NetlinkSocket& operator=(const NetlinkSocket&) = delete;

  enum class Read : uint8_t { datagram, nothing, lost };
  // `datagram` is valid until the next call. `lost`: messages were dropped, because they came
  // faster than they were read or were longer than the buffer.
  Read read(std::span<const uint8_t>& datagram);
  bool send(std::span<const uint8_t> datagram);
  int fd() const { return fd_; }

 private:
  explicit NetlinkSocket(int fd);
  int fd_;
  std::vector<uint8_t> buffer_;
};

}  // namespace shredway
