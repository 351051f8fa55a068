// Fuzz target: any datagram as routing netlink. The messages that are read must give a table that
// follows its rules.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "clone/netlink_messages.h"
#include "clone/next_hop_view.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  // A copy of exactly the input's size, so that a read beyond it is detected.
  const std::unique_ptr<uint8_t[]> datagram(new uint8_t[length]);
  if (length) std::memcpy(datagram.get(), bytes, length);

  NextHopView view({});
  AddressBytes wanted{};
  wanted[15] = 1;
  view.set_wanted({wanted});
  std::vector<LinkMessage> links;
  std::vector<NeighbourMessage> neighbours;
  std::span<const uint8_t> rest(datagram.get(), length);
  NetlinkMessage message;
  while (next_message(rest, message)) {
    require(rest.size() < length && error_of(message) >= 0);
    const auto route = read_route(message);
    const auto link = read_link(message);
    const auto neighbour = read_neighbour(message);
    require(route.has_value() + link.has_value() + neighbour.has_value() <= 1);
    if (route) view.set_route(0, route);
    if (link) links.push_back(*link);
    if (neighbour) neighbours.push_back(*neighbour);
  }
  view.set_links(links);
  view.follow_routes();
  view.set_neighbours(neighbours);
  for (const NeighbourMessage& neighbour : neighbours) view.set_neighbour(neighbour);
  view.turn_stale();

  const auto entries = view.entries();
  require(entries.size() == 1 && entries[0].address == wanted);
  const NextHops::Entry& entry = entries[0];
  require(entry.state == NextHopState::resolved ? entry.hop.interface != 0
                                                : entry.hop == NextHop{});
  require(next_hop_state_name(entry.state)[0] != 0);
  return 0;
}
