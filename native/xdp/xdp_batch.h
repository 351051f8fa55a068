// XDP batch: a worker's sends by AF_XDP, like CloneBatch for clones.
//
// Writes a whole frame for each payload and target. A target whose interface is down is reported as
// not cloned, so that it is sent to by socket. One thread; no allocation after construction.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "clone/clone.h"
#include "xdp/xdp_sender.h"

namespace shredway {

class XdpBatch final : public ListBatch {
 public:
  // The sockets must outlive the batch, which uses them alone. Lists must only contain targets
  // behind their interfaces.
  XdpBatch(std::span<XdpSocket* const> sockets, ListObserver& observer,
           const SocketCalls& calls = system_socket_calls());

  void use_lists(const CloneLists& lists) override;
  CloneFamilies families() const override { return {true, true}; }
  void add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered) override;
  void flush() override;
  void settle() override { flush(); }
  void forget_refusals() override;
  uint64_t triggers() const override { return system_calls(); }
  uint64_t system_calls() const override;

 private:
  void send(XdpSender& sender, size_t row, const PayloadGroup& group, bool ipv4, bool recovered);
  XdpSender* sender_of(uint32_t interface) const;

  ListObserver& observer_;
  const CloneLists* lists_ = nullptr;
  std::vector<std::unique_ptr<XdpSender>> senders_;
  std::array<uint16_t, kReceiveBatchMax> payload_sums_{};  // of the group that is being added
  // Next IPv4 identification: different for all datagrams to one address, so that no receiver
  // combines fragments of two. The kernel numbers its datagrams from another value.
  uint16_t identification_;
};

}  // namespace shredway
