// XDP receiver: a worker's datagrams from its AF_XDP sockets, like ReceiveBatch for receive
// sockets.
//
// Payloads stay in the frames in which they arrived; the caller may change them until release(),
// which returns every frame to the kernel. A frame that the network stack would have dropped is
// counted and returned. One thread; no allocation after construction, no blocking, no exception.
#pragma once

#include <netinet/in.h>

#include <array>
#include <span>
#include <vector>

#include "net/socket_calls.h"
#include "net/udp_batch.h"
#include "xdp/xdp_socket.h"

namespace shredway {

class XdpReceiver {
 public:
  // The sockets must outlive the receiver, which alone receives by them.
  explicit XdpReceiver(std::span<XdpSocket* const> sockets,
                       const SocketCalls& calls = system_socket_calls());

  // Receives up to kReceiveBatchMax datagrams of all sockets without blocking, after release().
  // They are valid until the next release(). The datagrams of one socket keep their order.
  std::span<const ReceivedPacket> receive();
  // The last receive() stopped at its maximum, so that more frames may wait.
  bool may_have_more() const { return taken_ == kReceiveBatchMax; }
  // Returns the frames to the kernel. Frames that another worker's call keeps from returning are
  // returned by a later call.
  void release();

  bool is_empty() const { return sockets_.empty(); }
  std::vector<int> descriptors() const;
  uint64_t refused() const { return refused_; }  // frames that contained no datagram for the relay
  XdpReceiveDrops drops() const;                 // sum of all sockets

 private:
  struct Own {
    XdpSocket* socket;
    std::vector<uint8_t*> returning;  // frames, within its capacity
  };
  void take(Own& own);
  bool read(uint8_t* frame, uint32_t bytes);
  uint64_t receive_time(uint8_t* frame);

  const SocketCalls& calls_;
  std::vector<Own> sockets_;
  size_t first_ = 0;    // socket to begin with
  uint32_t taken_ = 0;  // frames of this batch
  uint32_t count_ = 0;  // datagrams of this batch
  bool has_time_ = false;
  uint64_t now_ns_ = 0;            // CLOCK_REALTIME
  uint64_t monotonic_now_ns_ = 0;  // at the same moment
  uint64_t refused_ = 0;
  std::array<ReceivedPacket, kReceiveBatchMax> packets_{};
  std::array<sockaddr_storage, kReceiveBatchMax> senders_{};
};

}  // namespace shredway
