// Transmit loops: send loops (send_loops.h) of the transmit paths other than plain sockets.
//
// clone: the relay's CloneBatch on a clone plane. xdp: the relay's XdpBatch, in copy mode on these
// devices. packet_ring: an AF_PACKET transmit ring that bypasses the queue discipline. It exists
// only here: the project measured and rejected it.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "clone/clone.h"
#include "send_loops.h"
#include "transmit_network.h"

namespace shredway::bench {

// Sends by a batch with lists: the relay's CloneBatch or XdpBatch.
class ListLoop : public SendLoop, protected ListObserver {
 public:
  void send(const PacketList& packets, size_t begin, size_t end) override {
    const auto count = static_cast<uint32_t>(end - begin);
    fill_payloads(packets, begin, end, payloads_.data());
    const PayloadGroup group{payloads_.data(), count,
                             static_cast<uint16_t>(packets.packet_bytes(begin))};
    batch().add(0, group, rotation_++, false);
    batch().flush();
  }

  uint64_t sent_count() override {
    batch().settle();
    return sent_count_;
  }

 private:
  virtual ListBatch& batch() = 0;
  void cloned(uint32_t, uint64_t datagrams, uint64_t) override { sent_count_ += datagrams; }
  void clone_failed(uint32_t, uint64_t, SendFailure) override {}
  void not_cloned(uint32_t, uint32_t, uint32_t, const PayloadGroup&, int) override {}

  uint32_t rotation_ = 0;
  uint64_t sent_count_ = 0;
  std::array<iovec, kReceiveBatchMax> payloads_{};
};

// Each returns nullptr and fills `error` if the system refuses; the arguments must outlive the
// loop.
std::unique_ptr<SendLoop> open_clone_loop(const ClonePlane& plane, const TransmitPath& path,
                                          std::string& error);
// A frame of the ring is free as soon as the device passed it on. If the receiver is a socket of
// this machine, the frame may not have been read by then; with `frames` for all datagrams in
// flight, none is overwritten. A power of two.
std::unique_ptr<SendLoop> open_ring_loop(const TransmitPath& path, uint32_t frames,
                                         std::string& error);
std::unique_ptr<SendLoop> open_xdp_loop(const TransmitPath& path, std::string& error);

}  // namespace shredway::bench
