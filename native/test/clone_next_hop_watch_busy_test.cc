#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include "check.h"
#include "net/thread.h"
#include "net/udp_socket.h"
#include "next_hop_lab.h"
#include "route_support.h"
#include "system/privileges.h"

namespace shredway::test {
namespace {

using enum NextHopState;

// ---- neighbour resolution -------------------------------------------------------------------

LAB_TEST(next_hop_watch_follows_a_neighbour_that_a_socket_resolved) {
  one_cable(lab);
  lab.ip_theirs("address add 10.1.0.2/24 dev wa\naddress add fd00:1::2/64 dev wa nodad\n");
  WatchedHops hops;
  for (const char* address : {"10.1.0.2", "fd00:1::2"}) {
    hops.set_addresses({address});
    CHECK_STATE(hops, address, neighbour_unknown);
    send_to(address);
    CHECK_HOP(hops, address, lab.interface("wa"), "02:00:00:00:01:01");
  }
}

LAB_TEST(next_hop_watch_sends_one_destination_of_a_stale_neighbour_by_socket) {
  one_cable(lab);
  lab.set("ipv4/neigh/wa/delay_first_probe_time", "0");
  lab.ip_theirs("address add 10.1.0.2/24 dev wa\n");
  lab.ip("route add 192.0.2.0/24 via 10.1.0.2\nroute add 192.0.2.1 via 10.1.0.2 mtu 600\n" +
         neighbour("add", "10.1.0.2", "02:00:00:00:01:01"));
  WatchedHops hops;
  hops.set_addresses({"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"});
  CHECK_STATE(hops, "192.0.2.2", resolved);
  lab.ip(neighbour("replace", "10.1.0.2", "02:00:00:00:01:01", "nud stale"));
  CHECK_STATE(hops, "192.0.2.2", neighbour_checked);  // the first address with a hop
  CHECK_STATE(hops, "192.0.2.1", mtu_small);
  CHECK_STATE(hops, "192.0.2.3", resolved);
  CHECK_STATE(hops, "192.0.2.4", resolved);
  hops.set_addresses({"192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"});
  CHECK_STATE(hops, "192.0.2.5", resolved);
  CHECK_STATE(hops, "192.0.2.2", neighbour_checked);
  CHECK_STATE(hops, "192.0.2.3", resolved);
  send_to("192.0.2.2");
  CHECK_HOP(hops, "192.0.2.2", lab.interface("wa"), "02:00:00:00:01:01");
}

// The kernel waits 5 s before it verifies a stale neighbour, and reports nothing until then.
LAB_TEST(next_hop_watch_sends_by_socket_only_until_the_kernel_is_awake) {
  one_cable(lab);
  lab.set("ipv4/neigh/wa/delay_first_probe_time", "1000");
  lab.ip("route add 192.0.2.0/24 via 10.1.0.2\n" +
         neighbour("add", "10.1.0.2", kMacA, "nud stale"));
  WatchedHops hops;
  hops.set_addresses({"192.0.2.1", "192.0.2.2"});
  CHECK_STATE(hops, "192.0.2.1", neighbour_checked);
  send_to("192.0.2.1");
  CHECK_HOP(hops, "192.0.2.1", lab.interface("wa"), kMacA);
  CHECK_HOP(hops, "192.0.2.2", lab.interface("wa"), kMacA);
}

LAB_TEST(next_hop_watch_sends_by_socket_after_a_stale_neighbour_vanished) {
  one_cable(lab);
  lab.set("ipv4/neigh/wa/delay_first_probe_time", "0");
  lab.set("ipv4/neigh/wa/retrans_time_ms", "20");
  lab.ip("route add 192.0.2.0/24 via 10.1.0.2\n" +
         neighbour("add", "10.1.0.2", kMacA, "nud stale"));
  WatchedHops hops;
  hops.set_addresses({"192.0.2.1", "192.0.2.2"});
  CHECK_STATE(hops, "192.0.2.1", neighbour_checked);
  CHECK_STATE(hops, "192.0.2.2", resolved);
  send_to("192.0.2.1");
  CHECK_STATE(hops, "192.0.2.1", neighbour_unknown);
  CHECK_STATE(hops, "192.0.2.2", neighbour_unknown);
}

// ---- many addresses, fast changes, lost messages --------------------------------------------

std::vector<std::string> thousand_addresses() {
  std::vector<std::string> addresses;
  for (int i = 0; i < 1000; i++)
    addresses.push_back("198.18." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  return addresses;
}

bool all_lead_to(const NextHops& table, size_t count, const std::string& mac) {
  const MacAddress to = mac_of(mac);
  return table.entries().size() == count &&
         std::all_of(table.entries().begin(), table.entries().end(), [&](const auto& entry) {
           return entry.state == resolved && entry.hop.to == to;
         });
}

LAB_TEST(next_hop_watch_resolves_a_thousand_behind_one_gateway_in_one_table) {
  one_cable(lab);
  lab.ip("route add 198.18.0.0/15 via 10.1.0.2\n" + neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses(thousand_addresses());
  CHECK(hops.wait([](const NextHops& table) { return all_lead_to(table, 1000, kMacA); }));
  CHECK_EQ(hops.tables_published(), uint64_t{1});
  lab.ip(neighbour("replace", "10.1.0.2", kMacB));
  CHECK(hops.wait([](const NextHops& table) { return all_lead_to(table, 1000, kMacB); }));
  CHECK_EQ(hops.tables_published(), uint64_t{2});
}

LAB_TEST(next_hop_watch_accepts_at_most_4096_addresses) {
  one_cable(lab);
  lab.ip("route add 198.18.0.0/15 via 10.1.0.2\n" + neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  std::vector<AddressBytes> addresses;
  for (uint32_t i = 0; i < kNextHopsMax + 1; i++) {
    AddressBytes address = address_of("198.18.0.0");
    address[14] = static_cast<uint8_t>(i >> 8);
    address[15] = static_cast<uint8_t>(i);
    addresses.push_back(address);
    addresses.push_back(address);  // duplicates count once
  }
  hops.watch().set_addresses(addresses);
  CHECK(hops.wait([](const NextHops& table) { return all_lead_to(table, kNextHopsMax, kMacA); }));
  hops.set_addresses({});
  CHECK(hops.wait([](const NextHops& table) { return table.entries().empty(); }));
  hops.set_addresses({"198.18.0.1"});
  CHECK(hops.wait([](const NextHops& table) { return all_lead_to(table, 1, kMacA); }));
}

LAB_TEST(next_hop_watch_reaches_the_last_of_hundreds_of_changes) {
  one_cable(lab);
  lab.ip("route add 198.18.0.0/15 via 10.1.0.2\n" + neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses(thousand_addresses());
  CHECK(hops.wait([](const NextHops& table) { return all_lead_to(table, 1000, kMacA); }));
  std::string lines;
  for (int i = 0; i < 300; i++) {
    lines += neighbour("replace", "10.1.0.2", kMacB) + neighbour("replace", "10.1.0.2", kMacA);
    if (i % 10 == 0) lines += "route replace 198.19.0.0/16 via 10.1.0.2 mtu 1400\n";
  }
  lab.ip(lines + neighbour("replace", "10.1.0.2", "02:00:00:00:0e:0e"));
  CHECK(hops.wait(
      [](const NextHops& table) { return all_lead_to(table, 1000, "02:00:00:00:0e:0e"); }));
}

LAB_TEST(next_hop_watch_refreshes_after_lost_messages) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  NextHopWatchOptions options;
  options.receive_buffer_bytes = 1;  // the kernel grants its minimum
  WatchedHops hops(options);
  hops.set_addresses({"10.1.0.2", "10.1.0.3"});
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacA);
  hops.block();
  lab.ip(neighbour("replace", "10.1.0.2", kMacB));
  CHECK(hops.blocked_now());
  std::string lines;
  for (int i = 0; i < 300; i++) lines += neighbour("replace", "10.1.0.99", i % 2 ? kMacA : kMacB);
  // These two find the buffer full.
  lab.ip(lines + neighbour("replace", "10.1.0.2", "02:00:00:00:0e:0e") +
         neighbour("replace", "10.1.0.3", "02:00:00:00:0f:0f"));
  hops.unblock();
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), "02:00:00:00:0e:0e");
  CHECK_HOP(hops, "10.1.0.3", lab.interface("wa"), "02:00:00:00:0f:0f");
}

LAB_TEST(next_hop_watch_refreshes_periodically) {
  one_cable(lab);
  lab.ip(neighbour("add", "fd00:1::2", kMacA) + neighbour("add", "10.1.0.2", kMacA, "nud stale") +
         "route add 192.0.2.0/24 via 10.1.0.2\n");
  NextHopWatchOptions options;
  options.refresh_interval_ms = 20;
  options.packet_bytes_max = 1400;
  WatchedHops hops(options);
  hops.set_addresses({"fd00:1::2", "192.0.2.1", "192.0.2.2"});
  CHECK_STATE(hops, "fd00:1::2", resolved);
  lab.set("ipv6/conf/wa/mtu", "1400");
  CHECK_STATE(hops, "fd00:1::2", mtu_small);
  lab.set("ipv6/conf/wa/mtu", "1500");
  CHECK_STATE(hops, "fd00:1::2", resolved);
  // No traffic, so that the stale neighbour's destinations take turns.
  for (int i = 0; i < 2; i++) {
    CHECK_STATE(hops, "192.0.2.1", neighbour_checked);
    CHECK_STATE(hops, "192.0.2.2", neighbour_checked);
  }
}

// Another process with a privilege may send to any netlink socket.
void forge_to_all_sockets(const std::string& address, const std::string& mac, uint32_t interface) {
  struct {
    nlmsghdr header;
    ndmsg neighbour;
    rtattr address_head;
    uint8_t address[4];
    rtattr mac_head;
    uint8_t mac[8];
  } message{};
  message.header = {sizeof message, RTM_NEWNEIGH, 0, 0, 0};
  message.neighbour.ndm_family = AF_INET;
  message.neighbour.ndm_ifindex = static_cast<int>(interface);
  message.neighbour.ndm_state = NUD_PERMANENT;
  message.address_head = {8, NDA_DST};
  std::copy_n(address_of(address).begin() + 12, 4, message.address);
  message.mac_head = {10, NDA_LLADDR};
  std::copy_n(mac_of(mac).begin(), 6, message.mac);
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  std::ifstream sockets("/proc/thread-self/net/netlink");
  std::string line;
  size_t reported = 0;
  while (std::getline(sockets, line)) {
    std::istringstream words(line);
    std::string pointer;
    unsigned protocol = 1, port = 0;
    if (!(words >> pointer >> protocol >> port) || protocol != NETLINK_ROUTE || port == 0) continue;
    sockaddr_nl to{};
    to.nl_family = AF_NETLINK;
    to.nl_pid = port;
    reported += sendto(fd, &message, sizeof message, 0, reinterpret_cast<sockaddr*>(&to),
                       sizeof to) == ssize_t{sizeof message};
  }
  close(fd);
  CHECK(reported >= 2);  // the watch has two sockets
}

LAB_TEST(next_hop_watch_accepts_messages_of_the_kernel_only) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  hops.set_addresses({"10.1.0.2", "10.1.0.3"});
  CHECK_STATE(hops, "10.1.0.2", resolved);
  forge_to_all_sockets("10.1.0.2", kMacB, lab.interface("wa"));
  lab.ip(neighbour("add", "10.1.0.3", kMacA));
  CHECK_STATE(hops, "10.1.0.3", resolved);
  CHECK_HOP(hops, "10.1.0.2", lab.interface("wa"), kMacA);
  CHECK_EQ(hops.tables_published(), uint64_t{2});
}

// ---- life -----------------------------------------------------------------------------------

LAB_TEST(next_hop_watch_uses_the_last_of_many_address_lists) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  WatchedHops hops;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; i++)
        hops.set_addresses({"10.1.0.3", "10.1.0." + std::to_string(i + 4)});
    });
  for (std::thread& thread : threads) thread.join();
  hops.set_addresses({"10.1.0.2"});
  CHECK(hops.wait([](const NextHops& table) { return all_lead_to(table, 1, kMacA); }));
}

LAB_TEST(next_hop_watch_stops_while_busy) {
  one_cable(lab);
  lab.ip("route add 198.18.0.0/15 via 10.1.0.2\n" + neighbour("add", "10.1.0.2", kMacA));
  for (int i = 0; i < 20; i++) {
    WatchedHops hops;
    hops.set_addresses(thousand_addresses());
    if (i % 2) CHECK(hops.wait([](const NextHops&) { return true; }));
    std::thread other([&] { hops.watch().stop(); });
    hops.watch().stop();
    other.join();
    const uint64_t reported = hops.tables_published();
    lab.ip(neighbour("replace", "10.1.0.2", i % 2 ? kMacA : kMacB));
    hops.set_addresses({"10.1.0.2"});
    CHECK_EQ(hops.tables_published(), reported);
  }
}

TEST(next_hop_watch_stops_without_addresses) {
  WatchedHops hops;
  hops.watch().stop();
  CHECK_EQ(hops.tables_published(), uint64_t{0});
}

TEST(next_hop_watch_needs_no_privilege) {
  std::thread thread([] {
    drop_privileges_of_this_thread();
    CHECK(!thread_has_privileges());
    WatchedHops hops;
    hops.set_addresses({"127.0.0.1"});
    CHECK_STATE(hops, "127.0.0.1", local);
  });
  thread.join();
}

TEST(privileges_dropped_by_one_thread_stay_with_the_others) {
  const bool before = thread_has_privileges();
  std::thread thread([] { drop_privileges_of_this_thread(); });
  thread.join();
  CHECK_EQ(thread_has_privileges(), before);
}

TEST(next_hop_watch_publishes_from_a_thread_without_privileges) {
  std::string error;
  std::mutex mutex;
  std::condition_variable reported;
  int privileged = -1;
  NextHopWatchOptions options;
  options.publish = [&](const std::shared_ptr<const NextHops>&) {
    const std::lock_guard lock(mutex);
    privileged = thread_has_privileges();
    reported.notify_all();
  };
  const auto watch = NextHopWatch::start(options, error);
  CHECK_EQ(error, std::string());
  if (!watch) return;
  watch->set_addresses({});
  std::unique_lock lock(mutex);
  CHECK(reported.wait_for(lock, std::chrono::seconds(8), [&] { return privileged >= 0; }));
  CHECK_EQ(privileged, 0);
}

}  // namespace
}  // namespace shredway::test
