#include "clone/clone_batch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "net/segment_control.h"

namespace shredway {
namespace {

// Packets that leave by the trigger interface end at its hook, so these addresses only need to be
// valid for a bound socket. 192.0.0.8 is the IPv4 dummy address (RFC 7600).
constexpr std::array<uint8_t, 4> kTriggerIpv4 = {192, 0, 0, 8};
constexpr AddressBytes kTriggerIpv6 = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
constexpr uint32_t kInterruptionsMax = 16;

uint64_t cookie_of(int fd) {
  uint64_t cookie = 0;
  socklen_t bytes = sizeof cookie;
  return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &bytes) == 0 ? cookie : 0;
}

// Error of a refused clone: the queue discipline's result, or a negative errno.
SendFailure failure_of(int32_t error) {
  if (error > 0) return SendFailure::buffer_full;  // NET_XMIT_DROP, NET_XMIT_CN
  switch (-error) {
    case ENOBUFS:
    case ENOMEM:
      return SendFailure::buffer_full;
    case EINVAL:  // the helper returns it for an interface that no longer exists
    case ENODEV:
    case ENXIO:
    case ENETDOWN:
      return SendFailure::unreachable;
    default:
      return SendFailure::other;
  }
}

// A trigger and its job.
struct Job {
  uint32_t list;
  PayloadGroup group;
  uint64_t runs_before;
  int error_number;
};

// Triggers of one family, in the order of their jobs.
struct Queue {
  int fd = -1;
  uint64_t cookie = 0;
  size_t count = 0;
  std::array<mmsghdr, kCloneJobsMax> headers{};
  std::array<sockaddr_storage, kCloneJobsMax> addresses{};
  std::array<uint8_t, kCloneJobsMax> jobs{};
};

// `fd`: socket on the trigger interface; -1 if it has no such family.
void open(Queue& queue, int fd, bool ipv4) {
  queue.fd = fd;
  queue.cookie = cookie_of(fd);
  Endpoint to;
  to.address = ipv4 ? mapped_ipv4(kTriggerIpv4.data()) : kTriggerIpv6;
  for (size_t i = 0; i < kCloneJobsMax; i++) {
    msghdr& header = queue.headers[i].msg_hdr;
    header.msg_namelen = to_sockaddr(to, queue.addresses[i]);
    header.msg_name = &queue.addresses[i];
  }
}

}  // namespace

struct CloneBatch::State {
  CloneRegion region;
  CloneHeader header;
  bool gso;
  CloneObserver& observer;
  const SocketCalls& calls;
  std::vector<CloneLists::List> lists{};
  std::vector<uint32_t> tags{};  // by row
  size_t job_count = 0;
  std::array<Job, kCloneJobsMax> jobs{};
  std::array<SegmentControl, kCloneJobsMax> controls{};  // by job
  Queue ipv4{};
  Queue ipv6{};
  uint64_t triggers = 0;
  uint64_t system_calls = 0;

  void add_job(uint32_t list, const PayloadGroup& group, uint32_t start, uint32_t targets,
               bool recovered);
  void send(Queue& queue);
  void settle(size_t row);
};

// ---- lists ----------------------------------------------------------------------------------

CloneBatch::CloneBatch(const CloneRegion& region, const CloneHeader& header, bool gso,
                       CloneObserver& observer, const SocketCalls& calls)
    : state_(new State{region, header, gso && region.gso, observer, calls}) {
  open(state_->ipv4, region.trigger_ipv4, true);
  open(state_->ipv6, region.trigger_ipv6, false);
  state_->lists.reserve(kCloneListsMax);
  state_->tags.reserve(kCloneTargetsMax);
}

CloneBatch::~CloneBatch() = default;

CloneFamilies CloneBatch::families() const {
  return {state_->ipv4.cookie != 0, state_->ipv6.cookie != 0};
}

size_t CloneBatch::set_lists(std::span<const std::vector<CloneTarget>> lists) {
  const CloneLists built(lists, state_->header, families());
  use_lists(built);
  return built.rows().size();
}

// Copies into reserved memory, because the owner may free the built lists later.
void CloneBatch::use_lists(const CloneLists& lists) {
  State& state = *state_;
  flush();
  settle();
  state.lists.assign(lists.lists().begin(), lists.lists().end());
  state.tags.assign(lists.tags().begin(), lists.tags().end());
  std::copy(lists.rows().begin(), lists.rows().end(), state.region.targets);
}

uint32_t CloneBatch::list_size(uint32_t list) const { return state_->lists[list].size; }

// ---- triggers -------------------------------------------------------------------------------

void CloneBatch::add(uint32_t list, const PayloadGroup& group, uint32_t start, bool recovered) {
  const uint32_t size = state_->lists[list].size;
  if (size == 0) return;
  const uint32_t together = state_->gso ? kGsoSegmentsMax : 1;
  for (uint32_t at = 0; at < group.count; at += together) {
    const PayloadGroup part = {group.payloads + at, std::min(group.count - at, together),
                               group.payload_bytes};
    for (uint32_t served = 0; served < size; served += kCloneTargetsPerJob) {
      const uint32_t targets = std::min(size - served, kCloneTargetsPerJob);
      const auto from = static_cast<uint32_t>((uint64_t{start} + served) % size);
      state_->add_job(list, part, from, targets, recovered);
      if (state_->job_count == kCloneJobsMax) flush();
    }
  }
}

void CloneBatch::State::add_job(uint32_t list, const PayloadGroup& group, uint32_t start,
                                uint32_t targets, bool recovered) {
  const size_t number = job_count++;
  Queue& queue = lists[list].ipv4 ? ipv4 : ipv6;
  CloneJobRow& row = region.jobs[number];
  row.socket_cookie = queue.cookie;
  row.first = region.first_target + lists[list].first;
  row.count = lists[list].size;
  row.start = start;
  row.targets = targets;
  row.datagrams = group.count;
  row.recovered = recovered ? 1 : 0;
  jobs[number] = {list, group, row.runs, 0};

  const size_t position = queue.count++;
  queue.jobs[position] = static_cast<uint8_t>(number);
  const auto port = htons(static_cast<uint16_t>(region.first_job + number + 1));
  // The port has the same offset in both families' addresses.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(
      reinterpret_cast<uint8_t*>(&queue.addresses[position]) + offsetof(sockaddr_in, sin_port),
      &port, sizeof port);
  msghdr& message = queue.headers[position].msg_hdr;
  message.msg_iov = group.payloads;
  message.msg_iovlen = group.count;
  message.msg_control = nullptr;
  message.msg_controllen = 0;
  // Also for single payloads: with this option the kernel puts payloads into pages, which clones
  // share. Otherwise they lie behind the header and are copied for each clone.
  if (gso) controls[number].attach(message, group.payload_bytes);
}

void CloneBatch::flush() {
  State& state = *state_;
  if (state.job_count == 0) return;
  state.send(state.ipv4);
  state.send(state.ipv6);
  const size_t count = state.job_count;
  for (size_t i = 0; i < count; i++) {
    Job& job = state.jobs[i];
    CloneJobRow& row = state.region.jobs[i];
    // A delayed packet (held by a firewall) must not match a later job.
    row.socket_cookie = 0;
    if (job.error_number == 0 && row.runs == job.runs_before) job.error_number = kCloneNotExecuted;
    if (job.error_number)
      state.observer.not_cloned(job.list, row.start, row.targets, job.group, job.error_number);
  }
  state.job_count = 0;
}

// A short sendmmsg does not return the reason; the next call, which starts at that trigger, does.
void CloneBatch::State::send(Queue& queue) {
  size_t position = 0;
  uint32_t interruptions = 0;
  while (position < queue.count) {
    const size_t left = queue.count - position;
    const int result = calls.sendmmsg(queue.fd, &queue.headers[position],
                                      static_cast<unsigned>(left), MSG_DONTWAIT);
    const int error_number = result < 0 ? errno : 0;
    system_calls++;
    if (result > 0) {
      const size_t accepted = std::min(static_cast<size_t>(result), left);
      triggers += accepted;
      position += accepted;
    } else {
      if (error_number == EINTR && ++interruptions < kInterruptionsMax) continue;
      jobs[queue.jobs[position++]].error_number = error_number ? error_number : kCloneNotExecuted;
    }
    interruptions = 0;
  }
  queue.count = 0;
}

// ---- counts ---------------------------------------------------------------------------------

void CloneBatch::settle() {
  for (size_t row = 0; row < state_->tags.size(); row++) state_->settle(row);
}

// The program writes only during this thread's own send calls, so reported counts can be reset to
// zero.
void CloneBatch::State::settle(size_t row) {
  CloneTargetRow& target = region.targets[row];
  if (target.sent || target.recovered_sent)
    observer.cloned(tags[row], target.sent, target.recovered_sent);
  if (target.refused)
    observer.clone_failed(tags[row], target.refused, failure_of(target.last_error));
  target.sent = target.recovered_sent = target.refused = 0;
}

uint64_t CloneBatch::triggers() const { return state_->triggers; }

uint64_t CloneBatch::system_calls() const { return state_->system_calls; }

}  // namespace shredway
