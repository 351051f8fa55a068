// Netlink socket: a descriptor to the kernel's routing tables, whole datagrams in and out.
//
// Used by next_hop_watch only, from one thread. Never blocks: questions are answered inside send(),
// so that an answer which is not there after it was lost. What did not come from the kernel is
// dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shredway {

class NetlinkSocket {
 public:
  // Follows the multicast groups (RTNLGRP_*), in the network namespace of the calling thread.
  // Returns nullptr and fills `error` when the kernel refuses.
  static std::unique_ptr<NetlinkSocket> open(std::span<const unsigned> groups,
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
