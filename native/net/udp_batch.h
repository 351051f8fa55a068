// Batched UDP: many datagrams for one system call, in both directions.
//
// The worker's hands. ReceiveBatch owns the buffers that packets are parsed, kept and sent from, so
// a payload is never copied. SendBatch collects messages (one payload, or several equal-sized ones
// for one destination as UDP GSO) and hands them over 64 at a time. No allocation after
// construction, no blocking, no exception. Every failed message is attributed to its destination.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/address.h"
#include "net/socket_calls.h"
#include "system/named_enum.h"

namespace shredway {

inline constexpr size_t kReceiveBatchMax = 64;
inline constexpr size_t kReceiveBufferBytes = 1280;  // a packet of up to 1232 bytes, and a longer
                                                     // one shows as longer (MSG_TRUNC)
inline constexpr size_t kSendBatchMax = 64;
inline constexpr size_t kGsoSegmentsMax = 53;  // 53 x 1228 bytes still fit one UDP datagram

// One received datagram.
struct ReceivedPacket {
  const uint8_t* bytes;
  uint32_t length;       // true length of the datagram, may exceed kReceiveBufferBytes
  uint64_t received_ns;  // kernel receive time, CLOCK_REALTIME; 0 when the kernel gave none
  const sockaddr_storage* sender;
};

class ReceiveBatch {
 public:
  explicit ReceiveBatch(const SocketCalls& calls = system_socket_calls());
  ~ReceiveBatch();
  ReceiveBatch(const ReceiveBatch&) = delete;
  ReceiveBatch& operator=(const ReceiveBatch&) = delete;

  // Takes what waits on `fd`, at most kReceiveBatchMax datagrams, without blocking. Returns how
  // many; 0 when nothing waits or the call failed (last_errno() tells; EAGAIN when nothing waits).
  size_t receive(int fd);
  size_t size() const { return count_; }
  // Precondition: i < size(). Valid until the next receive().
  ReceivedPacket packet(size_t i) const;
  int last_errno() const { return last_errno_; }

 private:
  struct Buffers;
  const SocketCalls& calls_;
  std::unique_ptr<Buffers> buffers_;
  size_t count_ = 0;
  int last_errno_ = 0;
};

// Why messages to a destination failed; the order is that of the counters.
#define SHREDWAY_SEND_FAILURES(X)                                                    \
  X(buffer_full, "send buffer or device queue full (EAGAIN, ENOBUFS)")               \
  X(unreachable, "no route, or host or network down (EHOSTUNREACH, ENETUNREACH, …)") \
  X(refused, "nobody listens there, told by ICMP (ECONNREFUSED)")                    \
  X(not_permitted, "a local firewall rule (EPERM, EACCES)")                          \
  X(too_big, "larger than the path's MTU (EMSGSIZE)")                                \
  X(invalid, "address or option that the kernel refuses (EINVAL, EAFNOSUPPORT, …)")  \
  X(other, "any other errno")
SHREDWAY_NAMED_ENUM(SendFailure, uint8_t, kSendFailureCount, send_failure_name,
                    SHREDWAY_SEND_FAILURES)
SendFailure send_failure_of(int error_number);
// True for what ICMP errors are turned into: it may be about an earlier datagram, so that the same
// send may succeed when it is tried again.
bool may_come_from_icmp(int error_number);

// Told what became of the messages of a flush, by the tag that they were added with.
class SendObserver {
 public:
  virtual void sent(uint32_t tag, uint32_t datagrams) = 0;
  virtual void failed(uint32_t tag, uint32_t datagrams, SendFailure failure) = 0;

 protected:
  ~SendObserver() = default;
};

// Payloads of equal length that several destinations get; shared by their messages.
struct PayloadGroup {
  iovec* payloads;         // one entry each, must stay valid until the flush
  uint32_t count;          // more than 1 are sent as GSO, up to kGsoSegmentsMax in one message
  uint16_t payload_bytes;  // length of each
};

class SendBatch {
 public:
  // `gso`: whether groups may be sent as one message. Without, they go one by one.
  SendBatch(int fd, bool gso, SendObserver& observer,
            const SocketCalls& calls = system_socket_calls());
  ~SendBatch();  // what was not flushed is not sent
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // Adds the group for one destination; flushes by itself when the batch is full. `address` must
  // stay valid until the flush.
  void add(const PayloadGroup& group, const sockaddr* address, socklen_t address_bytes,
           uint32_t tag);
  // Hands over everything. A message that fails is charged to its tag and skipped; the rest goes
  // on. A pending ICMP error of another destination (it fails an arbitrary send) costs one retry
  // and nobody's datagram. A GSO message that the path refuses goes again as single datagrams.
  // The observer is called before this returns, once for each message (or single datagram).
  void flush();

  uint64_t system_calls() const { return system_calls_; }
  // GSO messages that were refused and went as single datagrams.
  uint64_t gso_fallbacks() const { return gso_fallbacks_; }
  bool gso() const { return gso_; }

 private:
  struct Queue;
  struct Messages;
  void deliver(Queue& queue);
  void give_up(Queue& queue, size_t position, int error_number);
  void send_singly(size_t position);

  int fd_;
  bool gso_;
  SendObserver& observer_;
  const SocketCalls& calls_;
  std::unique_ptr<Messages> messages_;
  uint64_t system_calls_ = 0;
  uint64_t gso_fallbacks_ = 0;
};

// One ICMP error that came back for a datagram of ours.
struct IcmpError {
  Endpoint destination;
  int error_number;  // ECONNREFUSED, EHOSTUNREACH, …
};
// Takes up to `max` entries from the error queue of `fd`, and keeps those that ICMP told. Never
// blocks. Returns how many.
size_t read_icmp_errors(int fd, IcmpError* out, size_t max,
                        const SocketCalls& calls = system_socket_calls());

}  // namespace shredway
