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
  cloned_targets_ = static_cast<uint32_t>(lists.clones().rows().size());
}

// All targets after clones were closed.
std::span<const TransmitTarget> Transmit::socket_targets(uint32_t list) const {
  const TargetLists::List& from = lists_->lists()[list];
  const bool all = clones_broken_ && cloned_targets_ == 0;
  return std::span(from.targets).first(all ? from.targets.size() : from.by_socket);
}

// ---- packet path ----------------------------------------------------------------------------

void Transmit::add(uint32_t list, const Groups& groups, bool recovered) {
  if (cloned_targets_ > 0) add_by_clone(list, groups, recovered);
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
    const uint32_t size = to.by_clone[i].count;
    if (size == 0) continue;
    for (const PayloadGroup& group : groups[i / 2]) {
      if (group.count == 0) continue;
      clone_->add(static_cast<uint32_t>(list * kCloneListsPerList + i), group,
                  rotations_[list] % size, recovered);
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
  if (clones_broken_ && cloned_targets_ > 0) close_clones();
}

void Transmit::close_clones() {
  clone_->use_lists({});
  cloned_targets_ = 0;
}

// Sends to each target by socket at the next flush; the kernel's routing then applies.
void Transmit::not_cloned(uint32_t clone_list, uint32_t from, uint32_t count,
                          const PayloadGroup& group, int error_number) {
  if (!is_temporary(error_number)) clones_broken_ = true;
  const TargetLists::List& list = lists_->lists()[clone_list / kCloneListsPerList];
  const TargetLists::Range& range = list.by_clone[clone_list % kCloneListsPerList];
  clone_fallbacks_ += uint64_t{count} * group.count;
  for (uint32_t i = 0; i < count; i++)
    add_by_socket(list.targets[range.first + (from + i) % range.count], group);
}

// ---- counts ---------------------------------------------------------------------------------

void Transmit::settle() {
  if (clone_) clone_->settle();
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
