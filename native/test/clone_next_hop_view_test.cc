#include "clone/next_hop_view.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>
#include <set>

#include "net_support.h"
#include "route_support.h"

namespace shredway::test {
namespace {

using enum NextHopState;

const MacAddress kOurs = mac_of("02:00:00:00:00:01");
const MacAddress kTheirs = mac_of("02:00:00:00:01:01");
constexpr uint32_t kInterface = 3;

LinkMessage link() {
  LinkMessage message;
  message.interface = kInterface;
  message.type = ARPHRD_ETHER;
  message.flags = IFF_UP | IFF_RUNNING;
  message.mtu = 1500;
  message.mac = kOurs;
  return message;
}
RouteMessage route(const char* gateway = "10.1.0.254") {
  RouteMessage message;
  message.type = RTN_UNICAST;
  message.interface = kInterface;
  message.gateway = address_of(gateway);
  message.source = address_of("10.1.0.1");
  return message;
}
NeighbourMessage neighbour_in(uint16_t state, const char* address = "10.1.0.254") {
  return {kInterface, address_of(address), state, kTheirs};
}

// One address, 192.0.2.1, with all that it needs.
struct NextHopCase {
  LinkMessage link = test::link();
  std::optional<RouteMessage> route = test::route();
  NeighbourMessage neighbour = neighbour_in(NUD_REACHABLE);
  NextHopRules rules;
  std::string address = "192.0.2.1";
  NextHops::Entry entry() const {
    NextHopView view(rules);
    view.set_wanted({address_of(address)});
    view.set_links({link});
    view.set_route(0, route);
    view.follow_routes();
    view.set_neighbours({neighbour});
    return view.entries().at(0);
  }
  NextHopState state() const { return entry().state; }
};

TEST(next_hop_view_resolves) {
  const NextHops::Entry entry = NextHopCase{}.entry();
  CHECK_EQ(entry.state, resolved);
  CHECK(entry.hop == (NextHop{kInterface, kOurs, kTheirs, address_of("10.1.0.1")}));
}

TEST(next_hop_view_goes_by_socket_for_each_reason) {
  const auto with = [](const std::function<void(NextHopCase&)>& change) {
    NextHopCase changed;
    change(changed);
    const NextHops::Entry entry = changed.entry();
    CHECK(entry.state == resolved || entry.hop == NextHop{});
    return entry.state;
  };
  CHECK_EQ(with([](NextHopCase& c) { c.route.reset(); }), no_route);
  for (const uint8_t type : {RTN_LOCAL, RTN_BROADCAST, RTN_ANYCAST, RTN_MULTICAST})
    CHECK_EQ(with([&](NextHopCase& c) { c.route->type = type; }), local);
  for (const uint8_t type : {RTN_UNSPEC, RTN_BLACKHOLE, RTN_UNREACHABLE, RTN_PROHIBIT, RTN_THROW})
    CHECK_EQ(with([&](NextHopCase& c) { c.route->type = type; }), no_route);
  CHECK_EQ(with([](NextHopCase& c) { c.route->interface = 4; }), interface_unsuitable);
  CHECK_EQ(with([](NextHopCase& c) { c.route->encapsulated = true; }), interface_unsuitable);
  CHECK_EQ(with([](NextHopCase& c) { c.route->source.reset(); }), no_route);
  CHECK_EQ(with([](NextHopCase& c) { c.link.flags = IFF_UP; }), interface_unsuitable);
  CHECK_EQ(with([](NextHopCase& c) { c.link.flags = IFF_RUNNING; }), interface_unsuitable);
  CHECK_EQ(with([](NextHopCase& c) { c.link.flags |= IFF_LOOPBACK; }), local);
  CHECK_EQ(with([](NextHopCase& c) { c.link.type = ARPHRD_TUNNEL; }), interface_unsuitable);
  CHECK_EQ(with([](NextHopCase& c) { c.link.mac.reset(); }), interface_unsuitable);
  CHECK_EQ(with([](NextHopCase& c) { c.neighbour.mac.reset(); }), neighbour_unknown);
  CHECK_EQ(with([](NextHopCase& c) { c.neighbour.interface = 4; }), neighbour_unknown);
  CHECK_EQ(with([](NextHopCase& c) { c.address = "fe80::9"; }), no_route);
  for (const int state : {NUD_NONE, NUD_INCOMPLETE, NUD_FAILED})
    CHECK_EQ(with([&](NextHopCase& c) { c.neighbour.state = static_cast<uint16_t>(state); }),
             neighbour_unknown);
  for (const int state : {NUD_REACHABLE, NUD_DELAY, NUD_PROBE, NUD_NOARP, NUD_PERMANENT})
    CHECK_EQ(with([&](NextHopCase& c) { c.neighbour.state = static_cast<uint16_t>(state); }),
             resolved);
  CHECK_EQ(with([](NextHopCase& c) { c.neighbour.state = NUD_STALE; }), neighbour_checked);
}

TEST(next_hop_view_uses_the_smallest_mtu) {
  const auto state = [](bool ipv4, uint32_t link_mtu, uint32_t ipv6_mtu, uint32_t route_mtu) {
    NextHopCase c;
    c.rules.packet_bytes_max = 1228;
    c.link.mtu = link_mtu;
    c.link.mtu_ipv6 = ipv6_mtu;
    c.route->mtu = route_mtu;
    if (!ipv4) c.address = "2001:db8::1";
    return c.state();
  };
  CHECK_EQ(state(true, 1256, 0, 0), resolved);
  CHECK_EQ(state(true, 1255, 0, 0), mtu_small);
  CHECK_EQ(state(true, 1500, 1200, 0), resolved);
  CHECK_EQ(state(true, 1500, 0, 1256), resolved);
  CHECK_EQ(state(true, 1500, 0, 1255), mtu_small);
  CHECK_EQ(state(true, 1255, 0, 9000), mtu_small);
  CHECK_EQ(state(false, 1276, 0, 0), resolved);
  CHECK_EQ(state(false, 1275, 0, 0), mtu_small);
  CHECK_EQ(state(false, 1500, 1275, 0), mtu_small);
  CHECK_EQ(state(false, 1500, 1276, 1276), resolved);
  CHECK_EQ(state(false, 1500, 1400, 1275), mtu_small);
}

TEST(next_hop_view_sends_from_the_configured_source_of_the_family) {
  NextHopCase c;
  c.rules.source = address_of("10.9.9.9");
  CHECK(c.entry().hop.source == address_of("10.9.9.9"));
  c.route->source.reset();
  CHECK_EQ(c.state(), resolved);
  c.address = "2001:db8::1";
  CHECK_EQ(c.state(), no_route);
  c.route->source = address_of("2001:db8::99");
  CHECK(c.entry().hop.source == address_of("2001:db8::99"));
}

// `count` addresses behind one gateway, 192.0.2.1 and up.
NextHopView view_of(uint8_t count, uint16_t state) {
  NextHopView view({});
  std::vector<AddressBytes> addresses;
  for (uint8_t i = 0; i < count; i++) addresses.push_back(ipv4(192, 0, 2, uint8_t(i + 1)).address);
  view.set_wanted(addresses);
  view.set_links({link()});
  for (size_t i = 0; i < count; i++) view.set_route(i, route());
  view.follow_routes();
  view.set_neighbours({neighbour_in(state)});
  return view;
}

size_t checked_one(NextHopView& view) {
  const auto entries = view.entries();
  size_t at = entries.size();
  for (size_t i = 0; i < entries.size(); i++) {
    if (entries[i].state != neighbour_checked) continue;
    CHECK_EQ(at, entries.size());
    at = i;
  }
  return at;
}

TEST(next_hop_view_checks_a_stale_neighbour_by_one_destination) {
  NextHopView view = view_of(5, NUD_STALE);
  for (int i = 0; i < 3; i++) CHECK_EQ(checked_one(view), size_t{0});
  CHECK(view.set_neighbour(neighbour_in(NUD_DELAY)));
  CHECK_EQ(checked_one(view), size_t{5});
  CHECK(view.set_neighbour(neighbour_in(NUD_STALE)));
  CHECK_EQ(checked_one(view), size_t{0});
}

TEST(next_hop_view_rotates_the_checking_destination) {
  NextHopView view = view_of(3, NUD_STALE);
  view.turn_stale();
  CHECK_EQ(checked_one(view), size_t{0});
  for (size_t turn = 1; turn < 7; turn++) {
    view.turn_stale();
    // A full refresh does not restart the check.
    view.follow_routes();
    view.set_neighbours({neighbour_in(NUD_STALE)});
    CHECK_EQ(checked_one(view), turn % 3);
  }
  // A message about the neighbour arrived meanwhile: its check has just begun.
  view.set_neighbour(neighbour_in(NUD_REACHABLE));
  view.turn_stale();
  view.set_neighbour(neighbour_in(NUD_STALE));
  view.turn_stale();
  CHECK_EQ(checked_one(view), size_t{0});
}

TEST(next_hop_view_determines_the_relevant_neighbours) {
  NextHopView view = view_of(2, NUD_REACHABLE);
  CHECK(!view.set_neighbour(neighbour_in(NUD_REACHABLE)));
  CHECK(!view.set_neighbour(neighbour_in(NUD_REACHABLE, "10.1.0.253")));
  NeighbourMessage other_link = neighbour_in(NUD_FAILED);
  other_link.interface = 4;
  CHECK(!view.set_neighbour(other_link));
  CHECK(view.set_neighbour({kInterface, address_of("10.1.0.254"), 0, std::nullopt}));
  for (const auto& entry : view.entries()) CHECK_EQ(entry.state, neighbour_unknown);
  // Neighbours that are not in the full list are removed.
  view.set_neighbours({neighbour_in(NUD_REACHABLE)});
  for (const auto& entry : view.entries()) CHECK_EQ(entry.state, resolved);
  view.set_neighbours({neighbour_in(NUD_REACHABLE, "10.1.0.253")});
  for (const auto& entry : view.entries()) CHECK_EQ(entry.state, neighbour_unknown);
}

TEST(next_hop_view_preserves_the_state_of_addresses_that_stay) {
  NextHopView view = view_of(3, NUD_REACHABLE);
  view.set_wanted({address_of("192.0.2.3"), address_of("192.0.2.9"), address_of("192.0.2.1"),
                   address_of("192.0.2.3")});
  CHECK_EQ(view.wanted(), size_t{3});
  CHECK(view.route_known(0) && view.route_known(1) && !view.route_known(2));
  CHECK(view.wanted_address(2) == address_of("192.0.2.9"));
  const auto before = view.entries();
  CHECK_EQ(before[1].state, resolved);
  CHECK_EQ(before[2].state, no_route);
  view.set_route(2, route("10.1.0.253"));
  view.follow_routes();
  CHECK_EQ(view.entries()[1].state, resolved);
  CHECK_EQ(view.entries()[2].state, neighbour_unknown);
  view.set_neighbour(neighbour_in(NUD_PERMANENT, "10.1.0.253"));
  CHECK_EQ(view.entries()[2].state, resolved);
}

TEST(next_hop_view_matches_a_simple_model) {
  // Random inputs against a second implementation of the rules, destination by destination.
  Random random{7};
  for (int world = 0; world < 2000; world++) {
    NextHopView view({});
    std::vector<AddressBytes> addresses;
    const auto count = static_cast<uint8_t>(random.below(12) + 1);
    for (uint8_t i = 0; i < count; i++) addresses.push_back(ipv4(192, 0, 2, i).address);
    view.set_wanted(addresses);
    LinkMessage other = link();
    other.interface = 4;
    if (random.one_in(3)) other.flags = 0;
    view.set_links({link(), other});
    std::vector<RouteMessage> routes;
    for (size_t i = 0; i < count; i++) {
      routes.push_back(route(random.one_in(2) ? "10.1.0.254" : "10.1.0.253"));
      if (random.one_in(3)) routes.back().interface = 4;
      if (random.one_in(5)) routes.back().mtu = 1000;
      view.set_route(i, routes.back());
    }
    view.follow_routes();
    std::map<std::pair<uint32_t, AddressBytes>, uint16_t> states;
    constexpr uint16_t kStates[] = {NUD_REACHABLE, NUD_STALE, NUD_FAILED, NUD_NONE};
    for (int i = 0; i < 8; i++) {
      NeighbourMessage one =
          neighbour_in(kStates[random.below(4)], random.one_in(2) ? "10.1.0.254" : "10.1.0.253");
      if (random.one_in(3)) one.interface = 4;
      view.set_neighbour(one);
      states[{one.interface, one.address}] = one.state;
    }
    std::set<std::pair<uint32_t, AddressBytes>> checked;
    const auto entries = view.entries();
    CHECK_EQ(entries.size(), size_t{count});
    for (size_t i = 0; i < count; i++) {
      const std::pair key{routes[i].interface, *routes[i].gateway};
      const uint16_t state = states[key];
      NextHopState expected = resolved;
      if (routes[i].interface == 4 && other.flags == 0) expected = interface_unsuitable;
      else if (routes[i].mtu) expected = mtu_small;
      else if (state == NUD_NONE || state == NUD_FAILED) expected = neighbour_unknown;
      else if (state == NUD_STALE && checked.insert(key).second) expected = neighbour_checked;
      CHECK(entries[i].address == addresses[i]);
      CHECK_EQ(entries[i].state, expected);
    }
  }
}

TEST(next_hops_find_by_address_in_any_order) {
  std::vector<NextHops::Entry> entries;
  for (const char* address : {"192.0.2.9", "2001:db8::1", "192.0.2.1", "::1"})
    entries.push_back({address_of(address), NextHopState::local, {}});
  const NextHops table(entries);
  for (const NextHops::Entry& entry : entries) {
    const NextHops::Entry* found = table.find(entry.address);
    CHECK(found && *found == entry);
  }
  for (const char* address : {"192.0.2.2", "::", "ffff::", "192.0.2.10"})
    CHECK(table.find(address_of(address)) == nullptr);
  CHECK(NextHops({}).find(address_of("::1")) == nullptr);
  CHECK_EQ(std::string(next_hop_state_name(resolved)), std::string("resolved"));
  CHECK_EQ(std::string(next_hop_state_name(mtu_small)), std::string("mtu_small"));
}

}  // namespace
}  // namespace shredway::test
