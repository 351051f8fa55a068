#include "relay/transmit.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "net/udp_socket.h"

namespace shredway {
namespace {

// True for a temporary error: the next trigger may succeed.
bool is_temporary(int error_number) {
  return error_number == EAGAIN || error_number == ENOBUFS || error_number == ENOMEM ||
         error_number == EINTR;
}

// 0: IPv4, 1: IPv6; for an index of a clone list.
constexpr size_t family_of(size_t clone_list) { return clone_list % 2; }

}  // namespace

Transmit::Transmit(const TransmitOptions& options, TransmitObserver& observer,
                   const SocketCalls& calls)
    : observer_(observer),
      sockets_(options.sockets),
      calls_(calls),
      by_socket_(options.sockets, observer, calls) {
  if (!options.clone.targets && options.xdp.empty()) return;
  CloneHeader& header = header_;
  header.source_port_ipv4 = local_endpoint(sockets_.ipv4).port;
  header.source_port_ipv6 = local_endpoint(sockets_.ipv6).port;
  header.ttl = options.ttl;
  header.dscp = options.dscp;
  ListObserver& own = *this;
  if (options.clone.targets)
    clone_ = std::make_unique<CloneBatch>(options.clone, header, sockets_.gso, own, calls);
  else clone_ = std::make_unique<XdpBatch>(options.xdp, own, calls);
  for (const XdpSocket* socket : options.xdp) interfaces_.push_back(socket->interface());
  families_ = {clone_->families().ipv4 && sockets_.ipv4 >= 0,
               clone_->families().ipv6 && sockets_.ipv6 >= 0};
}

Transmit::~Transmit() = default;

std::string Transmit::start_senders(const SenderThreadsOptions& options) {
  std::string error;
  senders_ = SenderThreads::start(options, sockets_, observer_, calls_, error);
  return error;
}

// ---- lists ----------------------------------------------------------------------------------

TargetRules Transmit::target_rules(uint32_t tier_count) const {
  constexpr size_t kXdpTargetsLeast = 1;  // a frame costs less than a datagram by socket
  return {tier_count, families_, header_, interfaces_,
          interfaces_.empty() ? kCloneTargetsLeast : kXdpTargetsLeast};
}

void Transmit::set_lists(const TargetLists& lists) {
  lists_ = &lists;
  if (!clone_ || clones_broken_) return;
  clone_->use_lists(lists.clones());
  refused_ = {};
  clone_targets_ = {};
  for (const TargetLists::List& list : lists.lists())
    for (size_t i = 0; i < kCloneListsPerList; i++)
      clone_targets_[family_of(i)] += list.by_clone[i].count;
}

uint32_t Transmit::cloned_targets() const {
  return (refused_[0] ? 0 : clone_targets_[0]) + (refused_[1] ? 0 : clone_targets_[1]);
}

// All targets after clones were closed.
std::span<const TransmitTarget> Transmit::socket_targets(uint32_t list) const {
  const TargetLists::List& from = lists_->lists()[list];
  return std::span(from.targets).first(clones_closed_ ? from.targets.size() : from.by_socket);
}

// ---- packet path ----------------------------------------------------------------------------

// Send paths of the payloads of a list.
Transmit::SendPaths Transmit::paths_of(uint32_t list, const Groups& groups) const {
  const TargetLists::List& to = lists_->lists()[list];
  SendPaths paths = 0;
  for (size_t i = 0; i < kCloneListsPerList; i++) {
    const std::array<PayloadGroup, kTransmitGroups>& payloads = groups[i / 2];
    if (payloads[0].count + payloads[1].count == 0) continue;
    const size_t family = family_of(i);
    const bool has_clones = to.by_clone[i].count > 0;
    const bool clones = has_clones && !clones_closed_ && !refused_[family];
    if (to.socket_counts[i] > 0 || (has_clones && !clones)) paths |= socket_path(family);
    if (!clones) continue;
    // AF_XDP sends the frames of both families together, but each interface sends alone.
    if (interfaces_.empty()) paths |= clone_path(family);
    else paths |= interfaces_.size() == 1 ? clone_path(0) : clone_path(0) | clone_path(1);
  }
  return paths;
}

// Returns false if the list has nothing to send. Lists that leave by the same single send path
// share system calls. In any other case the earlier lists leave now, because each send path is
// flushed apart.
bool Transmit::begin_list(uint32_t list, const Groups& groups) {
  SendPaths paths = paths_of(list, groups);
  if (paths == 0) return false;
  if (queued_ && std::popcount(queued_ | paths) > 1) {
    flush();
    paths = paths_of(list, groups);  // the kernel may have refused clones
  }
  queued_ |= paths;
  return true;
}

void Transmit::add(uint32_t list, const Groups& groups, bool recovered) {
  if (!begin_list(list, groups)) return;
  const uint32_t rotation = rotations_[list][recovered]++;
  by_socket_.alternate(rotation);
  if (clone_targets_[0] + clone_targets_[1] > 0) add_by_clone(list, groups, rotation, recovered);
  const std::span<const TransmitTarget> targets = socket_targets(list);
  if (senders_ && is_worth_dividing(list, groups)) {
    flush();  // of lists that were added before
    senders_->send_to_all(targets, groups, rotation, by_socket_);
    return;
  }
  const size_t size = targets.size();
  const size_t start = size > 0 ? rotation % size : 0;
  for (size_t i = 0; i < size; i++) {
    const size_t place = start + i < size ? start + i : start + i - size;
    by_socket_.add(targets[place], groups);
  }
}

bool Transmit::is_worth_dividing(uint32_t list, const Groups& groups) const {
  uint64_t messages = 0;
  for (size_t kind = 0; kind < kTransmitKinds; kind++) {
    const auto& counts = lists_->lists()[list].socket_counts;
    const uint64_t targets = uint64_t{counts[2 * kind]} + counts[2 * kind + 1];
    for (const PayloadGroup& group : groups[kind])
      messages += targets * (sockets_.gso ? std::min(group.count, 1u) : group.count);
  }
  return messages >= SenderThreads::kMessagesLeast;
}

void Transmit::add_by_clone(uint32_t list, const Groups& groups, uint32_t rotation,
                            bool recovered) {
  const TargetLists::List& to = lists_->lists()[list];
  for (size_t i = 0; i < kCloneListsPerList; i++) {
    const TargetLists::Range& range = to.by_clone[i];
    if (range.count == 0) continue;
    if (refused_[family_of(i)]) {
      add_all_by_socket(std::span(to.targets).subspan(range.first, range.count), groups[i / 2]);
      continue;
    }
    for (const PayloadGroup& group : groups[i / 2]) {
      if (group.count == 0) continue;
      clone_->add(static_cast<uint32_t>(list * kCloneListsPerList + i), group,
                  rotation % range.count, recovered);
    }
  }
  // A list with several send paths is alone in the queue. Its messages by socket may fill a batch,
  // which is sent at once: the clones must not wait for that.
  if (std::popcount(queued_) > 1) clone_->flush();
}

void Transmit::add_all_by_socket(std::span<const TransmitTarget> targets,
                                 const std::array<PayloadGroup, kTransmitGroups>& groups) {
  for (const TransmitTarget& target : targets) {
    for (const PayloadGroup& group : groups) {
      if (group.count == 0) continue;
      clone_fallbacks_ += group.count;
      by_socket_.add(target, group);
    }
  }
}

void Transmit::flush() {
  if (clone_) clone_->flush();
  by_socket_.flush();
  queued_ = 0;
  if (clones_broken_ && !clones_closed_) close_clones();
}

void Transmit::close_clones() {
  clone_->use_lists({});
  clone_targets_ = {};
  clones_closed_ = true;
}

// Sends to each target by socket at the next flush; the kernel's routing then applies.
void Transmit::not_cloned(uint32_t clone_list, uint32_t from, uint32_t count,
                          const PayloadGroup& group, int error_number) {
  if (error_number == kCloneNotExecuted) {
    clones_broken_ = true;
  } else if (!is_temporary(error_number) && !refused_[family_of(clone_list)]) {
    refused_[family_of(clone_list)] = true;
    clone_refusals_++;
  }
  const TargetLists::List& list = lists_->lists()[clone_list / kCloneListsPerList];
  const TargetLists::Range& range = list.by_clone[clone_list % kCloneListsPerList];
  clone_fallbacks_ += uint64_t{count} * group.count;
  queued_ |= socket_path(family_of(clone_list));
  for (uint32_t i = 0; i < count; i++)
    by_socket_.add(list.targets[range.first + (from + i) % range.count], group);
}

// ---- counts ---------------------------------------------------------------------------------

void Transmit::settle(uint64_t now_ns) {
  if (clone_) clone_->settle();
  const auto since_ns = static_cast<int64_t>(now_ns - retried_ns_);
  if (since_ns >= 0 && since_ns < static_cast<int64_t>(kRetryAfter_ns)) return;
  retried_ns_ = now_ns;
  refused_ = {};
  if (clone_) clone_->forget_refusals();
  by_socket_.forget_refusals();
  if (senders_) senders_->forget_refusals();
}

void Transmit::cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) {
  observer_.cloned(tag, datagrams, recovered_datagrams);
}

void Transmit::clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) {
  observer_.clone_failed(tag, datagrams, failure);
}

uint64_t Transmit::system_calls() const {
  return by_socket_.system_calls() + (senders_ ? senders_->system_calls() : 0) +
         (clone_ ? clone_->system_calls() : 0);
}

uint64_t Transmit::gso_fallbacks() const {
  return by_socket_.gso_fallbacks() + (senders_ ? senders_->gso_fallbacks() : 0);
}

}  // namespace shredway
