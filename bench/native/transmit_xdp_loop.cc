#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "transmit_frames.h"
#include "transmit_loops.h"

namespace shredway::bench {
namespace {

constexpr uint32_t kFrames = 2048, kFrameBytes = 2048;
constexpr size_t kMemoryBytes = size_t{kFrames} * kFrameBytes;
constexpr uint32_t kAtOnce = 256;  // frames per call
// Maximum of frames per call (linux/if_xdp.h of Linux 6.17; older kernels send at most 32).
constexpr int kBudgetOption = 9;

std::string failure(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

// One of the rings; the kernel uses its other end.
struct Ring {
  uint32_t* producer = nullptr;
  uint32_t* consumer = nullptr;
  uint8_t* entries = nullptr;
  void* memory = MAP_FAILED;
  size_t bytes = 0;

  bool map(int fd, const xdp_ring_offset& offsets, size_t entry_bytes, off_t place) {
    bytes = offsets.desc + kFrames * entry_bytes;
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, place);
    if (memory == MAP_FAILED) return false;
    auto* base = static_cast<uint8_t*>(memory);
    producer = reinterpret_cast<uint32_t*>(base + offsets.producer);
    consumer = reinterpret_cast<uint32_t*>(base + offsets.consumer);
    entries = base + offsets.desc;
    return true;
  }
  ~Ring() {
    if (memory != MAP_FAILED) munmap(memory, bytes);
  }
};

uint32_t load(uint32_t* number) {
  return std::atomic_ref<uint32_t>(*number).load(std::memory_order_acquire);
}
void store(uint32_t* number, uint32_t value) {
  std::atomic_ref<uint32_t>(*number).store(value, std::memory_order_release);
}

class XdpLoop final : public SendLoop {
 public:
  explicit XdpLoop(const TransmitPath& path)
      : heads_(path, 9), socket_(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)) {}
  ~XdpLoop() override {
    if (frames_) munmap(frames_, kMemoryBytes);
  }

  // Returns an error text, empty on success.
  std::string open(uint32_t interface) {
    const int fd = socket_.fd();
    if (fd < 0) return failure("an AF_XDP socket");
    void* memory = mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) return failure("memory for frames");
    frames_ = static_cast<uint8_t*>(memory);
    xdp_umem_reg area{};
    area.addr = reinterpret_cast<uint64_t>(memory);
    area.len = kMemoryBytes;
    area.chunk_size = kFrameBytes;
    if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &area, sizeof area) != 0)
      return failure("registering memory for AF_XDP");
    for (const int ring : {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_TX_RING})
      if (setsockopt(fd, SOL_XDP, ring, &kFrames, sizeof kFrames) != 0)
        return failure("a ring of AF_XDP");
    const int budget = kAtOnce;
    (void)setsockopt(fd, SOL_XDP, kBudgetOption, &budget, sizeof budget);
    xdp_mmap_offsets offsets{};
    socklen_t length = sizeof offsets;
    if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &length) != 0)
      return failure("the offsets of the rings");
    if (!out_.map(fd, offsets.tx, sizeof(xdp_desc), XDP_PGOFF_TX_RING) ||
        !done_.map(fd, offsets.cr, sizeof(uint64_t),
                   static_cast<off_t>(XDP_UMEM_PGOFF_COMPLETION_RING)))
      return failure("mmap of the rings");
    sockaddr_xdp address{};
    address.sxdp_family = AF_XDP;
    address.sxdp_flags = XDP_COPY;
    address.sxdp_ifindex = interface;
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return failure("AF_XDP on this device");
    return "";
  }

  void send(const PacketList& packets, size_t begin, size_t end) override {
    for (size_t i = begin; i < end; i++) {
      const uint8_t* payload = packets.packet(i);
      const size_t bytes = packets.packet_bytes(i);
      const uint32_t sum = sum_of(payload, bytes);
      for (size_t destination = 0; destination < heads_.size(); destination++) {
        while (sent_ + waiting_ - sent_count_ >= kFrames) kick();
        const uint32_t place = static_cast<uint32_t>(sent_ + waiting_) % kFrames;
        const uint64_t at = uint64_t{place} * kFrameBytes;
        const xdp_desc entry{at, heads_.write(frames_ + at, destination, payload, bytes, sum), 0};
        std::memcpy(out_.entries + place * sizeof entry, &entry, sizeof entry);
        if (++waiting_ == kAtOnce) kick();
      }
    }
    kick();
  }

  uint64_t sent_count() override {
    drain();
    return sent_count_;
  }

 private:
  // Calls until the kernel has accepted every frame: each call sends some of them.
  void kick() {
    constexpr int kTriesMax = 1000;
    sent_ += waiting_;
    waiting_ = 0;
    store(out_.producer, static_cast<uint32_t>(sent_));
    for (int i = 0; i < kTriesMax && load(out_.consumer) != static_cast<uint32_t>(sent_); i++)
      (void)sendto(socket_.fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    drain();
  }

  // Removes frames that the device has finished with, in the order of sending: copies were sent.
  void drain() {
    const uint32_t done = load(done_.producer);
    sent_count_ += done - load(done_.consumer);
    store(done_.consumer, done);
  }

  FrameHeads heads_;
  UdpSocket socket_;
  uint8_t* frames_ = nullptr;
  Ring out_, done_;
  uint64_t sent_ = 0, sent_count_ = 0;
  uint32_t waiting_ = 0;
};

}  // namespace

std::unique_ptr<SendLoop> open_xdp_loop(const TransmitPath& path, std::string& error) {
  auto loop = std::make_unique<XdpLoop>(path);
  error = loop->open(path.hop.interface);
  if (!error.empty()) return nullptr;
  return loop;
}

}  // namespace shredway::bench
