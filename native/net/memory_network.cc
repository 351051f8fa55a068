#include "net/memory_network.h"

#include <netinet/udp.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace shredway {
namespace {

thread_local MemoryNetwork* network_in_use = nullptr;

std::vector<uint8_t> key_of(const Endpoint& endpoint) {
  std::vector<uint8_t> key(endpoint.address.begin(), endpoint.address.end());
  key.push_back(static_cast<uint8_t>(endpoint.port));
  key.push_back(static_cast<uint8_t>(endpoint.port >> 8));
  return key;
}

void set_receive_time(msghdr& message, uint64_t time_ns) {
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (!control) return;
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_TIMESTAMPNS;
  control->cmsg_len = CMSG_LEN(sizeof(timespec));
  const timespec time = {static_cast<time_t>(time_ns / 1'000'000'000u),
                         static_cast<long>(time_ns % 1'000'000'000u)};
  std::memcpy(CMSG_DATA(control), &time, sizeof time);
  message.msg_controllen = CMSG_SPACE(sizeof(timespec));
}

// Length of the datagrams that a GSO message is cut into; 0: it is one datagram.
size_t segment_bytes_of(const msghdr& message) {
  const cmsghdr* control = message.msg_controllen > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (!control || control->cmsg_level != IPPROTO_UDP || control->cmsg_type != UDP_SEGMENT) return 0;
  uint16_t bytes = 0;
  std::memcpy(&bytes, CMSG_DATA(control), sizeof bytes);
  return bytes;
}

// No ICMP error ever arrives.
ssize_t receive_no_message(int, msghdr*, int) {
  errno = EAGAIN;
  return -1;
}

}  // namespace

MemoryNetwork::Use::Use(MemoryNetwork& network) : before_(network_in_use) {
  network_in_use = &network;
}
MemoryNetwork::Use::~Use() { network_in_use = before_; }

MemoryNetwork& MemoryNetwork::in_use() { return *network_in_use; }

UdpSocket MemoryNetwork::open(const Endpoint& local) {
  UdpSocket socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (socket.valid()) sockets_[socket.fd()] = {local, {}};
  return socket;
}

bool MemoryNetwork::deliver(const Endpoint& to, Datagram datagram) {
  for (auto& [fd, socket] : sockets_) {
    if (socket.local != to) continue;
    if (socket.waiting.size() >= kSocketQueueMax) return false;
    socket.waiting.push_back(std::move(datagram));
    return true;
  }
  return false;
}

void MemoryNetwork::fail(const Endpoint& to, int error_number) {
  if (error_number) failures_[key_of(to)] = error_number;
  else failures_.erase(key_of(to));
}

int MemoryNetwork::failure_of(const Endpoint& to) const {
  const auto found = failures_.find(key_of(to));
  return found == failures_.end() ? 0 : found->second;
}

int MemoryNetwork::receive(int fd, mmsghdr* messages, unsigned count, int, timespec*) {
  std::deque<Datagram>& waiting = in_use().sockets_[fd].waiting;
  const size_t taken = std::min<size_t>(count, waiting.size());
  for (size_t i = 0; i < taken; i++) {
    const Datagram& from = waiting.front();
    msghdr& message = messages[i].msg_hdr;
    const iovec& part = message.msg_iov[0];
    std::memcpy(part.iov_base, from.bytes.data(), std::min(part.iov_len, from.bytes.size()));
    messages[i].msg_len = static_cast<unsigned>(from.bytes.size());
    sockaddr_storage sender{};
    message.msg_namelen = to_sockaddr(from.peer, sender);
    std::memcpy(message.msg_name, &sender, message.msg_namelen);
    set_receive_time(message, from.time_ns);
    waiting.pop_front();
  }
  if (taken > 0) return static_cast<int>(taken);
  errno = EAGAIN;
  return -1;
}

// As the kernel: stops at the first message that fails; only a failure of the first has an errno.
int MemoryNetwork::send(int, mmsghdr* messages, unsigned count, int) {
  MemoryNetwork& network = in_use();
  for (unsigned i = 0; i < count; i++) {
    const msghdr& message = messages[i].msg_hdr;
    const Endpoint to = endpoint_from_sockaddr(static_cast<const sockaddr*>(message.msg_name));
    if (const int failure = network.failure_of(to)) {
      errno = failure;
      return i > 0 ? static_cast<int>(i) : -1;
    }
    network.send_one(to, message);
  }
  return static_cast<int>(count);
}

void MemoryNetwork::send_one(const Endpoint& to, const msghdr& message) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < message.msg_iovlen; i++) {
    const auto* part = static_cast<const uint8_t*>(message.msg_iov[i].iov_base);
    bytes.insert(bytes.end(), part, part + message.msg_iov[i].iov_len);
  }
  const size_t segment_bytes = segment_bytes_of(message);
  const size_t step = segment_bytes > 0 ? segment_bytes : std::max<size_t>(bytes.size(), 1);
  for (size_t at = 0; at < bytes.size(); at += step) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(step, bytes.size() - at));
    sent_.push_back({to, {begin, end}, now_ns_});
  }
}

// The clocks of processor time are frozen, so that a run repeats byte for byte.
const SocketCalls& MemoryNetwork::calls() {
  static constexpr SocketCalls kCalls = {
      &MemoryNetwork::receive, &MemoryNetwork::send, &receive_no_message,
      [](pollfd*, nfds_t, int) { return 0; },
      [](clockid_t clock) { return clock == CLOCK_REALTIME ? in_use().now_ns_ : uint64_t{0}; }};
  return kCalls;
}

}  // namespace shredway
