#include "clone/next_hop_view.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>
#include <utility>

namespace shredway {
namespace {

constexpr uint32_t kIpv4HeaderBytes = 20 + 8;  // with the UDP header
constexpr uint32_t kIpv6HeaderBytes = 40 + 8;
constexpr uint16_t kMacTrusted =
    NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP | NUD_DELAY | NUD_PROBE | NUD_STALE;

// fe80::/10 is ambiguous without an interface, and a destination has none.
bool is_link_local_ipv6(const AddressBytes& address) {
  return address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
}

bool is_local_type(uint8_t type) {
  return type == RTN_LOCAL || type == RTN_BROADCAST || type == RTN_ANYCAST || type == RTN_MULTICAST;
}

uint32_t path_mtu(const RouteMessage& route, const LinkMessage& link, bool ipv4) {
  uint32_t mtu = link.mtu;
  if (!ipv4 && link.mtu_ipv6) mtu = std::min(mtu, link.mtu_ipv6);
  return route.mtu ? std::min(mtu, route.mtu) : mtu;
}

}  // namespace

const AddressBytes* NextHopView::source_for(const AddressBytes& address) const {
  return rules_.source && is_ipv4(*rules_.source) == is_ipv4(address) ? &*rules_.source : nullptr;
}

void NextHopView::set_wanted(std::vector<AddressBytes> addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (addresses.size() > kNextHopsMax) addresses.resize(kNextHopsMax);
  std::vector<Destination> next;
  next.reserve(addresses.size());
  auto known = destinations_.begin();
  for (const AddressBytes& address : addresses) {
    while (known != destinations_.end() && known->address < address) ++known;
    const bool stays = known != destinations_.end() && known->address == address;
    next.push_back(stays ? *known : Destination{address, false, std::nullopt, nullptr});
  }
  destinations_ = std::move(next);
}

void NextHopView::set_route(size_t i, const std::optional<RouteMessage>& route) {
  destinations_[i].route_set = true;
  destinations_[i].route = route;
}

void NextHopView::follow_routes() {
  std::map<NeighbourKey, Neighbour> next;
  for (Destination& destination : destinations_) {
    destination.neighbour = nullptr;
    if (!destination.route || destination.route->type != RTN_UNICAST) continue;
    const NeighbourKey key{destination.route->interface,
                           destination.route->gateway.value_or(destination.address)};
    const auto [place, is_new] = next.try_emplace(key);
    const auto known = is_new ? neighbours_.find(key) : neighbours_.end();
    if (known != neighbours_.end()) place->second = known->second;
    destination.neighbour = &place->second;
  }
  neighbours_ = std::move(next);  // moving a map keeps the addresses of its nodes
}

void NextHopView::set_links(const std::vector<LinkMessage>& links) {
  links_.clear();
  for (const LinkMessage& link : links) links_[link.interface] = link;
}

bool NextHopView::set_output_rules(bool exist) {
  return std::exchange(output_rules_, exist) != exist;
}

void NextHopView::set_neighbours(const std::vector<NeighbourMessage>& neighbours) {
  for (auto& known : neighbours_) known.second.forget();
  for (const NeighbourMessage& neighbour : neighbours) set_neighbour(neighbour);
}

bool NextHopView::set_neighbour(const NeighbourMessage& message) {
  const auto found = neighbours_.find({message.interface, message.address});
  if (found == neighbours_.end() || found->second.same(message)) return false;
  found->second.state = message.state;
  found->second.mac = message.mac;
  return true;
}

void NextHopView::turn_stale() {
  for (auto& [key, neighbour] : neighbours_) {
    const bool stale = neighbour.state & NUD_STALE;
    if (stale && neighbour.was_stale) neighbour.turn++;
    neighbour.was_stale = stale;
  }
}

NextHops::Entry NextHopView::entry(const Destination& destination) const {
  const auto goes_by_socket = [&](NextHopState reason) {
    return NextHops::Entry{destination.address, reason, {}};
  };
  if (!destination.route || is_link_local_ipv6(destination.address))
    return goes_by_socket(NextHopState::no_route);
  const RouteMessage& route = *destination.route;
  if (is_local_type(route.type)) return goes_by_socket(NextHopState::local);
  if (route.type != RTN_UNICAST) return goes_by_socket(NextHopState::no_route);

  const auto found = links_.find(route.interface);
  if (found == links_.end()) return goes_by_socket(NextHopState::interface_unsuitable);
  const LinkMessage& link = found->second;
  if (link.flags & IFF_LOOPBACK) return goes_by_socket(NextHopState::local);
  // Usable: up, with a carrier, and authorised on the port (IFF_RUNNING).
  constexpr uint32_t kUsable = IFF_UP | IFF_RUNNING;
  if ((link.flags & kUsable) != kUsable || link.type != ARPHRD_ETHER || !link.mac ||
      route.encapsulated)
    return goes_by_socket(NextHopState::interface_unsuitable);
  if (output_rules_) return goes_by_socket(NextHopState::output_rules);
  // A device without hardware has no queue of its own. It drops what its receiving side cannot take
  // at once, and reports success. A burst that stays whole is one packet there.
  if (rules_.avoids_lossy_queues && link.is_virtual && !link.segments)
    return goes_by_socket(NextHopState::queue_lossy);

  const bool ipv4 = is_ipv4(destination.address);
  const uint32_t head_bytes = ipv4 ? kIpv4HeaderBytes : kIpv6HeaderBytes;
  if (path_mtu(route, link, ipv4) < rules_.packet_bytes_max + head_bytes)
    return goes_by_socket(NextHopState::mtu_small);

  const Neighbour& neighbour = *destination.neighbour;
  if (!(neighbour.state & kMacTrusted) || !neighbour.mac)
    return goes_by_socket(NextHopState::neighbour_unknown);
  std::optional<AddressBytes> source = route.source;
  if (const AddressBytes* configured = source_for(destination.address)) source = *configured;
  // The header needs a source address.
  if (!source) return goes_by_socket(NextHopState::no_route);
  return {destination.address,
          NextHopState::resolved,
          {route.interface, *link.mac, *neighbour.mac, *source}};
}

std::vector<NextHops::Entry> NextHopView::entries() {
  std::vector<NextHops::Entry> out;
  out.reserve(destinations_.size());
  for (auto& [key, neighbour] : neighbours_) neighbour.stale_count = neighbour.stale_seen = 0;
  for (const Destination& destination : destinations_) {
    out.push_back(entry(destination));
    if (out.back().state == NextHopState::resolved && destination.neighbour->state & NUD_STALE)
      destination.neighbour->stale_count++;
  }
  for (size_t i = 0; i < out.size(); i++) {
    Neighbour* neighbour = destinations_[i].neighbour;
    if (out[i].state != NextHopState::resolved || !(neighbour->state & NUD_STALE)) continue;
    if (neighbour->stale_seen++ == neighbour->turn % neighbour->stale_count)
      out[i] = {out[i].address, NextHopState::neighbour_checked, {}};
  }
  return out;
}

}  // namespace shredway
