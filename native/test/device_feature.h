// Sets features of network devices like `ethtool -K`, for the native tests and benchmarks.
#pragma once

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "net/udp_socket.h"

namespace shredway::test {

inline bool ethtool(int fd, const std::string& interface, void* command) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  request.ifr_data = static_cast<char*>(command);
  return ioctl(fd, SIOCETHTOOL, &request) == 0;
}

// Index of the feature's bit, or -1.
inline int feature_bit(int fd, const std::string& interface, const char* feature) {
  alignas(8) std::array<uint8_t, sizeof(ethtool_sset_info) + sizeof(uint32_t)> bytes{};
  auto* info = reinterpret_cast<ethtool_sset_info*>(bytes.data());
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = 1ull << ETH_SS_FEATURES;
  if (!ethtool(fd, interface, info) || !info->sset_mask) return -1;
  const uint32_t count = info->data[0];
  std::vector<uint64_t> names((sizeof(ethtool_gstrings) + count * ETH_GSTRING_LEN) / 8 + 1);
  auto* strings = reinterpret_cast<ethtool_gstrings*>(names.data());
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_FEATURES;
  strings->len = count;
  if (!ethtool(fd, interface, strings)) return -1;
  const auto* text = reinterpret_cast<const char*>(strings->data);
  for (uint32_t bit = 0; bit < strings->len; bit++)
    if (std::strncmp(text + bit * ETH_GSTRING_LEN, feature, ETH_GSTRING_LEN) == 0)
      return static_cast<int>(bit);
  return -1;
}

// Switches a feature by its name in `ethtool -k` (tx-udp-segmentation, tx-checksum-ip-generic) for
// an interface of this thread's namespace. Returns false if it does not exist or cannot be set.
inline bool set_device_feature(const std::string& interface, const char* feature, bool on) {
  const UdpSocket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int bit = feature_bit(socket.fd(), interface, feature);
  if (bit < 0) return false;
  const auto word = static_cast<uint32_t>(bit) / 32;
  const uint32_t mask = 1u << (static_cast<uint32_t>(bit) % 32);
  // The kernel requires its exact number of blocks, which is found by trying.
  constexpr uint32_t kBlocksMax = 8;
  for (uint32_t blocks = word + 1; blocks <= kBlocksMax; blocks++) {
    alignas(8) std::array<uint8_t, sizeof(ethtool_sfeatures) +
                                       kBlocksMax * sizeof(ethtool_set_features_block)>
        bytes{};
    auto* request = reinterpret_cast<ethtool_sfeatures*>(bytes.data());
    request->cmd = ETHTOOL_SFEATURES;
    request->size = blocks;
    request->features[word] = {mask, on ? mask : 0};
    if (ethtool(socket.fd(), interface, request)) return true;
  }
  return false;
}

}  // namespace shredway::test
