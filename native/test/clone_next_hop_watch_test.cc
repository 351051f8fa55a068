#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "net/thread.h"
#include "net/udp_socket.h"
#include "next_hop_lab.h"
#include "route_support.h"
#include "system/privileges.h"

namespace shredway::test {
namespace {

using enum NextHopState;

// ---- initial table --------------------------------------------------------------------------

LAB_TEST(next_hop_watch_finds_a_neighbour_on_the_link) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA) + neighbour("add", "fd00:1::2", kMacB));
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2", "10.1.0.3", "fd00:1::2"});
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacA);
  CHECK_HOP(hops, "fd00:1::2", lab.interface("wa"), kMacB);
  CHECK_STATE(hops, "10.1.0.3", neighbour_unknown);
  const auto table = hops.table();
  CHECK_EQ(hops.tables_published(), uint64_t{1});
  CHECK_EQ(table->entries().size(), size_t{3});
  const NextHop& hop = table->find(address_of("10.1.0.2"))->hop;
  CHECK_EQ(text_of(hop.from), std::string("02:00:00:00:00:01"));
  CHECK(hop.source == address_of("10.1.0.1"));
  CHECK(table->find(address_of("fd00:1::2"))->hop.source == address_of("fd00:1::1"));
  CHECK(table->find(address_of("10.1.0.4")) == nullptr);
}

LAB_TEST(next_hop_watch_finds_gateways_of_both_families) {
  one_cable(lab);
  lab.ip(
      "route add 192.0.2.0/24 via 10.1.0.254\n"
      "route add 198.51.100.0/24 via inet6 fe80::99 dev wa\n"
      "route add 2001:db8::/32 via fd00:1::fe\n" +
      neighbour("add", "10.1.0.254", kMacA) + neighbour("add", "fe80::99", kMacB) +
      neighbour("add", "fd00:1::fe", "02:00:00:00:0c:0c"));
  WatchedHops hops;
  hops.set_addresses({"192.0.2.7", "192.0.2.8", "198.51.100.7", "2001:db8::7"});
  CHECK_HOP(hops, "192.0.2.7", lab.interface("wa"), kMacA);
  CHECK_HOP(hops, "192.0.2.8", lab.interface("wa"), kMacA);
  CHECK_HOP(hops, "198.51.100.7", lab.interface("wa"), kMacB);
  CHECK_HOP(hops, "2001:db8::7", lab.interface("wa"), "02:00:00:00:0c:0c");
  CHECK(hops.table()->find(address_of("198.51.100.7"))->hop.source == address_of("10.1.0.1"));
}

LAB_TEST(next_hop_watch_leaves_local_addresses_to_sockets) {
  one_cable(lab);
  lab.ip(
      "route add blackhole 192.0.2.1\nroute add unreachable 192.0.2.2\n"
      "route add prohibit 192.0.2.3\nroute add blackhole 2001:db8::1\n"
      "route add unreachable 2001:db8::2\nroute add 192.0.2.6 dev lo\n"
      "route add 224.0.0.0/4 dev wa\n" +
      neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses({"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.6",
                      "2001:db8::1", "2001:db8::2", "2001:db8::3", "10.1.0.1", "10.1.0.2",
                      "10.1.0.255", "127.0.0.1", "224.0.0.5", "fd00:1::1", "::1", "ff02::1",
                      "fe80::1"});
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacA);
  for (const char* none : {"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "2001:db8::1",
                           "2001:db8::2", "2001:db8::3", "fe80::1"})
    CHECK_STATE(hops, none, no_route);
  for (const char* here : {"192.0.2.6", "10.1.0.1", "10.1.0.255", "127.0.0.1", "224.0.0.5",
                           "fd00:1::1", "::1", "ff02::1"})
    CHECK_STATE(hops, here, local);
}

LAB_TEST(next_hop_watch_applies_the_routing_rules_of_the_source) {
  one_cable(lab);
  another_cable(lab);
  lab.ip(
      "route add default via 10.1.0.254\nroute add default via 10.2.0.254 table 77\n"
      "rule add from 10.2.0.1 lookup 77\n" +
      neighbour("add", "10.1.0.254", kMacA) + "neigh add 10.2.0.254 lladdr " + kMacB + " dev wb\n");
  NextHopWatchOptions options;
  options.source.address = address_of("0.0.0.0");
  WatchedHops of_any(options);
  of_any.set_addresses({"192.0.2.1"});
  CHECK_HOP(of_any, "192.0.2.1", lab.interface("wa"), kMacA);
  options.source.address = address_of("10.2.0.1");
  WatchedHops of_second(options);
  of_second.set_addresses({"192.0.2.1"});
  CHECK_HOP(of_second, "192.0.2.1", lab.interface("wb"), kMacB);
  CHECK(of_second.table()->find(address_of("192.0.2.1"))->hop.source == address_of("10.2.0.1"));
  // Rules by protocol count too: these are UDP datagrams.
  lab.ip("rule add ipproto udp lookup 77 priority 10\n");
  CHECK_HOP(of_any, "192.0.2.1", lab.interface("wb"), kMacB);
  lab.ip("rule del ipproto udp lookup 77 priority 10\nrule del from 10.2.0.1 lookup 77\n");
  CHECK_HOP(of_any, "192.0.2.1", lab.interface("wa"), kMacA);
  CHECK_HOP(of_second, "192.0.2.1", lab.interface("wa"), kMacA);
}

LAB_TEST(next_hop_watch_requires_an_mtu_for_a_whole_shred) {
  one_cable(lab);
  lab.ip(
      "link set wa mtu 1276\nroute add 192.0.2.1 via 10.1.0.2 mtu 1255\n"
      "route add 192.0.2.2 via 10.1.0.2 mtu 1256\n" +
      neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2", "192.0.2.1", "192.0.2.2", "192.0.2.3"});
  CHECK_STATE(hops, "10.1.0.2", resolved);
  CHECK_STATE(hops, "192.0.2.1", mtu_small);
  CHECK_STATE(hops, "192.0.2.2", resolved);
  lab.ip("link set wa mtu 1255\nroute add 192.0.2.3 via 10.1.0.2 mtu 9000\n");
  for (const char* address : {"10.1.0.2", "192.0.2.2", "192.0.2.3"})
    CHECK_STATE(hops, address, mtu_small);
  lab.ip("link set wa mtu 1500\n");
  CHECK_STATE(hops, "192.0.2.3", resolved);
  CHECK_STATE(hops, "192.0.2.1", mtu_small);
}

LAB_TEST(next_hop_watch_requires_a_larger_mtu_for_ipv6) {
  one_cable(lab);
  lab.ip(neighbour("add", "fd00:1::2", kMacA));
  NextHopWatchOptions options;
  options.packet_bytes_max = 1500 - 48;
  WatchedHops fits(options);
  fits.set_addresses({"fd00:1::2"});
  CHECK_STATE(fits, "fd00:1::2", resolved);
  options.packet_bytes_max = 1500 - 47;
  WatchedHops too_long(options);
  too_long.set_addresses({"fd00:1::2"});
  CHECK_STATE(too_long, "fd00:1::2", mtu_small);
  // A router may announce a smaller IPv6 MTU than the link's.
  lab.set("ipv6/conf/wa/mtu", "1400");
  WatchedHops later(options);
  options.packet_bytes_max = 1228;
  WatchedHops shreds(options);
  for (WatchedHops* each : {&later, &shreds}) each->set_addresses({"fd00:1::2"});
  CHECK_STATE(later, "fd00:1::2", mtu_small);
  CHECK_STATE(shreds, "fd00:1::2", resolved);
  options.packet_bytes_max = 1400 - 47;
  WatchedHops refused(options);
  refused.set_addresses({"fd00:1::2"});
  CHECK_STATE(refused, "fd00:1::2", mtu_small);
}

// ---- changes --------------------------------------------------------------------------------

LAB_TEST(next_hop_watch_follows_neighbours) {
  one_cable(lab);
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2"});
  CHECK_STATE(hops, "10.1.0.2", neighbour_unknown);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacA);
  lab.ip(neighbour("replace", "10.1.0.2", kMacB));
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacB);
  lab.ip("neigh replace 10.1.0.2 dev wa nud failed\n");
  CHECK_STATE(hops, "10.1.0.2", neighbour_unknown);
  for (const char* state : {"reachable", "noarp", "delay", "probe"}) {
    lab.ip(neighbour("replace", "10.1.0.2", kMacB, std::string("nud ") + state));
    CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacB);
    lab.ip("neigh del 10.1.0.2 dev wa\n");
    CHECK_STATE(hops, "10.1.0.2", neighbour_unknown);
  }
  CHECK_EQ(hops.tables_published(), uint64_t{12});
}

LAB_TEST(next_hop_watch_ignores_proxies_and_other_neighbours) {
  one_cable(lab);
  another_cable(lab);
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2"});
  CHECK_STATE(hops, "10.1.0.2", neighbour_unknown);
  lab.ip("neigh add proxy 10.1.0.2 dev wa\nneigh add 10.1.0.2 lladdr " + kMacA +
         " dev wb\nneigh add 10.1.0.3 lladdr " + kMacA + " dev wa\n");
  hops.set_addresses({"10.1.0.2", "10.1.0.3"});  // reads all neighbours again
  CHECK_STATE(hops, "10.1.0.3", resolved);
  CHECK_STATE(hops, "10.1.0.2", neighbour_unknown);
  CHECK_EQ(hops.tables_published(), uint64_t{2});
}

LAB_TEST(next_hop_watch_follows_routes) {
  one_cable(lab);
  another_cable(lab);
  lab.ip("route add 192.0.2.0/24 via 10.1.0.2\nroute add 2001:db8::/32 via fd00:1::2\n" +
         neighbour("add", "10.1.0.2", kMacA) + neighbour("add", "fd00:1::2", kMacA) +
         "neigh add 10.2.0.2 lladdr " + kMacB + " dev wb\nneigh add fd00:2::2 lladdr " + kMacB +
         " dev wb\n");
  WatchedHops hops;
  hops.set_addresses({"192.0.2.1", "2001:db8::1"});
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wa"), kMacA);
  lab.ip("route replace 192.0.2.0/24 via 10.2.0.2\n");
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wb"), kMacB);
  CHECK_HOP(hops, "2001:db8::1", lab.interface("wa"), kMacA);
  lab.ip("route add 2001:db8::/64 via fd00:2::2\n");
  CHECK_HOP(hops, "2001:db8::1", lab.interface("wb"), kMacB);
  lab.ip("route del 192.0.2.0/24\n");
  CHECK_STATE(hops, "192.0.2.1", no_route);
  lab.ip("route add blackhole 2001:db8::1\n");
  CHECK_STATE(hops, "2001:db8::1", no_route);
}

LAB_TEST(next_hop_watch_follows_next_hop_objects) {
  one_cable(lab);
  another_cable(lab);
  lab.ip("nexthop add id 7 via 10.1.0.2 dev wa\nroute add 192.0.2.0/24 nhid 7\n" +
         neighbour("add", "10.1.0.2", kMacA) + "neigh add 10.2.0.2 lladdr " + kMacB + " dev wb\n");
  lab.set("ipv4/nexthop_compat_mode", "0");  // without messages about routes
  WatchedHops hops;
  hops.set_addresses({"192.0.2.1"});
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wa"), kMacA);
  lab.ip("nexthop replace id 7 via 10.2.0.2 dev wb\n");
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wb"), kMacB);
}

LAB_TEST(next_hop_watch_follows_links_down_and_up) {
  one_cable(lab);
  lab.ip("route add 192.0.2.0/24 via 10.1.0.2\n" + neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2", "192.0.2.1"});
  CHECK_STATE(hops, "192.0.2.1", resolved);
  lab.ip("link set wa down\n");
  CHECK_STATE(hops, "10.1.0.2", no_route);
  CHECK_STATE(hops, "192.0.2.1", no_route);
  lab.ip("link set wa up\nroute add 192.0.2.0/24 via 10.1.0.2\n" +
         neighbour("replace", "10.1.0.2", kMacB));
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacB);
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wa"), kMacB);
  // Without a carrier the routes stay.
  lab.ip_theirs("link set wa down\n");
  CHECK_STATE(hops, "192.0.2.1", interface_unsuitable);
  lab.ip_theirs("link set wa up\n");
  lab.ip(neighbour("replace", "10.1.0.2", kMacA));
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wa"), kMacA);
}

LAB_TEST(next_hop_watch_follows_deleted_and_recreated_interfaces) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2"});
  CHECK_STATE(hops, "10.1.0.2", resolved);
  const uint32_t before = lab.interface("wa");
  lab.ip("link del wa\n");
  CHECK_STATE(hops, "10.1.0.2", no_route);
  one_cable(lab);
  CHECK_STATE(hops, "10.1.0.2", neighbour_unknown);
  lab.ip(neighbour("add", "10.1.0.2", kMacB));
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacB);
  CHECK(lab.interface("wa") != before);
}

LAB_TEST(next_hop_watch_follows_addresses_and_macs_of_this_machine) {
  one_cable(lab);
  lab.ip("address add 10.3.0.1/24 dev wa\n" + neighbour("add", "10.1.0.2", kMacA) +
         neighbour("add", "10.3.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2", "10.3.0.2"});
  CHECK_STATE(hops, "10.3.0.2", resolved);
  lab.ip("address del 10.3.0.1/24 dev wa\n");
  CHECK_STATE(hops, "10.3.0.2", no_route);
  lab.ip("address add 10.1.0.2/24 dev wa\n");
  CHECK_STATE(hops, "10.1.0.2", local);
  lab.ip("address del 10.1.0.2/24 dev wa\n");
  CHECK_STATE(hops, "10.1.0.2", resolved);
  // The kernel removes its neighbours together with the old MAC.
  lab.ip("link set wa address 02:00:00:00:00:77\n" + neighbour("replace", "10.1.0.2", kMacB));
  CHECK(hops.wait([](const NextHops& table) {
    return table.find(address_of("10.1.0.2"))->hop.from == mac_of("02:00:00:00:00:77");
  }));
}

LAB_TEST(next_hop_watch_accepts_other_ethernet_interfaces) {
  one_cable(lab);
  lab.ip(
      "link add bridge type bridge\nlink set wa master bridge\nlink set bridge up\n"
      "address flush dev wa\naddress add 10.1.0.1/24 dev bridge\n"
      "link add mac address 02:00:00:00:0d:0d link bridge type macvlan mode bridge\n"
      "link set mac up\naddress add 10.4.0.1/24 dev mac\n"
      "neigh add 10.1.0.2 lladdr " +
      kMacA +
      " dev bridge\n"
      "neigh add 10.4.0.2 lladdr " +
      kMacB + " dev mac\n");
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2", "10.4.0.2"});
  CHECK_HOP(hops, "10.1.0.2", lab.interface("bridge"), kMacA);
  CHECK_HOP(hops, "10.4.0.2", lab.interface("mac"), kMacB);
  CHECK_EQ(text_of(hops.table()->find(address_of("10.4.0.2"))->hop.from),
           std::string("02:00:00:00:0d:0d"));
}

}  // namespace
}  // namespace shredway::test
