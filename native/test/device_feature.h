// Sets features of network devices like `ethtool -K`, for the native tests and benchmarks.
#pragma once

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>

#include "clone/device_features.h"
#include "net/udp_socket.h"

namespace shredway::test {

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
    ifreq set{};
    interface.copy(set.ifr_name, sizeof set.ifr_name - 1);
    set.ifr_data = reinterpret_cast<char*>(request);
    if (ioctl(socket.fd(), SIOCETHTOOL, &set) == 0) return true;
  }
  return false;
}

}  // namespace shredway::test
