#include "transmit_loops.h"
#include "xdp/xdp.h"

namespace shredway::bench {
namespace {

class XdpLoop final : public ListLoop {
 public:
  XdpLoop(std::unique_ptr<XdpPlane> plane, UdpSocket source, const TransmitPath& path)
      : plane_(std::move(plane)),
        source_(std::move(source)),
        lists_(lists_of(path, local_port(source_.fd()))),
        batch_(plane_->senders(0), *this) {
    batch_.use_lists(lists_);
  }

 private:
  static CloneLists lists_of(const TransmitPath& path, uint16_t source_port) {
    std::vector<CloneTarget> targets;
    for (const Endpoint& destination : path.destinations)
      targets.push_back({static_cast<uint32_t>(targets.size()), destination, path.hop});
    return CloneLists({&targets, 1}, {.source_port_ipv4 = source_port}, {true, true});
  }
  ListBatch& batch() override { return batch_; }

  std::unique_ptr<XdpPlane> plane_;
  UdpSocket source_;  // the datagrams have its port
  CloneLists lists_;
  XdpBatch batch_;
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
