// Firewall rules and IPsec policies for outgoing datagrams: found at the opening and when they
// change, without privileges afterwards.
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "clone/output_rules.h"
#include "device_feature.h"
#include "next_hop_lab.h"
#include "system/privileges.h"

namespace shredway::test {
namespace {

using enum NextHopState;

bool has_tool(const char* name) {
  return std::system((std::string("command -v ") + name + " > /dev/null 2>&1").c_str()) == 0;
}

void run(const std::string& command) { CHECK_EQ(std::system(command.c_str()), 0); }

void nft(const std::string& lines) { run("nft '" + lines + "'"); }

std::unique_ptr<OutputRules> open_rules() {
  std::string error;
  auto rules = OutputRules::open(error);
  CHECK_EQ(error, std::string());
  return rules;
}

// Waits for the message of a change that was made before.
std::string found_after_change(OutputRules& rules) {
  pollfd entries[2];
  for (size_t i = 0; i < 2; i++) entries[i] = {rules.fds()[i], POLLIN, 0};
  CHECK(poll(entries, 2, 30'000) > 0);
  rules.update();
  return rules.found();
}

constexpr const char* kOutput = "chain out { type filter hook output priority 0; }; ";

}  // namespace

LAB_TEST(output_rules_of_nftables_are_found_at_the_opening) {
  if (!has_tool("nft")) SKIP("nft is needed");
  CHECK_EQ(open_rules()->found(), std::string());
  nft("table inet own { chain in { type filter hook input priority 0; policy drop; "
      "udp dport 1 accept; }; chain other { udp dport 1 drop; }; " +
      std::string(kOutput) + "}");
  CHECK_EQ(open_rules()->found(), std::string());  // an empty chain that accepts
  nft("add rule inet own out udp dport 9 drop");
  CHECK(open_rules()->found().find("chain inet own out") != std::string::npos);
  nft("flush ruleset");
  CHECK_EQ(open_rules()->found(), std::string());
  nft("table ip6 own { chain out { type filter hook output priority 0; policy drop; }; }");
  CHECK(open_rules()->found().find("chain ip6 own out") != std::string::npos);
  nft("flush ruleset");
  nft("table ip own { chain after { type nat hook postrouting priority 100; masquerade; }; }");
  CHECK(open_rules()->found().find("chain ip own after") != std::string::npos);
  nft("flush ruleset");
  nft("table bridge own { " + std::string(kOutput) + "}");
  nft("add rule bridge own out drop");
  CHECK_EQ(open_rules()->found(), std::string());  // bridges see clones too
}

LAB_TEST(output_rules_of_nftables_are_followed) {
  if (!has_tool("nft")) SKIP("nft is needed");
  const auto rules = open_rules();
  nft("table inet own { " + std::string(kOutput) + "}");
  CHECK_EQ(found_after_change(*rules), std::string());
  nft("add rule inet own out udp dport 9 drop");
  CHECK(!found_after_change(*rules).empty());
  nft("add rule inet own out udp dport 10 drop");
  CHECK(!found_after_change(*rules).empty());
  nft("flush chain inet own out");
  CHECK_EQ(found_after_change(*rules), std::string());
  nft("add chain inet own out { policy drop; }");
  CHECK(!found_after_change(*rules).empty());
  nft("add chain inet own out { policy accept; }");
  CHECK_EQ(found_after_change(*rules), std::string());
  // A chain and its rules in one transaction.
  nft("table ip more { chain out { type filter hook output priority 0; udp dport 9 drop; }; }");
  CHECK(found_after_change(*rules).find("chain ip more out") != std::string::npos);
  nft("delete table ip more");
  CHECK_EQ(found_after_change(*rules), std::string());
  nft("table ip more { chain out { type filter hook output priority 0; udp dport 9 drop; }; }");
  nft("flush ruleset");
  CHECK_EQ(found_after_change(*rules), std::string());
}

LAB_TEST(output_rules_of_ipsec_are_found_and_followed) {
  const std::string policy = "xfrm policy add dir out src 10.9.0.0/16 dst 10.8.0.0/16\n";
  const auto rules = open_rules();
  CHECK_EQ(rules->found(), std::string());
  lab.ip("xfrm policy add dir in src 10.9.0.0/16 dst 10.8.0.0/16\n");
  CHECK_EQ(found_after_change(*rules), std::string());
  lab.ip(policy);
  CHECK(found_after_change(*rules).find("IPsec") != std::string::npos);
  CHECK(open_rules()->found().find("IPsec") != std::string::npos);
  lab.ip("xfrm policy delete dir out src 10.9.0.0/16 dst 10.8.0.0/16\n");
  CHECK_EQ(found_after_change(*rules), std::string());
  lab.ip(policy);
  lab.ip("xfrm policy flush\n");
  CHECK_EQ(found_after_change(*rules), std::string());
}

LAB_TEST(output_rules_of_the_former_iptables_are_found_at_the_opening) {
  if (!has_tool("iptables-legacy") || std::system("iptables-legacy -nL > /dev/null 2>&1") != 0)
    SKIP("iptables-legacy and the kernel's ip_tables are needed");
  CHECK_EQ(open_rules()->found(), std::string());
  run("iptables-legacy -A INPUT -p udp --dport 9 -j DROP");
  CHECK_EQ(open_rules()->found(), std::string());
  run("iptables-legacy -A OUTPUT -p udp --dport 9 -j DROP");
  CHECK(open_rules()->found().find("table filter of iptables") != std::string::npos);
}

TEST(output_rules_without_privileges_cannot_be_read) {
  std::string error;
  std::unique_ptr<OutputRules> rules;
  std::thread without([&] {
    drop_privileges_of_this_thread();
    rules = OutputRules::open(error);
  });
  without.join();
  CHECK(!rules);
  CHECK(error.find("CAP_NET_ADMIN") != std::string::npos);
}

// The watch runs without privileges, so this also shows that following needs none.
LAB_TEST(next_hop_watch_sends_by_socket_while_output_rules_exist) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  NextHopWatchOptions options;
  options.output_rules = open_rules();
  WatchedHops hops(std::move(options));
  hops.set_addresses({"10.1.0.2"});
  CHECK_STATE(hops, "10.1.0.2", resolved);
  lab.ip("xfrm policy add dir out src 10.9.0.0/16 dst 10.8.0.0/16\n");
  CHECK_STATE(hops, "10.1.0.2", NextHopState::output_rules);
  lab.ip("xfrm policy flush\n");
  CHECK_STATE(hops, "10.1.0.2", resolved);
  // An update of a policy that does not exist adds it; one that exists counts once.
  lab.ip("xfrm policy update dir out src 10.9.0.0/16 dst 10.8.0.0/16\n");
  CHECK_STATE(hops, "10.1.0.2", NextHopState::output_rules);
  lab.ip("xfrm policy update dir out src 10.9.0.0/16 dst 10.8.0.0/16 priority 7\n");
  lab.ip("xfrm policy delete dir out src 10.9.0.0/16 dst 10.8.0.0/16\n");
  CHECK_STATE(hops, "10.1.0.2", resolved);
}

// A veth that segments bursts itself drops what its other end cannot take at once.
LAB_TEST(next_hop_watch_sends_by_socket_to_interfaces_that_lose_bursts) {
  one_cable(lab);
  lab.ip(neighbour("add", "10.1.0.2", kMacA));
  NextHopWatchOptions options;
  options.output_rules = open_rules();
  WatchedHops hops(std::move(options));
  WatchedHops bold;
  hops.set_addresses({"10.1.0.2"});
  bold.set_addresses({"10.1.0.2"});
  CHECK_STATE(hops, "10.1.0.2", resolved);
  CHECK(set_device_feature("wa", "tx-udp-segmentation", false));
  CHECK_STATE(hops, "10.1.0.2", queue_lossy);
  CHECK_STATE(bold, "10.1.0.2", resolved);
  CHECK(set_device_feature("wa", "tx-udp-segmentation", true));
  CHECK_STATE(hops, "10.1.0.2", resolved);
}

}  // namespace shredway::test
