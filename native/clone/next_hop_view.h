// Next-hop view: the known routes, links and neighbours, and the next-hop table that results from
// them.
//
// Used by NextHopWatch on its thread, which asks the kernel and passes the answers in. This class
// only applies rules, without I/O. It determines the route of each wanted address, or the reason
// why it is missing.
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
  std::optional<AddressBytes> source;  // configured source, for addresses of its family
  uint32_t packet_bytes_max = 1228;    // UDP payload
  bool avoids_lossy_queues = false;    // the state queue_lossy occurs
};

class NextHopView {
 public:
  explicit NextHopView(const NextHopRules& rules) : rules_(rules) {}

  // Replaces the wanted addresses (at most kNextHopsMax). The state of addresses that stay is
  // preserved.
  void set_wanted(std::vector<AddressBytes> addresses);
  size_t wanted() const { return destinations_.size(); }
  const AddressBytes& wanted_address(size_t i) const { return destinations_[i].address; }
  bool route_known(size_t i) const { return destinations_[i].route_set; }
  // The source address for a route request, or nullptr.
  const AddressBytes* source_for(const AddressBytes& address) const;

  // Sets the route of wanted address i; nullopt: there is no route.
  void set_route(size_t i, const std::optional<RouteMessage>& route);
  // Must be called after set_route(): determines the relevant neighbours.
  void follow_routes();
  void set_links(const std::vector<LinkMessage>& links);
  // Whether rules for outgoing datagrams exist. Returns true if that changed.
  bool set_output_rules(bool exist);
  // Replaces all neighbours; neighbours that are not in the list are removed.
  void set_neighbours(const std::vector<NeighbourMessage>& neighbours);
  // Returns true if it is the next hop of a wanted address and something changed.
  bool set_neighbour(const NeighbourMessage& neighbour);
  // Called periodically. If a neighbour is still stale, the destination that should have made the
  // kernel probe it sends nothing, so another destination takes its turn.
  void turn_stale();

  // Entries in the order of their addresses.
  std::vector<NextHops::Entry> entries();

 private:
  struct Neighbour {
    uint16_t state = 0;
    std::optional<MacAddress> mac;
    uint32_t turn = 0;         // which of its destinations goes by socket while it is stale
    bool was_stale = false;    // state at the last turn_stale()
    uint32_t stale_count = 0;  // number of its destinations; entries() counts them
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
    bool route_set = false;
    std::optional<RouteMessage> route;
    Neighbour* neighbour = nullptr;  // in neighbours_; nullptr without a route
  };
  using NeighbourKey = std::pair<uint32_t, AddressBytes>;  // interface, address

  NextHops::Entry entry(const Destination& destination) const;

  const NextHopRules rules_;
  bool output_rules_ = false;
  std::vector<Destination> destinations_;  // by address
  std::map<uint32_t, LinkMessage> links_;
  std::map<NeighbourKey, Neighbour> neighbours_;
};

}  // namespace shredway
