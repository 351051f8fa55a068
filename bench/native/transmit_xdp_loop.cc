#include <array>

#include "transmit_loops.h"
#include "xdp/xdp.h"

namespace shredway::bench {
namespace {

class XdpLoop final : public SendLoop, private ListObserver {
 public:
  XdpLoop(std::unique_ptr<XdpPlane> plane, UdpSocket source, const TransmitPath& path)
      : plane_(std::move(plane)),
        source_(std::move(source)),
        lists_(lists_of(path, local_port(source_.fd()))),
        batch_(plane_->sockets(0), *this) {
    batch_.use_lists(lists_);
  }

  void send(const PacketList& packets, size_t begin, size_t end) override {
    const auto count = static_cast<uint32_t>(end - begin);
    for (size_t i = 0; i < count; i++)
      payloads_[i] = {const_cast<uint8_t*>(packets.packet(begin + i)),
                      packets.packet_bytes(begin + i)};
    const PayloadGroup group{payloads_.data(), count,
                             static_cast<uint16_t>(packets.packet_bytes(begin))};
    batch_.add(0, group, rotation_++, false);
    batch_.flush();
  }

  uint64_t sent_count() override {
    batch_.settle();
    return sent_count_;
  }

 private:
  static CloneLists lists_of(const TransmitPath& path, uint16_t source_port) {
    std::vector<CloneTarget> targets;
    for (const Endpoint& destination : path.destinations)
      targets.push_back({static_cast<uint32_t>(targets.size()), destination, path.hop});
    return CloneLists({&targets, 1}, {.source_port_ipv4 = source_port}, {true, true});
  }
  void cloned(uint32_t, uint64_t datagrams, uint64_t) override { sent_count_ += datagrams; }
  void clone_failed(uint32_t, uint64_t, SendFailure) override {}
  void not_cloned(uint32_t, uint32_t, uint32_t, const PayloadGroup&, int) override {}

  std::unique_ptr<XdpPlane> plane_;
  UdpSocket source_;  // the datagrams have its port
  CloneLists lists_;
  XdpBatch batch_;
  uint32_t rotation_ = 0;
  uint64_t sent_count_ = 0;
  std::array<iovec, kReceiveBatchMax> payloads_{};
};

}  // namespace

std::unique_ptr<SendLoop> open_xdp_loop(const TransmitPath& path, std::string& error) {
  SocketResult source = open_send_socket({.source = ipv4_endpoint(0, 0), .buffer_bytes = 0});
  error = source.error;
  if (!error.empty()) return nullptr;
  auto plane = XdpPlane::open({.interfaces = {path.device}}, error);
  if (!plane) return nullptr;
  return std::make_unique<XdpLoop>(std::move(plane), std::move(source.socket), path);
}

}  // namespace shredway::bench
