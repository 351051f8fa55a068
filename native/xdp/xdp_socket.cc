#include "xdp/xdp_socket.h"

#include <linux/if_xdp.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

namespace shredway {
namespace {

// A zero-copy queue receives into frames of its socket, also what passes on to the network stack.
// They return to the driver, so this many serve for good: as many as the largest usual ring.
constexpr uint32_t kFillFrames = 4096;
// Maximum of frames per call (Linux 6.17; older kernels take 32): XDP_MAX_TX_SKB_BUDGET.
constexpr int kBudgetOption = 9;
constexpr int kBudget = 256;

uint32_t load(uint32_t* number) {
  return std::atomic_ref<uint32_t>(*number).load(std::memory_order_acquire);
}
void store(uint32_t* number, uint32_t value) {
  std::atomic_ref<uint32_t>(*number).store(value, std::memory_order_release);
}

const char* remedy(std::string_view call, int error_number) {
  switch (error_number) {
    case EPERM:
    case EACCES:
      return call.starts_with("BPF") || call.starts_with("bpf")
                 ? "; grant CAP_NET_ADMIN and CAP_BPF"
                 : "; grant CAP_NET_RAW";
    case EAFNOSUPPORT:
      return "; this needs a kernel with CONFIG_XDP_SOCKETS, and AF_XDP in "
             "RestrictAddressFamilies= of the systemd unit";
    case ENOBUFS:
    case ENOMEM:
      return call == "XDP_UMEM_REG" ? "; raise the limit of locked memory (RLIMIT_MEMLOCK)" : "";
    case ENETDOWN:
      return "; set the interface up";
    default:
      return "";
  }
}

}  // namespace

std::string xdp_error(const std::string& call, int error_number) {
  return call + ": " + std::generic_category().message(error_number) + remedy(call, error_number);
}

// ---- opening --------------------------------------------------------------------------------

std::unique_ptr<XdpSocket> XdpSocket::open(const XdpSocketOptions& options, std::string& error) {
  std::unique_ptr<XdpSocket> socket(new XdpSocket);
  socket->options_ = options;
  error = socket->create();
  if (error.empty()) error = socket->bind_to_queue();
  if (error.empty()) return socket;
  const int error_number = errno;
  socket.reset();
  errno = error_number;
  return nullptr;
}

std::string XdpSocket::try_out() { return XdpSocket().create(); }

XdpSocket::~XdpSocket() {
  for (const Ring* ring : {&send_, &completed_, &fill_})
    if (ring->memory) munmap(ring->memory, ring->bytes);
  socket_ = UdpSocket();  // before its frames
  if (frames_) munmap(frames_, frames_bytes_);
}

std::string XdpSocket::create() {
  socket_ = UdpSocket(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return xdp_error("socket(AF_XDP)", errno);
  const uint32_t fill_frames = options_.zero_copy ? kFillFrames : 0;
  frames_bytes_ = size_t{kXdpFrames + fill_frames} * kXdpFrameBytes;
  void* memory = mmap(nullptr, frames_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return xdp_error("mmap of frames", errno);
  frames_ = static_cast<uint8_t*>(memory);
  return create_rings(fill_frames);
}

std::string XdpSocket::create_rings(uint32_t fill_frames) {
  xdp_umem_reg area{};
  area.addr = reinterpret_cast<uintptr_t>(frames_);
  area.len = frames_bytes_;
  area.chunk_size = kXdpFrameBytes;
  if (setsockopt(fd(), SOL_XDP, XDP_UMEM_REG, &area, sizeof area) != 0)
    return xdp_error("XDP_UMEM_REG", errno);
  const uint32_t fill_ring = kFillFrames;  // the kernel requires the ring even if it is not used
  if (setsockopt(fd(), SOL_XDP, XDP_UMEM_FILL_RING, &fill_ring, sizeof fill_ring) != 0 ||
      setsockopt(fd(), SOL_XDP, XDP_UMEM_COMPLETION_RING, &kXdpFrames, sizeof kXdpFrames) != 0 ||
      setsockopt(fd(), SOL_XDP, XDP_TX_RING, &kXdpFrames, sizeof kXdpFrames) != 0)
    return xdp_error("creating the rings of AF_XDP", errno);
  xdp_mmap_offsets at{};
  socklen_t length = sizeof at;
  if (getsockopt(fd(), SOL_XDP, XDP_MMAP_OFFSETS, &at, &length) != 0)
    return xdp_error("XDP_MMAP_OFFSETS", errno);
  if (!map(send_, XDP_PGOFF_TX_RING, at.tx.producer, at.tx.consumer, at.tx.flags, at.tx.desc,
           kXdpFrames * sizeof(xdp_desc)) ||
      !map(completed_, XDP_UMEM_PGOFF_COMPLETION_RING, at.cr.producer, at.cr.consumer, at.cr.flags,
           at.cr.desc, kXdpFrames * sizeof(uint64_t)) ||
      !map(fill_, XDP_UMEM_PGOFF_FILL_RING, at.fr.producer, at.fr.consumer, at.fr.flags, at.fr.desc,
           kFillFrames * sizeof(uint64_t)))
    return xdp_error("mmap of the rings of AF_XDP", errno);
  fill(fill_, fill_frames);
  return "";
}

bool XdpSocket::map(Ring& ring, uint64_t place, uint64_t producer, uint64_t consumer,
                    uint64_t flags, uint64_t entries, size_t bytes) {
  ring.bytes = entries + bytes;
  void* memory = mmap(nullptr, ring.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd(),
                      static_cast<off_t>(place));
  if (memory == MAP_FAILED) return false;
  auto* base = static_cast<uint8_t*>(memory);
  ring.memory = memory;
  ring.producer = reinterpret_cast<uint32_t*>(base + producer);
  ring.consumer = reinterpret_cast<uint32_t*>(base + consumer);
  ring.flags = reinterpret_cast<uint32_t*>(base + flags);
  ring.entries = base + entries;
  return true;
}

// Frames behind those that are sent.
void XdpSocket::fill(Ring& ring, uint32_t fill_frames) {
  for (uint32_t i = 0; i < fill_frames; i++) {
    const uint64_t address = uint64_t{kXdpFrames + i} * kXdpFrameBytes;
    std::memcpy(ring.entries + i * sizeof address, &address, sizeof address);
  }
  store(ring.producer, fill_frames);
}

std::string XdpSocket::bind_to_queue() {
  // Both optional. The kernel's copies count against the send buffer until the device has sent
  // them.
  const auto buffer_bytes = static_cast<int>(options_.send_buffer_bytes);
  if (setsockopt(fd(), SOL_SOCKET, SO_SNDBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0)
    (void)setsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof buffer_bytes);
  (void)setsockopt(fd(), SOL_XDP, kBudgetOption, &kBudget, sizeof kBudget);
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags =
      static_cast<uint16_t>(XDP_USE_NEED_WAKEUP | (options_.zero_copy ? XDP_ZEROCOPY : XDP_COPY));
  address.sxdp_ifindex = options_.interface;
  address.sxdp_queue_id = options_.queue;
  if (bind(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return "";
  return xdp_error("bind of AF_XDP to queue " + std::to_string(options_.queue), errno);
}

// ---- frames ---------------------------------------------------------------------------------

uint8_t* XdpSocket::frame(uint32_t position) const {
  return frames_ + size_t{position % kXdpFrames} * kXdpFrameBytes;
}

void XdpSocket::set(uint32_t position, uint32_t bytes) {
  const uint32_t slot = position % kXdpFrames;
  const xdp_desc entry{uint64_t{slot} * kXdpFrameBytes, bytes, 0};
  std::memcpy(send_.entries + slot * sizeof entry, &entry, sizeof entry);
}

// The kernel skips a frame outside of the memory.
void XdpSocket::cancel(uint32_t position) {
  const xdp_desc entry{frames_bytes_, 0, 0};
  std::memcpy(send_.entries + (position % kXdpFrames) * sizeof entry, &entry, sizeof entry);
}

void XdpSocket::publish(uint32_t end) { store(send_.producer, end); }

uint32_t XdpSocket::published() const { return *send_.producer; }  // only this process writes it

uint32_t XdpSocket::taken() const { return load(send_.consumer); }

bool XdpSocket::needs_wakeup() const { return load(send_.flags) & XDP_RING_NEED_WAKEUP; }

uint32_t XdpSocket::completed() const { return load(completed_.producer); }

uint32_t XdpSocket::completed_slot(uint32_t entry) const {
  uint64_t address;
  std::memcpy(&address, completed_.entries + (entry % kXdpFrames) * sizeof address, sizeof address);
  return static_cast<uint32_t>(address / kXdpFrameBytes) % kXdpFrames;
}

uint32_t XdpSocket::last_completed() const { return completed_slot(completed() - 1); }

bool XdpSocket::next_completed(uint32_t& slot) {
  const uint32_t entry = *completed_.consumer;  // only this thread writes it
  if (entry == completed()) return false;
  slot = completed_slot(entry);
  store(completed_.consumer, entry + 1);
  return true;
}

}  // namespace shredway
