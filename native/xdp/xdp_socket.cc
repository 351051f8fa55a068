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
  for (const Ring* ring : {&send_, &completed_, &fill_, &receive_})
    if (ring->memory) munmap(ring->memory, ring->bytes);
  socket_ = UdpSocket();  // before its frames
  if (frames_ && !options_.owner) munmap(frames_, frames_bytes_);
}

std::string XdpSocket::create() {
  socket_ = UdpSocket(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) return xdp_error("socket(AF_XDP)", errno);
  if (options_.owner) {
    frames_ = options_.owner->frames_;
    frames_bytes_ = options_.owner->frames_bytes_;
    send_frames_ = options_.owner->send_frames_;
  } else if (std::string error = create_memory(); !error.empty()) {
    return error;
  }
  std::string error = create_rings();
  return error.empty() ? map_rings() : error;
}

std::string XdpSocket::create_memory() {
  send_frames_ = options_.sends ? kXdpFrames : 0;
  if (options_.has_receive_frames) fill_frames_ = kXdpReceiveFrames;
  else fill_frames_ = options_.zero_copy ? kFillFrames : 0;
  frames_bytes_ = size_t{send_frames_ + fill_frames_} * kXdpFrameBytes;
  void* memory = mmap(nullptr, frames_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return xdp_error("mmap of frames", errno);
  frames_ = static_cast<uint8_t*>(memory);
  xdp_umem_reg area{};
  area.addr = reinterpret_cast<uintptr_t>(frames_);
  area.len = frames_bytes_;
  area.chunk_size = kXdpFrameBytes;
  if (setsockopt(fd(), SOL_XDP, XDP_UMEM_REG, &area, sizeof area) == 0) return "";
  return xdp_error("XDP_UMEM_REG", errno);
}

std::string XdpSocket::create_rings() {
  const auto create_ring = [&](int option, uint32_t size) {
    return setsockopt(fd(), SOL_XDP, option, &size, sizeof size) == 0;
  };
  // The kernel requires the rings of the memory even if they are not used.
  if ((!options_.owner && (!create_ring(XDP_UMEM_FILL_RING, fill_ring_entries()) ||
                           !create_ring(XDP_UMEM_COMPLETION_RING, kXdpFrames))) ||
      (options_.sends && !create_ring(XDP_TX_RING, kXdpFrames)) ||
      (options_.receives && !create_ring(XDP_RX_RING, kXdpReceiveFrames)))
    return xdp_error("creating the rings of AF_XDP", errno);
  return "";
}

std::string XdpSocket::map_rings() {
  xdp_mmap_offsets at{};
  socklen_t length = sizeof at;
  if (getsockopt(fd(), SOL_XDP, XDP_MMAP_OFFSETS, &at, &length) != 0)
    return xdp_error("XDP_MMAP_OFFSETS", errno);
  if ((options_.sends && !map(send_, XDP_PGOFF_TX_RING, at.tx.producer, at.tx.consumer, at.tx.flags,
                              at.tx.desc, kXdpFrames * sizeof(xdp_desc))) ||
      (options_.receives && !map(receive_, XDP_PGOFF_RX_RING, at.rx.producer, at.rx.consumer,
                                 at.rx.flags, at.rx.desc, kXdpReceiveFrames * sizeof(xdp_desc))) ||
      (!options_.owner &&
       (!map(completed_, XDP_UMEM_PGOFF_COMPLETION_RING, at.cr.producer, at.cr.consumer,
             at.cr.flags, at.cr.desc, kXdpFrames * sizeof(uint64_t)) ||
        !map(fill_, XDP_UMEM_PGOFF_FILL_RING, at.fr.producer, at.fr.consumer, at.fr.flags,
             at.fr.desc, fill_ring_entries() * sizeof(uint64_t)))))
    return xdp_error("mmap of the rings of AF_XDP", errno);
  if (!options_.owner) fill_all();
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
void XdpSocket::fill_all() {
  for (uint32_t i = 0; i < fill_frames_; i++) {
    const uint64_t address = uint64_t{send_frames_ + i} * kXdpFrameBytes;
    std::memcpy(fill_.entries + i * sizeof address, &address, sizeof address);
  }
  store(fill_.producer, fill_frames_);
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
  // A socket that shares frames has the mode of their owner.
  const int mode = XDP_USE_NEED_WAKEUP | (options_.zero_copy ? XDP_ZEROCOPY : XDP_COPY);
  address.sxdp_flags = static_cast<uint16_t>(options_.owner ? XDP_SHARED_UMEM : mode);
  if (options_.owner) address.sxdp_shared_umem_fd = static_cast<uint32_t>(options_.owner->fd());
  address.sxdp_ifindex = options_.interface;
  address.sxdp_queue_id = options_.queue;
  if (bind(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return "";
  return xdp_error("bind of AF_XDP to queue " + std::to_string(options_.queue), errno);
}

uint32_t XdpSocket::fill_ring_entries() const {
  return options_.has_receive_frames ? kXdpReceiveFrames : kFillFrames;
}

// ---- frames to send -------------------------------------------------------------------------

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

// ---- received frames ------------------------------------------------------------------------

// A frame that lies elsewhere than the kernel promised is not touched.
bool XdpSocket::next_received(uint8_t*& frame, uint32_t& bytes) {
  for (uint32_t entry = *receive_.consumer;; entry++) {  // only this thread writes it
    if (entry == load(receive_.producer)) return false;
    xdp_desc received;
    std::memcpy(&received, receive_.entries + (entry % kXdpReceiveFrames) * sizeof received,
                sizeof received);
    store(receive_.consumer, entry + 1);
    const uint64_t in_frame = received.addr % kXdpFrameBytes;
    if (received.addr >= frames_bytes_ || in_frame < kXdpHeadroomBytes ||
        received.len > kXdpFrameBytes - in_frame)
      continue;
    frame = frames_ + received.addr;
    bytes = received.len;
    return true;
  }
}

bool XdpSocket::refill(std::span<uint8_t* const> frames) {
  XdpSocket& owner = options_.owner ? *options_.owner : *this;
  if (owner.filling_.test_and_set(std::memory_order_acquire)) return false;
  const uint32_t entry = *owner.fill_.producer;
  for (size_t i = 0; i < frames.size(); i++) {
    const auto address = static_cast<uint64_t>(frames[i] - frames_) / kXdpFrameBytes;
    const uint64_t begin = address * kXdpFrameBytes;
    const size_t slot = (entry + i) % kXdpReceiveFrames;
    std::memcpy(owner.fill_.entries + slot * sizeof begin, &begin, sizeof begin);
  }
  store(owner.fill_.producer, entry + static_cast<uint32_t>(frames.size()));
  owner.filling_.clear(std::memory_order_release);
  return true;
}

bool XdpSocket::needs_receive_wakeup() const {
  const XdpSocket& owner = options_.owner ? *options_.owner : *this;
  return load(owner.fill_.flags) & XDP_RING_NEED_WAKEUP;
}

// Kernels before 5.9 only know the first number.
XdpReceiveDrops XdpSocket::receive_drops() const {
  xdp_statistics counts{};
  socklen_t length = sizeof counts;
  if (getsockopt(fd(), SOL_XDP, XDP_STATISTICS, &counts, &length) != 0) return {};
  return {counts.rx_dropped + counts.rx_ring_full,
          options_.counts_for_queue ? counts.rx_fill_ring_empty_descs : 0};
}

}  // namespace shredway
