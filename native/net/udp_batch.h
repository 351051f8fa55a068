// Batched UDP: sends and receives many datagrams with one system call.
//
// ReceiveBatch owns the buffers that packets are parsed and sent from, so a payload is never
// copied. SendBatch collects messages (one payload, or several equal-sized ones for one destination
// as UDP GSO) and sends 64 at a time. No allocation after construction, no blocking, no exception.
// Every failed message is attributed to its destination.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "net/address.h"
#include "net/socket_calls.h"
#include "system/memory_lock.h"
#include "system/named_enum.h"

namespace shredway {

inline constexpr size_t kReceiveBatchMax = 64;
inline constexpr size_t kReceiveBufferBytes = 1280;  // a packet of up to 1232 bytes, and a longer
                                                     // one shows as longer (MSG_TRUNC)
inline constexpr size_t kSendBatchMax = 64;
inline constexpr size_t kGsoSegmentsMax = 53;  // 53 x 1228 bytes fit one UDP datagram

// One received datagram.
struct ReceivedPacket {
  uint8_t* bytes;        // in the batch's buffers
  uint32_t length;       // true length of the datagram, may exceed kReceiveBufferBytes
  uint64_t received_ns;  // kernel receive time, CLOCK_REALTIME; 0 if the kernel gave none
  const sockaddr_storage* sender;
  const msghdr* header = nullptr;  // its control messages
  uint16_t port = 0;               // that it was sent to; 0: that of the socket
};

// Address that the datagram was sent to; false if the socket does not report it
// (prepare_for_groups() of multicast_socket.h).
bool destination_of(const ReceivedPacket& packet, AddressBytes& out);

class ReceiveBatch {
 public:
  explicit ReceiveBatch(const SocketCalls& calls = system_socket_calls());
  ~ReceiveBatch();
  ReceiveBatch(const ReceiveBatch&) = delete;
  ReceiveBatch& operator=(const ReceiveBatch&) = delete;

  // Receives up to kReceiveBatchMax datagrams from `fd` without blocking. Returns their number; 0
  // if none waits or the call failed (last_errno() has the reason; EAGAIN if none waits).
  size_t receive(int fd);
  size_t size() const { return count_; }
  // Precondition: i < size(). Valid until the next receive().
  const ReceivedPacket& packet(size_t i) const;
  std::span<const ReceivedPacket> packets() const;
  int last_errno() const { return last_errno_; }
  void lock_memory(MemoryLock& lock) const;

 private:
  struct Buffers;
  const SocketCalls& calls_;
  std::unique_ptr<Buffers> buffers_;
  size_t count_ = 0;
  int last_errno_ = 0;
};

// Reasons for failed messages, in the order of their counters.
#define SHREDWAY_SEND_FAILURES(X)                                                    \
  X(buffer_full, "send buffer or device queue full (EAGAIN, ENOBUFS)")               \
  X(unreachable, "no route, or host or network down (EHOSTUNREACH, ENETUNREACH, …)") \
  X(refused, "port closed, reported by ICMP (ECONNREFUSED)")                         \
  X(not_permitted, "a local firewall rule (EPERM, EACCES)")                          \
  X(too_big, "larger than the path's MTU (EMSGSIZE)")                                \
  X(invalid, "address or option refused by the kernel (EINVAL, EAFNOSUPPORT, …)")    \
  X(other, "any other errno")
SHREDWAY_NAMED_ENUM(SendFailure, uint8_t, kSendFailureCount, send_failure_name,
                    SHREDWAY_SEND_FAILURES)
SendFailure send_failure_of(int error_number);
// True for errors that ICMP messages cause. Such an error may concern an earlier datagram, so that
// a second attempt may succeed.
bool may_come_from_icmp(int error_number);

// Gets the results of the messages of a flush, by the tag of each message.
class SendObserver {
 public:
  virtual void sent(uint32_t tag, uint32_t datagrams) = 0;
  virtual void failed(uint32_t tag, uint32_t datagrams, SendFailure failure) = 0;

 protected:
  ~SendObserver() = default;
};

// Payloads of equal length for several destinations; their messages share them.
struct PayloadGroup {
  iovec* payloads;         // one entry per payload; must stay valid until the flush
  uint32_t count;          // more than 1 are sent as GSO, up to kGsoSegmentsMax in one message
  uint16_t payload_bytes;  // length of each
};

class SendBatch {
 public:
  // `gso`: whether groups may be sent as one message. Otherwise each payload is one message.
  SendBatch(int fd, bool gso, SendObserver& observer,
            const SocketCalls& calls = system_socket_calls());
  ~SendBatch();  // discards messages that were not flushed
  SendBatch(const SendBatch&) = delete;
  SendBatch& operator=(const SendBatch&) = delete;

  // Adds the group for one destination, as single messages if its path has refused GSO recently;
  // flushes if the batch is full. `address` must stay valid
  // until the flush.
  void add(const PayloadGroup& group, const sockaddr* address, socklen_t address_bytes,
           uint32_t tag);
  // Sends all messages. A failed message is counted for its tag and skipped. A pending ICMP error
  // of another destination fails an arbitrary send; it costs one retry and no datagram. A GSO
  // message that the path refuses is sent again as single datagrams. The observer is called before
  // this returns, once per message (or single datagram).
  void flush();
  size_t size() const;  // messages that wait for the flush

  // Forgets which destinations have refused GSO. Without this, they never get it again.
  void forget_refusals() { refused_gso_.reset(); }

  uint64_t system_calls() const { return system_calls_; }
  // GSO messages that were refused and sent as single datagrams.
  uint64_t gso_fallbacks() const { return gso_fallbacks_; }
  bool gso() const { return gso_; }
  void lock_memory(MemoryLock& lock) const;

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
  // One bit per tag, modulo its size: tags that share a bit are sent singly together.
  std::bitset<4096> refused_gso_;
  std::unique_ptr<Messages> messages_;
  uint64_t system_calls_ = 0;
  uint64_t gso_fallbacks_ = 0;
};

// An ICMP error that was received for a datagram of this socket.
struct IcmpError {
  Endpoint destination;
  int error_number;  // ECONNREFUSED, EHOSTUNREACH, …
};
// Removes up to `max` entries from the error queue of `fd` and returns those that came by ICMP.
// Never blocks. Returns their number.
size_t read_icmp_errors(int fd, IcmpError* out, size_t max,
                        const SocketCalls& calls = system_socket_calls());

}  // namespace shredway
