#include "net/memory_network.h"

#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "net/shred_filter.h"
#include "net/steering.h"

namespace shredway {
namespace {

thread_local MemoryNetwork* network_in_use = nullptr;

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

// Position among `count` sockets with one address, as the kernel's program selects it.
size_t steered_socket(const std::vector<uint8_t>& datagram, size_t count) {
  if (datagram.size() < filter::kFecSetIndexAt + sizeof(uint32_t)) return 0;
  uint64_t slot = 0;
  uint32_t fec_set_index = 0;
  std::memcpy(&slot, datagram.data() + filter::kSlotAt, sizeof slot);
  std::memcpy(&fec_set_index, datagram.data() + filter::kFecSetIndexAt, sizeof fec_set_index);
  return steered_worker(slot, fec_set_index, static_cast<uint32_t>(count));
}

}  // namespace

MemoryNetwork::Use::Use(MemoryNetwork& network) : before_(network_in_use) {
  network_in_use = &network;
}
MemoryNetwork::Use::~Use() { network_in_use = before_; }

MemoryNetwork& MemoryNetwork::in_use() { return *network_in_use; }

MemoryNetwork::EndpointBytes MemoryNetwork::bytes_of(const Endpoint& endpoint) {
  EndpointBytes bytes(endpoint.address.begin(), endpoint.address.end());
  bytes.push_back(static_cast<uint8_t>(endpoint.port));
  bytes.push_back(static_cast<uint8_t>(endpoint.port >> 8));
  return bytes;
}

UdpSocket MemoryNetwork::open(const Endpoint& local) {
  UdpSocket socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!socket.valid()) return socket;
  sockets_[socket.fd()] = {};
  bound_[bytes_of(local)].push_back(socket.fd());
  return socket;
}

bool MemoryNetwork::deliver(const Endpoint& to, Datagram datagram) {
  const auto found = bound_.find(bytes_of(to));
  if (found == bound_.end()) return false;
  const std::vector<int>& group = found->second;
  Socket& socket = sockets_[group[steered_socket(datagram.bytes, group.size())]];
  if (socket.waiting.size() >= kSocketQueueMax) return false;
  socket.waiting.push_back(std::move(datagram));
  return true;
}

void MemoryNetwork::fail(const Endpoint& to, int error_number) {
  if (error_number) failures_[bytes_of(to)] = error_number;
  else failures_.erase(bytes_of(to));
}

void MemoryNetwork::refuse(const Endpoint& to, bool refuses) {
  if (refuses) refusing_.insert(bytes_of(to));
  else refusing_.erase(bytes_of(to));
}

void MemoryNetwork::report_unreachable(const Endpoint& to) {
  for (auto& [fd, socket] : sockets_)
    if (socket.sent_to.count(bytes_of(to)) > 0) add_error(socket, to);
}

void MemoryNetwork::add_error(Socket& socket, const Endpoint& to) {
  socket.has_pending_error = true;
  if (socket.errors.size() < kErrorQueueMax) socket.errors.push_back(to);
}

// As the kernel: an ICMP error that arrived since the last call fails the next send, whatever its
// destination is.
int MemoryNetwork::failure_of(Socket& from, const Endpoint& to) const {
  if (std::exchange(from.has_pending_error, false)) return ECONNREFUSED;
  const auto found = failures_.find(bytes_of(to));
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
int MemoryNetwork::send(int fd, mmsghdr* messages, unsigned count, int) {
  MemoryNetwork& network = in_use();
  Socket& from = network.sockets_[fd];
  for (unsigned i = 0; i < count; i++) {
    const msghdr& message = messages[i].msg_hdr;
    const Endpoint to = endpoint_from_sockaddr(static_cast<const sockaddr*>(message.msg_name));
    if (const int failure = network.failure_of(from, to)) {
      errno = failure;
      return i > 0 ? static_cast<int>(i) : -1;
    }
    network.send_one(from, to, message);
  }
  return static_cast<int>(count);
}

void MemoryNetwork::send_one(Socket& from, const Endpoint& to, const msghdr& message) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < message.msg_iovlen; i++) {
    const auto* part = static_cast<const uint8_t*>(message.msg_iov[i].iov_base);
    bytes.insert(bytes.end(), part, part + message.msg_iov[i].iov_len);
  }
  from.sent_to.insert(bytes_of(to));
  const bool refuses = refusing_.count(bytes_of(to)) > 0;
  const size_t segment_bytes = segment_bytes_of(message);
  const size_t step = segment_bytes > 0 ? segment_bytes : std::max<size_t>(bytes.size(), 1);
  for (size_t at = 0; at < bytes.size(); at += step) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(step, bytes.size() - at));
    sent_.push_back({to, {begin, end}, now_ns_});
    if (refuses) add_error(from, to);
  }
}

// The oldest ICMP error, in the form of IP_RECVERR.
ssize_t MemoryNetwork::receive_error(int fd, msghdr* message, int) {
  std::deque<Endpoint>& errors = in_use().sockets_[fd].errors;
  if (errors.empty()) {
    errno = EAGAIN;
    return -1;
  }
  const bool is_ipv4 = errors.front().is_ipv4();
  sockaddr_storage destination{};
  message->msg_namelen = to_sockaddr(errors.front(), destination);
  std::memcpy(message->msg_name, &destination, message->msg_namelen);
  errors.pop_front();
  sock_extended_err error{};
  error.ee_errno = ECONNREFUSED;
  error.ee_origin = is_ipv4 ? SO_EE_ORIGIN_ICMP : SO_EE_ORIGIN_ICMP6;
  cmsghdr* control = CMSG_FIRSTHDR(message);
  control->cmsg_level = is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6;
  control->cmsg_type = is_ipv4 ? IP_RECVERR : IPV6_RECVERR;
  control->cmsg_len = CMSG_LEN(sizeof error);
  std::memcpy(CMSG_DATA(control), &error, sizeof error);
  message->msg_controllen = CMSG_SPACE(sizeof error);
  return 0;
}

// The clocks of processor time are frozen, so that a run repeats byte for byte.
const SocketCalls& MemoryNetwork::calls() {
  static constexpr SocketCalls kCalls = {
      &MemoryNetwork::receive, &MemoryNetwork::send, &MemoryNetwork::receive_error,
      [](pollfd*, nfds_t, int) { return 0; },
      [](clockid_t clock) { return clock == CLOCK_REALTIME ? in_use().now_ns_ : uint64_t{0}; }};
  return kCalls;
}

}  // namespace shredway
