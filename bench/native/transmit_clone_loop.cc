#include "clone/clone.h"
#include "transmit_loops.h"

namespace shredway::bench {
namespace {

class CloneLoop final : public ListLoop {
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

 private:
  ListBatch& batch() override { return batch_; }

  UdpSocket source_;  // the datagrams have its port
  CloneBatch batch_;
  size_t destinations_;
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
