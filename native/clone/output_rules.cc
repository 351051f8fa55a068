#include "clone/output_rules.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "clone/clone_interface.h"
#include "clone/netlink_attributes.h"

namespace shredway {
namespace {

using netlink::append;
using netlink::Bytes;
using netlink::each_attribute;
using netlink::text;

constexpr uint32_t kRulesBufferBytes = 1u << 20;
constexpr uint16_t kFirewall = NFNL_SUBSYS_NFTABLES << 8;

uint32_t big_endian(Bytes payload) { return ntohl(netlink::number<uint32_t>(payload)); }

uint64_t handle_of(Bytes payload) { return be64toh(netlink::number<uint64_t>(payload)); }

bool is_output(uint32_t hook) { return hook == NF_INET_LOCAL_OUT || hook == NF_INET_POST_ROUTING; }

// Families whose hooks see IPv4 or IPv6 datagrams. Rules of other families (netdev, bridge) apply
// to clones too.
const char* name_of(uint8_t family) {
  if (family == NFPROTO_IPV4) return "ip";
  if (family == NFPROTO_IPV6) return "ip6";
  return family == NFPROTO_INET ? "inet" : nullptr;
}

// True for a subsystem that this kernel does not have.
bool is_absent(int error_number) {
  return error_number == EPROTONOSUPPORT || error_number == EAFNOSUPPORT ||
         error_number == EINVAL || error_number == EOPNOTSUPP || error_number == ENOPROTOOPT;
}

// The header of a request for all objects, whose body has `bytes`.
std::vector<uint8_t> dump_request(uint32_t type, size_t bytes) {
  std::vector<uint8_t> request;
  append(request, nlmsghdr{static_cast<uint32_t>(sizeof(nlmsghdr) + bytes),
                           static_cast<uint16_t>(type), NLM_F_REQUEST | NLM_F_DUMP, 1, 0});
  return request;
}

// ---- tables of the former iptables ----------------------------------------------------------

// struct ipt_getinfo and ip6t_getinfo of linux/netfilter_ipv{4,6}/ip{,6}_tables.h, which C++ cannot
// include together. The offsets are those of a hook's first rule and of its policy.
struct OldTableInfo {
  char name[32];
  uint32_t valid_hooks;
  uint32_t first_rule[NF_INET_NUMHOOKS];
  uint32_t policy[NF_INET_NUMHOOKS];
  uint32_t entries;
  uint32_t bytes;
};
constexpr int kGetInfo = 64;  // IPT_SO_GET_INFO, IP6T_SO_GET_INFO

struct OldFamily {
  int domain;
  int level;
  const char* prefix;    // of the names of its modules
  const char* in_force;  // readable by root only
  const char* label;
};
constexpr OldFamily kOldFamilies[] = {
    {AF_INET, IPPROTO_IP, "iptable_", "/proc/thread-self/net/ip_tables_names", "iptables"},
    {AF_INET6, IPPROTO_IPV6, "ip6table_", "/proc/thread-self/net/ip6_tables_names", "ip6tables"}};
constexpr const char* kOldTables[] = {"filter", "mangle", "nat", "raw", "security"};

// The first word of each line.
std::set<std::string> first_words(const char* path, bool& readable) {
  std::set<std::string> words;
  std::ifstream file(path);
  readable = file.is_open();
  for (std::string line; std::getline(file, line);) words.insert(line.substr(0, line.find(' ')));
  return words;
}

// Asking for a table creates it, so only tables in force are asked for, or those of loaded modules
// if their list may not be read.
bool is_in_force(const OldFamily& family, const std::string& table) {
  bool readable = false;
  const std::set<std::string> tables = first_words(family.in_force, readable);
  if (readable) return tables.contains(table);
  return first_words("/proc/modules", readable).contains(family.prefix + table);
}

bool has_output_rules(const OldFamily& family, const std::string& table) {
  const UdpSocket socket(::socket(family.domain, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  OldTableInfo info{};
  table.copy(info.name, sizeof info.name - 1);
  socklen_t bytes = sizeof info;
  if (getsockopt(socket.fd(), family.level, kGetInfo, &info, &bytes) != 0) return false;
  for (uint32_t hook = 0; hook < NF_INET_NUMHOOKS; hook++)
    if (is_output(hook) && info.valid_hooks >> hook & 1 &&
        info.first_rule[hook] != info.policy[hook])
      return true;
  return false;
}

}  // namespace

std::unique_ptr<OutputRules> OutputRules::open(std::string& error) {
  auto rules = std::make_unique<OutputRules>();
  error = rules->open_firewall();
  if (error.empty()) error = rules->open_policies();
  if (error.empty()) error = rules->read_old_tables();
  return error.empty() ? std::move(rules) : nullptr;
}

std::string OutputRules::read_old_tables() {
  for (const OldFamily& family : kOldFamilies)
    for (const char* table : kOldTables)
      if (old_table_.empty() && is_in_force(family, table) && has_output_rules(family, table))
        old_table_ = std::string("table ") + table + " of " + family.label;
  return "";
}

// Subscribes before it reads, so that no change is missed in between.
std::string OutputRules::open_firewall() {
  constexpr unsigned kGroups[] = {NFNLGRP_NFTABLES};
  std::string error;
  firewall_ = NetlinkSocket::open(NETLINK_NETFILTER, kGroups, kRulesBufferBytes, error);
  if (!firewall_) return is_absent(errno) ? "" : clone_error("firewall rules: " + error, errno);
  const auto dump_of = [this](uint16_t type) {
    std::vector<uint8_t> request = dump_request(kFirewall | type, sizeof(nfgenmsg));
    append(request, nfgenmsg{AF_UNSPEC, NFNETLINK_V0, 0});
    return dump(NETLINK_NETFILTER, request, &OutputRules::take_firewall);
  };
  if (dump_of(NFT_MSG_GETCHAIN) && dump_of(NFT_MSG_GETRULE)) return "";
  const int refused = errno;
  if (!is_absent(refused)) return clone_error("firewall rules", refused);
  firewall_ = nullptr;
  return "";
}

// Reads all objects that the request asks for, on a socket of its own. False with errno if the
// kernel refuses. An interrupted dump is repeated.
bool OutputRules::dump(int protocol, std::span<const uint8_t> request,
                       void (OutputRules::*take)(const NetlinkMessage&)) {
  constexpr int kDumpsMax = 5;
  std::string error;
  for (int tries = 0; tries < kDumpsMax; tries++) {
    const auto socket = NetlinkSocket::open(protocol, {}, kRulesBufferBytes, error);
    if (!socket || !socket->send(request)) return false;
    bool whole = false, interrupted = false;
    Bytes datagram;
    while (socket->read(datagram) == NetlinkSocket::Read::datagram) {
      NetlinkMessage message;
      while (next_message(datagram, message)) {
        interrupted |= (message.flags & NLM_F_DUMP_INTR) != 0;
        whole |= message.type == NLMSG_DONE;
        if (message.type == NLMSG_ERROR) {
          errno = error_of(message);
          return false;
        }
        (this->*take)(message);
      }
    }
    if (whole && !interrupted) return true;
  }
  errno = EAGAIN;
  return false;
}

std::string OutputRules::open_policies() {
  constexpr unsigned kGroups[] = {XFRMNLGRP_POLICY};
  std::string error;
  policies_ = NetlinkSocket::open(NETLINK_XFRM, kGroups, kRulesBufferBytes, error);
  if (!policies_) return is_absent(errno) ? "" : clone_error("IPsec policies: " + error, errno);
  std::vector<uint8_t> request = dump_request(XFRM_MSG_GETPOLICY, sizeof(xfrm_userpolicy_id));
  append(request, xfrm_userpolicy_id{});
  if (dump(NETLINK_XFRM, request, &OutputRules::take_policy)) return "";
  return clone_error("IPsec policies", errno);
}

void OutputRules::update() {
  if (firewall_) drain(*firewall_, &OutputRules::take_firewall);
  if (policies_) drain(*policies_, &OutputRules::take_policy);
}

void OutputRules::drain(NetlinkSocket& socket, void (OutputRules::*take)(const NetlinkMessage&)) {
  Bytes datagram;
  for (auto got = socket.read(datagram); got != NetlinkSocket::Read::nothing;
       got = socket.read(datagram)) {
    lost_ |= got == NetlinkSocket::Read::lost;
    NetlinkMessage message;
    while (got == NetlinkSocket::Read::datagram && next_message(datagram, message))
      (this->*take)(message);
  }
}

void OutputRules::take_firewall(const NetlinkMessage& message) {
  nfgenmsg header;
  if (message.type >> 8 != NFNL_SUBSYS_NFTABLES || !netlink::read(message.body, header)) return;
  if (!name_of(header.nfgen_family)) return;
  const Bytes attributes = netlink::after(message.body, sizeof header);
  ChainKey key{header.nfgen_family, "", ""};
  const auto type = static_cast<uint8_t>(message.type);
  const bool is_rule = type == NFT_MSG_NEWRULE || type == NFT_MSG_DELRULE;
  const bool is_chain = type == NFT_MSG_NEWCHAIN || type == NFT_MSG_DELCHAIN;
  if (!is_rule && !is_chain) return;
  const uint16_t table_attribute = is_rule ? uint16_t{NFTA_RULE_TABLE} : uint16_t{NFTA_CHAIN_TABLE};
  const uint16_t chain_attribute = is_rule ? uint16_t{NFTA_RULE_CHAIN} : uint16_t{NFTA_CHAIN_NAME};
  uint64_t handle = 0;
  struct {
    bool is_output = false;
    bool drops = false;
  } found;
  each_attribute(attributes, [&](uint16_t attribute, Bytes payload) {
    if (attribute == table_attribute) std::get<1>(key) = text(payload);
    if (attribute == chain_attribute) std::get<2>(key) = text(payload);
    if (is_rule && attribute == NFTA_RULE_HANDLE) handle = handle_of(payload);
    if (is_rule) return;
    if (attribute == NFTA_CHAIN_POLICY) found.drops = big_endian(payload) == NF_DROP;
    if (attribute != NFTA_CHAIN_HOOK) return;
    each_attribute(payload, [&](uint16_t of_hook, Bytes value) {
      if (of_hook == NFTA_HOOK_HOOKNUM) found.is_output = is_output(big_endian(value));
    });
  });
  if (type == NFT_MSG_DELCHAIN) {
    chains_.erase(key);
    return;
  }
  if (is_chain) {
    // A changed policy comes with the hook too.
    if (found.is_output) chains_[key].drops = found.drops;
    return;
  }
  // A chain is reported before its rules. Chains without a hook run only if a rule refers to them.
  const auto chain = chains_.find(key);
  if (chain == chains_.end()) return;
  if (type == NFT_MSG_NEWRULE) chain->second.rules.insert(handle);
  else chain->second.rules.erase(handle);
}

void OutputRules::take_policy(const NetlinkMessage& message) {
  // An update may have added the policy.
  if (message.type == XFRM_MSG_NEWPOLICY || message.type == XFRM_MSG_UPDPOLICY) {
    xfrm_userpolicy_info policy;
    if (netlink::read(message.body, policy) && policy.dir == XFRM_POLICY_OUT)
      outgoing_policies_.insert(policy.index);
  }
  // The message begins with the identity of the policy, which may lack the index.
  if (message.type == XFRM_MSG_DELPOLICY)
    each_attribute(netlink::after(message.body, sizeof(xfrm_userpolicy_id)),
                   [&](uint16_t type, Bytes payload) {
                     xfrm_userpolicy_info policy;
                     if (type == XFRMA_POLICY && netlink::read(payload, policy))
                       outgoing_policies_.erase(policy.index);
                   });
  if (message.type == XFRM_MSG_FLUSHPOLICY) outgoing_policies_.clear();
}

std::string OutputRules::found() const {
  if (lost_) return "the firewall changed faster than it could be read";
  for (const auto& [key, chain] : chains_) {
    const auto& [family, table, name] = key;
    if (chain.drops || !chain.rules.empty())
      return std::string("the firewall has rules for outgoing datagrams: chain ") +
             name_of(family) + " " + table + " " + name;
  }
  if (!old_table_.empty()) return "the firewall has rules for outgoing datagrams: " + old_table_;
  return !outgoing_policies_.empty() ? "IPsec policies for outgoing packets exist" : "";
}

std::array<int, 2> OutputRules::fds() const {
  return {firewall_ ? firewall_->fd() : -1, policies_ ? policies_->fd() : -1};
}

}  // namespace shredway
