// Output rules: firewall rules and IPsec policies for outgoing datagrams. Sockets obey them; clones
// bypass them, so a relay that chooses its transmit mode sends by socket while there are any.
//
// Opened with CAP_NET_ADMIN, together with the clone plane. Later changes of nftables and of IPsec
// policies arrive as messages, which need no privilege. Rules of the former iptables (ip_tables)
// are read only at the opening, because the kernel does not report their changes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include "clone/netlink_messages.h"
#include "clone/netlink_socket.h"

namespace shredway {

class OutputRules {
 public:
  // Reads the rules of the calling thread's network namespace. Returns nullptr and fills `error` if
  // the kernel refuses. A kernel without nftables, iptables or IPsec has no such rules.
  static std::unique_ptr<OutputRules> open(std::string& error);

  // Reads the changes that have arrived. One thread.
  void update();
  // One rule that applies to outgoing datagrams, for people; empty: none.
  std::string found() const;
  // Readable when update() has something to do; -1: no such socket.
  std::array<int, 2> fds() const;

 private:
  using ChainKey = std::tuple<uint8_t, std::string, std::string>;  // family, table, name
  struct Chain {
    bool drops = false;          // by its policy
    std::set<uint64_t> rules{};  // their handles
  };

  std::string open_firewall();
  std::string open_policies();
  std::string read_old_tables();
  bool dump(int protocol, std::span<const uint8_t> request,
            void (OutputRules::*take)(const NetlinkMessage&));
  void drain(NetlinkSocket& socket, void (OutputRules::*take)(const NetlinkMessage&));
  void take_firewall(const NetlinkMessage& message);
  void take_policy(const NetlinkMessage& message);

  std::unique_ptr<NetlinkSocket> firewall_;  // nullptr: the kernel has no nftables
  std::unique_ptr<NetlinkSocket> policies_;  // nullptr: the kernel has no IPsec
  std::map<ChainKey, Chain> chains_;         // at the hooks of local output and after routing
  std::set<uint32_t> outgoing_policies_;     // indexes of IPsec policies for outgoing packets
  std::string old_table_;                    // table of the former iptables with rules for output
  bool lost_ = false;                        // messages were lost, so the rules are unknown
};

}  // namespace shredway
