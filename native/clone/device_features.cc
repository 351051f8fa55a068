#include "clone/device_features.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace shredway {
namespace {

bool ethtool(int fd, const std::string& interface, void* command) {
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
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

}  // namespace shredway
