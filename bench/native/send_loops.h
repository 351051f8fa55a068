// Send loops: the cost of passing datagrams to the kernel, without any other work.
//
// bare: hand-written sendmmsg, 64 messages per call, one payload shared by all destinations; the
// lower bound for the relay's fan-out. bare_gso: the same with one GSO message of the whole burst
// per destination. batch: the relay's own SendBatch. The cost scenario calls them from one thread;
// each call of send() is one burst to every destination.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/segment_control.h"
#include "net/udp_batch.h"
#include "net/udp_socket.h"
#include "shred/shredder.h"

namespace shredway::bench {

class SendLoop {
 public:
  virtual ~SendLoop() = default;
  // Packets [begin, end) have one length if end - begin > 1.
  virtual void send(const PacketList& packets, size_t begin, size_t end) = 0;
  // Datagrams that the kernel accepted so far, by the loop's own count.
  virtual uint64_t sent_count() = 0;
};

// The packets [begin, end) as payloads of a system call, which does not change them.
inline void fill_payloads(const PacketList& packets, size_t begin, size_t end, iovec* out) {
  for (size_t i = begin; i < end; i++)
    *out++ = {const_cast<uint8_t*>(packets.packet(i)), packets.packet_bytes(i)};
}

std::vector<sockaddr_in> socket_addresses(const std::vector<Endpoint>& destinations);

class BareLoop final : public SendLoop {
 public:
  BareLoop(const std::vector<Endpoint>& destinations, bool gso);
  void send(const PacketList& packets, size_t begin, size_t end) override;
  uint64_t sent_count() override { return sent_count_; }

 private:
  static constexpr size_t kAtOnce = 64;
  void flush();

  UdpSocket socket_;
  std::vector<sockaddr_in> destinations_;
  bool gso_;
  size_t count_ = 0;
  uint64_t sent_count_ = 0;
  std::array<mmsghdr, kAtOnce> messages_{};
  std::array<iovec, kAtOnce> payloads_{};
  SegmentControl segment_control_;
};

class BatchLoop final : public SendLoop, private SendObserver {
 public:
  BatchLoop(const std::vector<Endpoint>& destinations, bool gso);
  void send(const PacketList& packets, size_t begin, size_t end) override;
  uint64_t sent_count() override;

 private:
  void sent(uint32_t tag, uint32_t datagrams) override { sent_[tag] += datagrams; }
  void failed(uint32_t, uint32_t, SendFailure) override {}

  UdpSocket socket_;
  std::vector<sockaddr_in> destinations_;
  std::vector<uint64_t> sent_;
  SendBatch batch_;
  std::array<iovec, kReceiveBatchMax> payloads_{};
};

}  // namespace shredway::bench
