#include "clone/clone_interface.h"

#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

namespace shredway {
namespace {

// CAP_PERFMON is needed because the program has a loop: without it, the verifier also follows the
// iterations of speculative execution and does not finish.
constexpr const char* kGrant =
    "; grant CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON (before Linux 5.8 CAP_NET_ADMIN and "
    "CAP_SYS_ADMIN, before 5.11 also a large enough RLIMIT_MEMLOCK)";

const char* remedy(std::string_view call, int error_number) {
  const auto about = [&](const char* what) { return call.find(what) != std::string_view::npos; };
  const bool tun = about("/dev/net/tun");
  switch (error_number) {
    case EPERM:
    case EACCES:
      return tun ? "; grant read and write access to /dev/net/tun" : kGrant;
    case EFAULT:
    case E2BIG:
    case ENOMEM:
      return about("BPF_PROG_LOAD") ? kGrant : "";
    case ENOENT:
    case ENODEV:
    case ENXIO:
      if (tun) return "; load the module tun, or give /dev/net/tun to the container";
      [[fallthrough]];
    case EOPNOTSUPP:
    case EINVAL:
      if (!about("clsact") && !about("filter")) return "";
      return "; this needs a kernel with CONFIG_NET_SCH_INGRESS and CONFIG_NET_CLS_BPF";
    case EBUSY:
      return "; another program has an interface of this name";
    default:
      return "";
  }
}

// A routing netlink request, built part by part in a fixed buffer.
class Request {
 public:
  Request(uint16_t type, uint16_t flags) {
    header()->nlmsg_type = type;
    header()->nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    header()->nlmsg_len = NLMSG_HDRLEN;
  }
  // Adds the fixed part that follows the header; must be called first.
  template <typename T>
  Request& body(const T& value) {
    append(&value, sizeof value);
    return *this;
  }
  Request& attribute(uint16_t type, const void* bytes, size_t length) {
    const rtattr attribute = {static_cast<uint16_t>(RTA_LENGTH(length)), type};
    append(&attribute, sizeof attribute);
    append(bytes, length);
    return *this;
  }
  Request& attribute(uint16_t type, const char* text) {
    return attribute(type, text, std::strlen(text) + 1);
  }
  Request& attribute(uint16_t type, uint32_t value) {
    return attribute(type, &value, sizeof value);
  }
  // Parts that are added between begin() and end() are inside this attribute.
  size_t begin(uint16_t type) {
    const size_t at = header()->nlmsg_len;
    attribute(type, nullptr, 0);
    return at;
  }
  void end(size_t at) {
    const auto length = static_cast<uint16_t>(header()->nlmsg_len - at);
    std::memcpy(&bytes_[at + offsetof(rtattr, rta_len)], &length, sizeof length);
  }

  // Returns 0 or the errno. The kernel answers inside the send call.
  int send() {
    const UdpSocket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket.valid()) return errno;
    sockaddr_nl kernel{};
    kernel.nl_family = AF_NETLINK;
    if (sendto(socket.fd(), bytes_.data(), header()->nlmsg_len, 0,
               reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
      return errno;
    alignas(nlmsghdr) std::array<uint8_t, 1024> answer;
    const ssize_t length = recv(socket.fd(), answer.data(), answer.size(), 0);
    if (length < 0) return errno;
    if (static_cast<size_t>(length) < NLMSG_LENGTH(sizeof(nlmsgerr))) return EBADMSG;
    nlmsghdr answered;
    nlmsgerr result;
    std::memcpy(&answered, answer.data(), sizeof answered);
    std::memcpy(&result, answer.data() + NLMSG_HDRLEN, sizeof result);
    return answered.nlmsg_type == NLMSG_ERROR ? -result.error : EBADMSG;
  }

 private:
  nlmsghdr* header() { return reinterpret_cast<nlmsghdr*>(bytes_.data()); }
  void append(const void* bytes, size_t length) {
    if (length) std::memcpy(&bytes_[header()->nlmsg_len], bytes, length);
    header()->nlmsg_len += static_cast<uint32_t>(NLMSG_ALIGN(length));
  }
  alignas(nlmsghdr) std::array<uint8_t, 512> bytes_{};
};

int add_hook(uint32_t index) {
  tcmsg body{};
  body.tcm_family = AF_UNSPEC;
  body.tcm_ifindex = static_cast<int>(index);
  body.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
  body.tcm_parent = TC_H_CLSACT;
  return Request(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL)
      .body(body)
      .attribute(TCA_KIND, "clsact")
      .send();
}

int add_filter(uint32_t index, int program_fd) {
  constexpr uint32_t kPriority = 1;
  tcmsg body{};
  body.tcm_family = AF_UNSPEC;
  body.tcm_ifindex = static_cast<int>(index);
  body.tcm_handle = 1;
  body.tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS);
  body.tcm_info = TC_H_MAKE(kPriority << 16, htons(ETH_P_ALL));
  Request request(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL);
  request.body(body).attribute(TCA_KIND, "bpf");
  const size_t options = request.begin(TCA_OPTIONS);
  request.attribute(TCA_BPF_FD, static_cast<uint32_t>(program_fd))
      .attribute(TCA_BPF_NAME, "shredway")
      .attribute(TCA_BPF_FLAGS, uint32_t{TCA_BPF_FLAG_ACT_DIRECT});
  request.end(options);
  return request.send();
}

// Prevents automatic addresses and router solicitations. Optional: some kernels have no IPv6, and
// the hook drops packets that are sent anyway.
void refuse_ipv6_autoconfiguration(uint32_t index) {
  constexpr uint8_t kNone = 1;  // IN6_ADDR_GEN_MODE_NONE
  ifinfomsg body{};
  body.ifi_family = AF_UNSPEC;
  body.ifi_index = static_cast<int>(index);
  Request request(RTM_NEWLINK, 0);
  request.body(body);
  const size_t families = request.begin(IFLA_AF_SPEC);
  const size_t ipv6 = request.begin(AF_INET6);
  request.attribute(IFLA_INET6_ADDR_GEN_MODE, &kNone, sizeof kNone);
  request.end(ipv6);
  request.end(families);
  (void)request.send();
}

// Sets the interface up without ARP, so that no MAC address is ever resolved. The queue has
// length 1, so that packets do not pile up if the hook is removed.
int bring_up(uint32_t index) {
  ifinfomsg body{};
  body.ifi_family = AF_UNSPEC;
  body.ifi_index = static_cast<int>(index);
  body.ifi_flags = IFF_UP | IFF_NOARP;
  body.ifi_change = IFF_UP | IFF_NOARP;
  return Request(RTM_NEWLINK, 0)
      .body(body)
      .attribute(IFLA_TXQLEN, uint32_t{1})
      .attribute(IFLA_MTU, uint32_t{1500})
      .send();
}

// Adds fe80::1/64: an IPv6 socket needs a source address.
int add_ipv6_address(uint32_t index) {
  ifaddrmsg body{};
  body.ifa_family = AF_INET6;
  body.ifa_prefixlen = 64;
  body.ifa_flags = IFA_F_NODAD;
  body.ifa_scope = RT_SCOPE_LINK;
  body.ifa_index = index;
  const std::array<uint8_t, 16> address = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return Request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE)
      .body(body)
      .attribute(IFA_LOCAL, address.data(), address.size())
      .attribute(IFA_ADDRESS, address.data(), address.size())
      .send();
}

}  // namespace

std::string clone_error(const std::string& call, int error_number) {
  return call + ": " + std::generic_category().message(error_number) + remedy(call, error_number);
}

std::unique_ptr<CloneInterface> CloneInterface::open(const std::string& name, int program_fd,
                                                     std::string& error) {
  std::unique_ptr<CloneInterface> interface(new CloneInterface);
  error = interface->create(name);
  if (error.empty()) error = interface->configure(program_fd);
  return error.empty() ? std::move(interface) : nullptr;
}

std::string CloneInterface::create(const std::string& name) {
  tap_ = UdpSocket(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!tap_.valid()) return clone_error("open /dev/net/tun", errno);
  ifreq request{};
  if (name.empty() || name.size() >= sizeof request.ifr_name)
    return "expected an interface name of 1 to 15 bytes, got \"" + name + "\"";
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(tap_.fd(), TUNSETIFF, &request) != 0)
    return clone_error("TUNSETIFF for " + name, errno);
  name_ = request.ifr_name;
  // Without TUN_F_CSUM, sockets would compute checksums over payloads and could not send GSO
  // messages.
  if (ioctl(tap_.fd(), TUNSETOFFLOAD, TUN_F_CSUM) != 0)
    return clone_error("TUNSETOFFLOAD for " + name_, errno);
  index_ = if_nametoindex(name_.c_str());
  return index_ ? "" : clone_error("if_nametoindex " + name_, errno);
}

std::string CloneInterface::configure(int program_fd) {
  if (const int refused = add_hook(index_)) return clone_error("clsact on " + name_, refused);
  if (const int refused = add_filter(index_, program_fd))
    return clone_error("egress filter on " + name_, refused);
  refuse_ipv6_autoconfiguration(index_);
  if (const int refused = bring_up(index_)) return clone_error("RTM_NEWLINK " + name_, refused);
  ipv6_ = add_ipv6_address(index_) == 0;
  return "";
}

}  // namespace shredway
