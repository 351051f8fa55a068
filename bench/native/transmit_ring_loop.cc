#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "transmit_frames.h"
#include "transmit_loops.h"

namespace shredway::bench {
namespace {

// One piece of memory shared with the kernel, which divides it into blocks.
constexpr uint32_t kFrameBytes = 2048, kBlockBytes = 1 << 16;
constexpr uint32_t kAtOnce = 256;  // frames per call
constexpr size_t kFrameAt = TPACKET_ALIGN(sizeof(tpacket2_hdr));

class RingLoop final : public SendLoop {
 public:
  RingLoop(const TransmitPath& path, uint32_t frames)
      : frames_(frames), heads_(path, 9), socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {}
  ~RingLoop() override {
    if (ring_) munmap(ring_, ring_bytes());
  }

  // Returns an error text, empty on success.
  std::string open(uint32_t interface) {
    const int version = TPACKET_V2, on = 1;
    const int buffer_bytes = 16 << 20;
    tpacket_req shape{};
    shape.tp_frame_size = kFrameBytes;
    shape.tp_frame_nr = frames_;
    shape.tp_block_size = kBlockBytes;
    shape.tp_block_nr = static_cast<uint32_t>(ring_bytes() / kBlockBytes);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = static_cast<int>(interface);
    const int fd = socket_.fd();
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof buffer_bytes);
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &shape, sizeof shape) != 0 ||
        bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return std::string("an AF_PACKET transmit ring: ") + std::strerror(errno);
    void* memory = mmap(nullptr, ring_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return std::string("mmap of the ring: ") + std::strerror(errno);
    ring_ = static_cast<uint8_t*>(memory);
    return "";
  }

  void send(const PacketList& packets, size_t begin, size_t end) override {
    for (size_t i = begin; i < end; i++) {
      const uint8_t* payload = packets.packet(i);
      const size_t bytes = packets.packet_bytes(i);
      const uint32_t sum = sum_of(payload, bytes);
      for (size_t destination = 0; destination < heads_.size(); destination++) {
        tpacket2_hdr* frame = free_frame();
        frame->tp_len = heads_.write(reinterpret_cast<uint8_t*>(frame) + kFrameAt, destination,
                                     payload, bytes, sum);
        status_of(frame).store(TP_STATUS_SEND_REQUEST, std::memory_order_release);
        next_ = (next_ + 1) % frames_;
        if (++waiting_ == kAtOnce) kick();
      }
    }
    kick();
  }

  uint64_t sent_count() override { return sent_count_; }

 private:
  size_t ring_bytes() const { return size_t{frames_} * kFrameBytes; }
  static std::atomic_ref<uint32_t> status_of(tpacket2_hdr* frame) {
    return std::atomic_ref<uint32_t>(frame->tp_status);
  }

  tpacket2_hdr* free_frame() {
    auto* frame = reinterpret_cast<tpacket2_hdr*>(ring_ + size_t{next_} * kFrameBytes);
    while (status_of(frame).load(std::memory_order_acquire) != TP_STATUS_AVAILABLE) kick();
    return frame;
  }

  // Waits until the kernel has finished with the frames.
  void kick() {
    const ssize_t bytes = ::send(socket_.fd(), nullptr, 0, 0);
    if (bytes > 0) sent_count_ += waiting_;
    waiting_ = 0;
  }

  const uint32_t frames_;
  FrameHeads heads_;
  UdpSocket socket_;
  uint8_t* ring_ = nullptr;
  uint32_t next_ = 0, waiting_ = 0;
  uint64_t sent_count_ = 0;
};

}  // namespace

std::unique_ptr<SendLoop> open_ring_loop(const TransmitPath& path, uint32_t frames,
                                         std::string& error) {
  auto loop = std::make_unique<RingLoop>(path, frames);
  error = loop->open(path.hop.interface);
  if (!error.empty()) return nullptr;
  return loop;
}

}  // namespace shredway::bench
