// Next-hop view: what was heard of routes, links and neighbours, and the table that follows from
// it.
//
// Kept by NextHopWatch on its thread, which asks the kernel and feeds the answers in; pure rules
// here, no I/O. Says which way each wanted address takes, or why it has none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "clone/netlink_messages.h"
#include "clone/next_hops.h"

namespace shredway {

struct NextHopRules {
  std::optional<AddressBytes> source;  // configured; for addresses of its family
  uint32_t packet_bytes_max = 1228;    // UDP payload
};

class NextHopView {
 public:
  explicit NextHopView(const NextHopRules& rules) : rules_(rules) {}

  // Replaces the wanted addresses, kNextHopsMax at most. What is known of those that stay is kept.
  void set_wanted(std::vector<AddressBytes> addresses);
  size_t wanted() const { return destinations_.size(); }
  const AddressBytes& wanted_address(size_t i) const { return destinations_[i].address; }
  bool route_known(size_t i) const { return destinations_[i].asked; }
  // The source to ask a route from, or nullptr.
  const AddressBytes* source_for(const AddressBytes& address) const;

  // The route of wanted address i; nullopt: there is none.
  void set_route(size_t i, const std::optional<RouteMessage>& route);
  // After routes were set: which neighbours matter from now on.
  void follow_routes();
  void set_links(const std::vector<LinkMessage>& links);
  // All neighbours that the kernel has: those that are not among them are gone.
  void set_neighbours(const std::vector<NeighbourMessage>& neighbours);
  // True when it is the next hop of a wanted address and something changed.
  bool set_neighbour(const NeighbourMessage& neighbour);
  // A while has passed: where a neighbour is still stale, the destination that should have made the
  // kernel ask sends nothing, so that another one takes its turn.
  void turn_stale();

  // By address.
  std::vector<NextHops::Entry> entries();

 private:
  struct Neighbour {
    uint16_t state = 0;
    std::optional<MacAddress> mac;
    uint32_t turn = 0;         // which of its destinations goes by socket while stale
    bool was_stale = false;    // at the last turn_stale()
    uint32_t stale_count = 0;  // destinations behind it, while entries() counts them
    uint32_t stale_seen = 0;
    void forget() {
      state = 0;
      mac.reset();
    }
    bool same(const NeighbourMessage& message) const {
      return state == message.state && mac == message.mac;
    }
  };
  struct Destination {
    AddressBytes address;
    bool asked = false;
    std::optional<RouteMessage> route;
    Neighbour* neighbour = nullptr;  // in neighbours_; nullptr without a route to anywhere
  };
  using NeighbourKey = std::pair<uint32_t, AddressBytes>;  // interface, address

  NextHops::Entry entry(const Destination& destination) const;

  const NextHopRules rules_;
  std::vector<Destination> destinations_;  // by address
  std::map<uint32_t, LinkMessage> links_;
  std::map<NeighbourKey, Neighbour> neighbours_;
};

}  // namespace shredway
