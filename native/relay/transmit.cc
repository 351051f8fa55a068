#include "relay/transmit.h"

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
      send_ipv4_(options.send_ipv4, options.gso, observer, calls),
      send_ipv6_(options.send_ipv6, options.gso, observer, calls) {
  if (!options.clone.targets) return;
  CloneHeader& header = header_;
  header.source_port_ipv4 = local_endpoint(options.send_ipv4).port;
  header.source_port_ipv6 = local_endpoint(options.send_ipv6).port;
  header.ttl = options.ttl;
  header.dscp = options.dscp;
  CloneObserver& own = *this;
  clone_ = std::make_unique<CloneBatch>(options.clone, header, options.gso, own, calls);
  families_ = {clone_->families().ipv4 && options.send_ipv4 >= 0,
               clone_->families().ipv6 && options.send_ipv6 >= 0};
}

Transmit::~Transmit() = default;

// ---- lists ----------------------------------------------------------------------------------

TargetRules Transmit::target_rules(uint32_t tier_count) const {
  return {tier_count, families_, header_};
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

void Transmit::add(uint32_t list, const Groups& groups, bool recovered) {
  if (clone_targets_[0] + clone_targets_[1] > 0) add_by_clone(list, groups, recovered);
  const std::span<const TransmitTarget> targets = socket_targets(list);
  const size_t size = targets.size();
  const size_t start = size > 0 ? rotations_[list] % size : 0;
  rotations_[list]++;
  for (size_t i = 0; i < size; i++) {
    const size_t place = start + i < size ? start + i : start + i - size;
    const TransmitTarget& target = targets[place];
    for (const PayloadGroup& group : groups[target.kind])
      if (group.count > 0) add_by_socket(target, group);
  }
}

void Transmit::add_by_clone(uint32_t list, const Groups& groups, bool recovered) {
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
                  rotations_[list] % range.count, recovered);
    }
  }
}

void Transmit::add_all_by_socket(std::span<const TransmitTarget> targets,
                                 const std::array<PayloadGroup, kTransmitGroups>& groups) {
  for (const TransmitTarget& target : targets) {
    for (const PayloadGroup& group : groups) {
      if (group.count == 0) continue;
      clone_fallbacks_ += group.count;
      add_by_socket(target, group);
    }
  }
}

void Transmit::add_by_socket(const TransmitTarget& target, const PayloadGroup& group) {
  SendBatch& batch = target.is_ipv4() ? send_ipv4_ : send_ipv6_;
  batch.add(group, &target.address, target.address_bytes(), target.tag);
}

void Transmit::flush() {
  if (clone_) clone_->flush();
  send_ipv4_.flush();
  send_ipv6_.flush();
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
  for (uint32_t i = 0; i < count; i++)
    add_by_socket(list.targets[range.first + (from + i) % range.count], group);
}

// ---- counts ---------------------------------------------------------------------------------

void Transmit::settle(uint64_t now_ns) {
  if (clone_) clone_->settle();
  const auto since_ns = static_cast<int64_t>(now_ns - retried_ns_);
  if (since_ns >= 0 && since_ns < static_cast<int64_t>(kRetryAfter_ns)) return;
  retried_ns_ = now_ns;
  refused_ = {};
  send_ipv4_.forget_refusals();
  send_ipv6_.forget_refusals();
}

void Transmit::cloned(uint32_t tag, uint64_t datagrams, uint64_t recovered_datagrams) {
  observer_.cloned(tag, datagrams, recovered_datagrams);
}

void Transmit::clone_failed(uint32_t tag, uint64_t datagrams, SendFailure failure) {
  observer_.clone_failed(tag, datagrams, failure);
}

uint64_t Transmit::system_calls() const {
  return send_ipv4_.system_calls() + send_ipv6_.system_calls() +
         (clone_ ? clone_->system_calls() : 0);
}

uint64_t Transmit::gso_fallbacks() const {
  return send_ipv4_.gso_fallbacks() + send_ipv6_.gso_fallbacks();
}

}  // namespace shredway
