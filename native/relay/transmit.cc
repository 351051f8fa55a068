#include "relay/transmit.h"

#include <cerrno>

#include "net/udp_socket.h"

namespace shredway {
namespace {

// Of the moment: the next trigger may be taken again.
bool passes(int error_number) {
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
  CloneHead head;
  head.source_port_ipv4 = local_endpoint(options.send_ipv4).port;
  head.source_port_ipv6 = local_endpoint(options.send_ipv6).port;
  head.ttl = options.ttl;
  head.dscp = options.dscp;
  has_ipv4_region_ = options.clone.trigger_ipv4 >= 0 && options.send_ipv4 >= 0;
  has_ipv6_region_ = options.clone.trigger_ipv6 >= 0 && options.send_ipv6 >= 0;
  CloneObserver& own = *this;
  clone_ = std::make_unique<CloneBatch>(options.clone, head, options.gso, own, calls);
}

Transmit::~Transmit() = default;

// ---- lists ----------------------------------------------------------------------------------

void Transmit::set_lists(std::span<const std::vector<TransmitTarget>> lists) {
  lists_.resize(lists.size());
  for (size_t i = 0; i < lists.size(); i++) divide(lists[i], lists_[i]);
  if (clone_) set_clone_lists();
}

void Transmit::divide(const std::vector<TransmitTarget>& targets, List& list) const {
  list.by_socket.clear();
  for (auto& cloned : list.by_clone) cloned.clear();
  for (const TransmitTarget& target : targets) {
    const bool may_clone =
        target.hop && !clones_broken_ && (target.is_ipv4() ? has_ipv4_region_ : has_ipv6_region_);
    (may_clone ? list.by_clone[clone_list_of(target)] : list.by_socket).push_back(target);
  }
  for (auto& cloned : list.by_clone) {
    if (cloned.size() >= kCloneTargetsLeast) continue;
    list.by_socket.insert(list.by_socket.end(), cloned.begin(), cloned.end());
    cloned.clear();
  }
}

// Whoever finds no room in the plane goes by socket.
void Transmit::set_clone_lists() {
  std::vector<std::vector<CloneTarget>> wanted;
  for (const List& list : lists_) {
    for (const auto& cloned : list.by_clone) {
      std::vector<CloneTarget>& targets = wanted.emplace_back();
      targets.reserve(cloned.size());
      for (const TransmitTarget& target : cloned)
        targets.push_back({target.tag, endpoint_from_sockaddr(&target.address), *target.hop});
    }
  }
  size_t room = clone_->set_lists(wanted);
  cloned_targets_ = static_cast<uint32_t>(room);
  for (List& list : lists_) {
    for (auto& cloned : list.by_clone) {
      const size_t taken = std::min(room, cloned.size());
      room -= taken;
      const auto rest = cloned.begin() + static_cast<ptrdiff_t>(taken);
      list.by_socket.insert(list.by_socket.end(), rest, cloned.end());
      cloned.erase(rest, cloned.end());
    }
  }
}

// ---- the path of a packet -------------------------------------------------------------------

void Transmit::add(uint32_t list, const Groups& groups, bool recovered) {
  List& to = lists_[list];
  if (cloned_targets_ > 0) add_by_clone(list, groups, recovered);
  const size_t size = to.by_socket.size();
  const size_t start = size > 0 ? to.rotation % size : 0;
  to.rotation++;
  for (size_t i = 0; i < size; i++) {
    const size_t place = start + i < size ? start + i : start + i - size;
    const TransmitTarget& target = to.by_socket[place];
    for (const PayloadGroup& group : groups[target.kind])
      if (group.count > 0) add_by_socket(target, group);
  }
}

void Transmit::add_by_clone(uint32_t list, const Groups& groups, bool recovered) {
  const List& to = lists_[list];
  for (size_t i = 0; i < kCloneLists; i++) {
    if (to.by_clone[i].empty()) continue;
    for (const PayloadGroup& group : groups[i / 2]) {
      if (group.count == 0) continue;
      const auto start = static_cast<uint32_t>(to.rotation % to.by_clone[i].size());
      clone_->add(static_cast<uint32_t>(list * kCloneLists + i), group, start, recovered);
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
  for (List& list : lists_) {
    for (auto& cloned : list.by_clone) {
      list.by_socket.insert(list.by_socket.end(), cloned.begin(), cloned.end());
      cloned.clear();
    }
  }
  clone_->set_lists({});
  cloned_targets_ = 0;
}

// The kernel looks for the way of each: by socket, with the next flush of the sockets.
void Transmit::not_cloned(uint32_t clone_list, uint32_t from, uint32_t count,
                          const PayloadGroup& group, int error_number) {
  if (!passes(error_number)) clones_broken_ = true;
  const auto& targets = lists_[clone_list / kCloneLists].by_clone[clone_list % kCloneLists];
  clone_fallbacks_ += uint64_t{count} * group.count;
  for (uint32_t i = 0; i < count; i++) add_by_socket(targets[(from + i) % targets.size()], group);
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
