// Leader table: the public key that signs the shreds of each slot.
//
// The control plane publishes it as a whole; afterwards it is immutable, and every worker reads it.
// Keys are imported once, here. Layout, little-endian:
//   [0, 4) "SWL1"   [4, 8) key count K   [8, 16) first slot   [16, 20) slot count N
//   [20, 20 + 32 K) public keys          then N x u32 key index, 0xffffffff: no leader
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crypto/ed25519.h"

namespace shredway {

inline constexpr uint32_t kNoLeader = 0xffffffff;
inline constexpr uint32_t kLeaderKeysMax = 65536;
inline constexpr uint32_t kLeaderSlotsMax = 1u << 21;  // two epochs of 432,000 slots, with reserve

class LeaderTable {
 public:
  // Checks all bytes before it builds a table. Returns nullptr and fills `error` if the bytes are
  // not a valid table.
  static std::unique_ptr<const LeaderTable> parse(const uint8_t* bytes, size_t length,
                                                  std::string& error);
  // nullptr if the schedule has no leader for the slot.
  const VerifyingKey* leader_of(uint64_t slot) const {
    const uint64_t place = slot - first_slot_;  // wraps for slots before the first slot
    if (place >= leader_by_slot_.size()) return nullptr;
    const uint32_t key = leader_by_slot_[place];
    return key == kNoLeader ? nullptr : &keys_[key];
  }
  size_t slot_count() const { return leader_by_slot_.size(); }

 private:
  LeaderTable() = default;
  uint64_t first_slot_ = 0;
  std::vector<uint32_t> leader_by_slot_;
  std::vector<VerifyingKey> keys_;
};

}  // namespace shredway
