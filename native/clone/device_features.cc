#include "clone/device_features.h"

#include <linux/ethtool.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "clone/netlink_attributes.h"
#include "clone/netlink_messages.h"
#include "clone/netlink_socket.h"

namespace shredway {
namespace {

bool ethtool(int fd, const std::string& interface, void* command) {
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

// Numbers of linux/netdev.h, which Debian 12 does not have.
constexpr uint8_t kDeviceGet = 1;          // NETDEV_CMD_DEV_GET
constexpr uint16_t kInterface = 1;         // NETDEV_A_DEV_IFINDEX
constexpr uint16_t kXdpFeatures = 3;       // NETDEV_A_DEV_XDP_FEATURES
constexpr uint64_t kXskZeroCopy = 1 << 3;  // NETDEV_XDP_ACT_XSK_ZEROCOPY

// Asks a family of generic netlink and returns one attribute of the answer, or 0.
template <typename Answer>
Answer ask_generic(NetlinkSocket& socket, uint16_t family, uint8_t command, uint16_t attribute,
                   netlink::Bytes value, uint16_t wanted) {
  std::vector<uint8_t> request(sizeof(nlmsghdr));
  netlink::append(request, genlmsghdr{command, 1, 0});
  netlink::append_attribute(request, attribute, value);
  const nlmsghdr header = {static_cast<uint32_t>(request.size()), family, NLM_F_REQUEST, 1, 0};
  std::memcpy(request.data(), &header, sizeof header);
  Answer answer{};
  netlink::Bytes datagram;
  if (!socket.send(request) || socket.read(datagram) != NetlinkSocket::Read::datagram)
    return answer;
  NetlinkMessage message;
  if (!next_message(datagram, message) || message.type != family) return answer;
  netlink::each_attribute(netlink::after(message.body, sizeof(genlmsghdr)),
                          [&](uint16_t type, netlink::Bytes payload) {
                            if (type == wanted) answer = netlink::number<Answer>(payload);
                          });
  return answer;
}

}  // namespace

int feature_bit(int fd, const std::string& interface, const char* feature) {
  alignas(8) std::array<uint8_t, sizeof(ethtool_sset_info) + sizeof(uint32_t)> bytes{};
  auto* info = reinterpret_cast<ethtool_sset_info*>(bytes.data());
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = 1ull << ETH_SS_FEATURES;
  if (!ethtool(fd, interface, info) || !info->sset_mask) return -1;
  const uint32_t count = info->data[0];
  std::vector<uint64_t> names((sizeof(ethtool_gstrings) + size_t{count} * ETH_GSTRING_LEN) / 8 + 1);
  auto* strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_FEATURES;
  strings->len = count;
  if (!ethtool(fd, interface, strings)) return -1;
  const auto* text = reinterpret_cast<const char*>(strings->data);
  for (uint32_t bit = 0; bit < strings->len; bit++)
    if (std::strncmp(text + size_t{bit} * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN) == 0)
      return static_cast<int>(bit);
  return -1;
}

bool device_segments_udp(int fd, const std::string& interface) {
  const int bit = feature_bit(fd, interface, "tx-udp-segmentation");
  constexpr uint32_t kBlocksMax = 8;  // of 32 bits; Linux 6.18 has two
  if (bit < 0 || static_cast<uint32_t>(bit) / 32 >= kBlocksMax) return false;
  alignas(8) std::array<uint8_t,
                        sizeof(ethtool_gfeatures) + kBlocksMax * sizeof(ethtool_get_features_block)>
      bytes{};
  auto* features = reinterpret_cast<ethtool_gfeatures*>(bytes.data());
  features->cmd = ETHTOOL_GFEATURES;
  features->size = kBlocksMax;
  if (!ethtool(fd, interface, features)) return false;
  return features->features[bit / 32].active >> (bit % 32) & 1;
}

DeviceQueues device_queues(int fd, const std::string& interface) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (!ethtool(fd, interface, &channels)) return {};
  return {std::max(channels.tx_count + channels.combined_count, 1u),
          std::max(channels.rx_count + channels.combined_count, 1u)};
}

XdpSupport device_xdp_support(uint32_t index) {
  std::string error;
  const auto socket = NetlinkSocket::open(NETLINK_GENERIC, {}, 1u << 16, error);
  if (!socket) return XdpSupport::unknown;
  constexpr std::array<uint8_t, 7> kName = {'n', 'e', 't', 'd', 'e', 'v', 0};
  const auto family = ask_generic<uint16_t>(*socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY,
                                            CTRL_ATTR_FAMILY_NAME, kName, CTRL_ATTR_FAMILY_ID);
  if (family == 0) return XdpSupport::unknown;
  std::array<uint8_t, sizeof index> bytes;
  std::memcpy(bytes.data(), &index, sizeof index);
  const auto features =
      ask_generic<uint64_t>(*socket, family, kDeviceGet, kInterface, bytes, kXdpFeatures);
  return features & kXskZeroCopy ? XdpSupport::zero_copy : XdpSupport::copy;
}

}  // namespace shredway
