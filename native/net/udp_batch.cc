#include "net/udp_batch.h"

#include <linux/errqueue.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "net/segment_control.h"

namespace shredway {

// ---- receiving ------------------------------------------------------------------------------

namespace {

constexpr size_t kPageBytes = 4096;

// Control messages: the receive time, which comes first, and for multicast sockets the destination.
// On every 64-bit kernel the time is two 64-bit integers, in the old and the new format.
struct alignas(cmsghdr) Control {
  std::array<uint8_t, CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(in6_pktinfo))> bytes;
};
static_assert(sizeof(timespec) == 16, "receive times are read as two 64-bit integers");

bool is_receive_time(const cmsghdr& control) {
  if (control.cmsg_level != SOL_SOCKET || control.cmsg_len < CMSG_LEN(sizeof(timespec)))
    return false;
#ifdef SO_TIMESTAMPNS_NEW
  if (control.cmsg_type == SO_TIMESTAMPNS_NEW) return true;
#endif
  return control.cmsg_type == SCM_TIMESTAMPNS;
}

uint64_t receive_time_ns(const msghdr& message) {
  const cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (!control || !is_receive_time(*control)) return 0;
  timespec time;
  std::memcpy(&time, CMSG_DATA(control), sizeof time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

struct ReceiveBatch::Buffers {
  alignas(kPageBytes) std::array<std::array<uint8_t, kReceiveBufferBytes>, kReceiveBatchMax> bytes;
  std::array<sockaddr_storage, kReceiveBatchMax> senders;
  std::array<Control, kReceiveBatchMax> controls;
  std::array<iovec, kReceiveBatchMax> parts;
  std::array<mmsghdr, kReceiveBatchMax> headers;
  std::array<ReceivedPacket, kReceiveBatchMax> packets;

  // Resets both lengths, because the kernel overwrites them.
  void reset_lengths(size_t i) {
    headers[i].msg_hdr.msg_namelen = sizeof senders[i];
    headers[i].msg_hdr.msg_controllen = sizeof controls[i];
  }
};

// make_unique writes zeros to all of it, so that the packet path takes no page fault.
ReceiveBatch::ReceiveBatch(const SocketCalls& calls)
    : calls_(calls), buffers_(std::make_unique<Buffers>()) {
  for (size_t i = 0; i < kReceiveBatchMax; i++) {
    buffers_->parts[i] = {buffers_->bytes[i].data(), kReceiveBufferBytes};
    msghdr& header = buffers_->headers[i].msg_hdr;
    header.msg_name = &buffers_->senders[i];
    header.msg_iov = &buffers_->parts[i];
    header.msg_iovlen = 1;
    header.msg_control = &buffers_->controls[i];
    buffers_->reset_lengths(i);
    buffers_->packets[i] = {buffers_->bytes[i].data(), 0, 0, &buffers_->senders[i], &header};
  }
}

ReceiveBatch::~ReceiveBatch() = default;

void ReceiveBatch::lock_memory(MemoryLock& lock) const {
  lock.add(buffers_.get(), sizeof *buffers_);
}

size_t ReceiveBatch::receive(int fd) {
  for (size_t i = 0; i < count_; i++) buffers_->reset_lengths(i);
  const int received = calls_.recvmmsg(fd, buffers_->headers.data(), kReceiveBatchMax,
                                       MSG_DONTWAIT | MSG_TRUNC, nullptr);
  last_errno_ = received < 0 ? errno : 0;
  count_ = received < 0 ? 0 : static_cast<size_t>(received);
  for (size_t i = 0; i < count_; i++) {
    const mmsghdr& header = buffers_->headers[i];
    buffers_->packets[i].length = header.msg_len;
    buffers_->packets[i].received_ns = receive_time_ns(header.msg_hdr);
  }
  return count_;
}

const ReceivedPacket& ReceiveBatch::packet(size_t i) const { return buffers_->packets[i]; }

std::span<const ReceivedPacket> ReceiveBatch::packets() const {
  return std::span(buffers_->packets).first(count_);
}

bool destination_of(const ReceivedPacket& packet, AddressBytes& out) {
  // CMSG_NXTHDR does not change the header, but its type demands a mutable one.
  auto* header = const_cast<msghdr*>(packet.header);
  for (cmsghdr* control = header ? CMSG_FIRSTHDR(header) : nullptr; control;
       control = CMSG_NXTHDR(header, control)) {
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO &&
        control->cmsg_len >= CMSG_LEN(sizeof(in_pktinfo))) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(control), sizeof info);
      out = mapped_ipv4(&info.ipi_addr);
      return true;
    }
    if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO &&
        control->cmsg_len >= CMSG_LEN(sizeof(in6_pktinfo))) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(control), sizeof info);
      std::memcpy(out.data(), &info.ipi6_addr, out.size());
      return true;
    }
  }
  return false;
}

// ---- failures -------------------------------------------------------------------------------

SendFailure send_failure_of(int error_number) {
  switch (error_number) {
    case EAGAIN:
    case ENOBUFS:
      return SendFailure::buffer_full;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENONET:
      return SendFailure::unreachable;
    case ECONNREFUSED:
      return SendFailure::refused;
    case EPERM:
    case EACCES:
      return SendFailure::not_permitted;
    case EMSGSIZE:
      return SendFailure::too_big;
    case EINVAL:
    case EAFNOSUPPORT:
    case EADDRNOTAVAIL:
    case EDESTADDRREQ:
    case EOPNOTSUPP:
    case ENOPROTOOPT:
    case EFAULT:
    case ENOTSOCK:
    case EBADF:
      return SendFailure::invalid;
    default:
      return SendFailure::other;
  }
}

// The errno values that Linux derives from ICMP and ICMPv6 errors (icmp_err_convert,
// icmpv6_err_convert).
bool may_come_from_icmp(int error_number) {
  switch (error_number) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
    case EMSGSIZE:
    case EPROTO:
    case EACCES:
      return true;
    default:
      return false;
  }
}

// ---- sending --------------------------------------------------------------------------------

namespace {

// A pending ICMP error fails one send and is cleared; a second one may have arrived meanwhile.
constexpr uint32_t kAttemptsMax = 3;
// For errors that only ICMP causes: a destination that floods ICMP errors must not cost others
// their datagrams.
constexpr uint32_t kIcmpAttemptsMax = 64;
uint32_t attempts_max(int error_number) {
  const bool icmp_only =
      error_number == ECONNREFUSED || error_number == ECONNRESET || error_number == EPROTO;
  return icmp_only ? kIcmpAttemptsMax : kAttemptsMax;
}
// A signal must not lose a datagram, but every loop is bounded.
constexpr uint32_t kInterruptionsMax = 16;

// Errors of a path that cannot segment: no checksum offload (EIO), segments beyond its MTU (EINVAL,
// EMSGSIZE), an old kernel or another kind of socket (the others).
bool refuses_gso(int error_number) {
  return error_number == EIO || error_number == EINVAL || error_number == EMSGSIZE ||
         error_number == EOPNOTSUPP || error_number == ENOPROTOOPT;
}

}  // namespace

// Messages in the order of sending; element i of each array belongs to message i.
struct SendBatch::Queue {
  size_t count = 0;
  std::array<mmsghdr, kSendBatchMax> headers{};
  std::array<uint32_t, kSendBatchMax> tags{};
  std::array<uint32_t, kSendBatchMax> datagrams{};
};

struct SendBatch::Messages {
  Queue queued;
  Queue singles;  // the single datagrams of a refused GSO message
  std::array<SegmentControl, kSendBatchMax> controls{};
};
static_assert(kGsoSegmentsMax <= kSendBatchMax);

SendBatch::SendBatch(int fd, bool gso, SendObserver& observer, const SocketCalls& calls)
    : fd_(fd),
      gso_(gso),
      observer_(observer),
      calls_(calls),
      messages_(std::make_unique<Messages>()) {}

SendBatch::~SendBatch() = default;

void SendBatch::lock_memory(MemoryLock& lock) const {
  lock.add(messages_.get(), sizeof *messages_);
}

void SendBatch::add(const PayloadGroup& group, const sockaddr* address, socklen_t address_bytes,
                    uint32_t tag) {
  Queue& queue = messages_->queued;
  const bool may_group = gso_ && !refused_gso_[tag % refused_gso_.size()];
  const uint32_t together = may_group ? kGsoSegmentsMax : 1;
  for (uint32_t at = 0; at < group.count; at += together) {
    const uint32_t count = std::min(group.count - at, together);
    msghdr& header = queue.headers[queue.count].msg_hdr;
    header.msg_name = const_cast<sockaddr*>(address);  // the kernel only reads it
    header.msg_namelen = address_bytes;
    header.msg_iov = group.payloads + at;
    header.msg_iovlen = count;
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    if (count > 1) messages_->controls[queue.count].attach(header, group.payload_bytes);
    queue.tags[queue.count] = tag;
    queue.datagrams[queue.count] = count;
    if (++queue.count == kSendBatchMax) flush();
  }
}

void SendBatch::flush() { deliver(messages_->queued); }

size_t SendBatch::size() const { return messages_->queued.count; }

// A short sendmmsg does not return the reason; the next call, which starts at that message, does.
// At most kIcmpAttemptsMax + kInterruptionsMax calls per message.
void SendBatch::deliver(Queue& queue) {
  size_t position = 0;
  uint32_t attempts = 0, interruptions = 0;
  while (position < queue.count) {
    const size_t left = queue.count - position;
    const int result =
        calls_.sendmmsg(fd_, &queue.headers[position], static_cast<unsigned>(left), MSG_DONTWAIT);
    const int error_number = result < 0 ? errno : 0;
    system_calls_++;
    if (result > 0) {
      const size_t end = position + std::min(static_cast<size_t>(result), left);
      for (; position < end; position++)
        observer_.sent(queue.tags[position], queue.datagrams[position]);
    } else {
      if (error_number == EINTR && ++interruptions < kInterruptionsMax) continue;
      if (may_come_from_icmp(error_number) && ++attempts < attempts_max(error_number)) continue;
      give_up(queue, position++, error_number);
    }
    attempts = interruptions = 0;
  }
  queue.count = 0;
}

void SendBatch::give_up(Queue& queue, size_t position, int error_number) {
  const uint32_t datagrams = queue.datagrams[position];
  if (datagrams > 1 && refuses_gso(error_number)) return send_singly(position);
  observer_.failed(queue.tags[position], datagrams, send_failure_of(error_number));
}

void SendBatch::send_singly(size_t position) {
  const Queue& queue = messages_->queued;
  Queue& singles = messages_->singles;
  gso_fallbacks_++;
  refused_gso_.set(queue.tags[position] % refused_gso_.size());
  singles.count = queue.datagrams[position];
  for (size_t i = 0; i < singles.count; i++) {
    msghdr& header = singles.headers[i].msg_hdr;
    header = queue.headers[position].msg_hdr;
    header.msg_iov += i;
    header.msg_iovlen = 1;
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    singles.tags[i] = queue.tags[position];
    singles.datagrams[i] = 1;
  }
  deliver(singles);
}

// ---- ICMP errors ----------------------------------------------------------------------------

namespace {

// Returns false for errors that did not come by ICMP (a local MTU, for example).
bool parse_icmp_error(msghdr& message, IcmpError& out) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control;
       control = CMSG_NXTHDR(&message, control)) {
    const bool ipv4 = control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_RECVERR;
    const bool ipv6 = control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_RECVERR;
    if ((!ipv4 && !ipv6) || control->cmsg_len < CMSG_LEN(sizeof(sock_extended_err))) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(control), sizeof error);
    if (error.ee_origin != SO_EE_ORIGIN_ICMP && error.ee_origin != SO_EE_ORIGIN_ICMP6) continue;
    out.destination = endpoint_from_sockaddr(static_cast<const sockaddr*>(message.msg_name));
    out.error_number = static_cast<int>(error.ee_errno);
    return true;
  }
  return false;
}

}  // namespace

size_t read_icmp_errors(int fd, IcmpError* out, size_t max, const SocketCalls& calls) {
  size_t count = 0;
  for (size_t accepted = 0; accepted < max; accepted++) {
    // Space for the error and the address of its reporter; the datagram itself is not needed.
    alignas(cmsghdr) std::array<uint8_t, 256> control;
    sockaddr_storage destination{};
    msghdr message{};
    message.msg_name = &destination;
    message.msg_namelen = sizeof destination;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (calls.recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) break;
    if (parse_icmp_error(message, out[count])) count++;
  }
  return count;
}

}  // namespace shredway
