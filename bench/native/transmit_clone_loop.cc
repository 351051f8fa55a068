#include <array>

#include "clone/clone.h"
#include "transmit_loops.h"

namespace shredway::bench {
namespace {

class CloneLoop final : public SendLoop, private CloneObserver {
 public:
  CloneLoop(const CloneRegion& region, UdpSocket source, size_t destinations)
      : source_(std::move(source)),
        batch_(region, {.source_port_ipv4 = local_port(source_.fd())}, true, *this),
        destinations_(destinations) {}

  bool set(const TransmitPath& path) {
    std::vector<std::vector<CloneTarget>> lists(1);
    for (uint32_t i = 0; i < destinations_; i++)
      lists[0].push_back({i, path.destinations[i], path.hop});
    return batch_.set_lists(lists) == destinations_;
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
  void cloned(uint32_t, uint64_t datagrams, uint64_t) override { sent_count_ += datagrams; }
  void clone_failed(uint32_t, uint64_t, SendFailure) override {}
  void not_cloned(uint32_t, uint32_t, uint32_t, const PayloadGroup&, int) override {}

  UdpSocket source_;  // the datagrams have its port
  CloneBatch batch_;
  size_t destinations_;
  uint32_t rotation_ = 0;
  uint64_t sent_count_ = 0;
  std::array<iovec, kReceiveBatchMax> payloads_{};
};

}  // namespace

std::unique_ptr<SendLoop> open_clone_loop(const ClonePlane& plane, const TransmitPath& path,
                                          std::string& error) {
  SocketResult source = open_send_socket({.source = ipv4_endpoint(0, 0), .buffer_bytes = 0});
  error = source.error;
  if (!error.empty()) return nullptr;
  auto loop = std::make_unique<CloneLoop>(plane.region(0), std::move(source.socket),
                                          path.destinations.size());
  if (loop->set(path)) return loop;
  error = "the clone batch does not hold all destinations";
  return nullptr;
}

}  // namespace shredway::bench
