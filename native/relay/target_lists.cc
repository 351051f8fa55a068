#include "relay/target_lists.h"

#include <algorithm>
#include <cstring>

namespace shredway {
namespace {

struct Target {
  TransmitTarget target;
  const NextHop* hop;  // nullptr: by socket
};

struct DividedTargets {
  std::vector<TransmitTarget> by_socket;
  std::array<std::vector<Target>, kCloneListsPerList> by_clone;
};

TransmitTarget target_of(const Destination& destination) {
  TransmitTarget target{};
  std::memcpy(&target.ipv6, &destination.ipv6, sizeof target.ipv6);
  target.tag = destination.id;
  target.kind = destination.wants_recovered ? 1 : 0;
  return target;
}

size_t kind_and_family(const TransmitTarget& target) {
  return target.kind * 2u + (target.is_ipv4() ? 0 : 1);
}

void send_by_socket(DividedTargets& divided, std::vector<Target>& targets, size_t first) {
  for (size_t i = first; i < targets.size(); i++) divided.by_socket.push_back(targets[i].target);
  targets.resize(first);
}

bool may_clone(const Target& each, const TargetRules& rules) {
  if (!each.hop || !(each.target.is_ipv4() ? rules.clones.ipv4 : rules.clones.ipv6)) return false;
  const std::vector<uint32_t>& some = rules.interfaces;
  return some.empty() || std::find(some.begin(), some.end(), each.hop->interface) != some.end();
}

DividedTargets divide(const std::vector<Target>& targets, const TargetRules& rules) {
  DividedTargets divided;
  for (const Target& each : targets) {
    if (may_clone(each, rules)) divided.by_clone[kind_and_family(each.target)].push_back(each);
    else divided.by_socket.push_back(each.target);
  }
  for (auto& cloned : divided.by_clone)
    if (cloned.size() < rules.targets_least) send_by_socket(divided, cloned, 0);
  return divided;
}

CloneLists clone_lists_of(const std::vector<DividedTargets>& tiers, const TargetRules& rules) {
  std::vector<std::vector<CloneTarget>> wanted;
  for (const DividedTargets& tier : tiers) {
    for (const auto& cloned : tier.by_clone) {
      std::vector<CloneTarget>& targets = wanted.emplace_back();
      targets.reserve(cloned.size());
      for (const auto& [target, hop] : cloned)
        targets.push_back({target.tag, endpoint_from_sockaddr(&target.address), *hop});
    }
  }
  return CloneLists(wanted, rules.header, rules.clones);
}

TargetLists::List list_of(DividedTargets& divided, std::span<const CloneLists::List> clones) {
  // Targets that do not fit into the clone plane are sent to by socket.
  for (size_t i = 0; i < kCloneListsPerList; i++)
    send_by_socket(divided, divided.by_clone[i], clones[i].size);
  TargetLists::List list;
  list.targets = std::move(divided.by_socket);
  list.by_socket = static_cast<uint32_t>(list.targets.size());
  for (const TransmitTarget& target : list.targets) list.socket_counts[kind_and_family(target)]++;
  for (size_t i = 0; i < kCloneListsPerList; i++) {
    list.by_clone[i] = {static_cast<uint32_t>(list.targets.size()),
                        static_cast<uint32_t>(divided.by_clone[i].size())};
    for (const Target& each : divided.by_clone[i]) list.targets.push_back(each.target);
  }
  return list;
}

}  // namespace

TargetLists::TargetLists(const FanoutTable* fanout, const NextHops* next_hops,
                         const TargetRules& rules) {
  std::vector<DividedTargets> tiers;
  for (uint32_t tier = 0; tier < rules.tier_count; tier++) {
    std::vector<Target> targets;
    for (const Destination& destination :
         fanout ? fanout->of_tier(tier) : std::span<const Destination>()) {
      Target& target = targets.emplace_back(Target{target_of(destination), nullptr});
      if (!next_hops) continue;
      const NextHops::Entry* entry =
          next_hops->find(endpoint_from_sockaddr(&destination.address).address);
      const NextHopState state = entry ? entry->state : NextHopState::neighbour_unknown;
      if (state == NextHopState::resolved) target.hop = &entry->hop;
      states_[static_cast<size_t>(state)]++;
    }
    tiers.push_back(divide(targets, rules));
  }
  clones_ = clone_lists_of(tiers, rules);
  for (size_t tier = 0; tier < tiers.size(); tier++)
    lists_.push_back(
        list_of(tiers[tier],
                std::span(clones_.lists()).subspan(tier * kCloneListsPerList, kCloneListsPerList)));
}

}  // namespace shredway
