#include "shred/leader_table.h"

#include <cstring>
#include <limits>

#include "shred/wire.h"

namespace shredway {
namespace {

constexpr size_t kHeaderBytes = 20;

struct Header {
  uint32_t key_count;
  uint64_t first_slot;
  uint32_t slot_count;
};

std::string check(const uint8_t* bytes, size_t length, Header& header) {
  if (length < kHeaderBytes || std::memcmp(bytes, "SWL1", 4) != 0)
    return "leader table: expected 20 header bytes that begin with SWL1, got " +
           std::to_string(length) + " bytes";
  header = {load_u32(bytes + 4), load_u64(bytes + 8), load_u32(bytes + 16)};
  if (header.key_count > kLeaderKeysMax || header.slot_count > kLeaderSlotsMax)
    return "leader table: expected at most " + std::to_string(kLeaderKeysMax) + " keys and " +
           std::to_string(kLeaderSlotsMax) + " slots, got " + std::to_string(header.key_count) +
           " and " + std::to_string(header.slot_count);
  const size_t expected =
      kHeaderBytes + size_t{header.key_count} * 32 + size_t{header.slot_count} * 4;
  if (length != expected)
    return "leader table: expected " + std::to_string(expected) + " bytes, got " +
           std::to_string(length);
  if (header.slot_count > std::numeric_limits<uint64_t>::max() - header.first_slot)
    return "leader table: expected slots below 2^64, got a range of slots beyond 2^64";
  const uint8_t* numbers = bytes + kHeaderBytes + size_t{header.key_count} * 32;
  for (uint32_t i = 0; i < header.slot_count; i++) {
    const uint32_t key = load_u32(numbers + size_t{i} * 4);
    if (key != kNoLeader && key >= header.key_count)
      return "leader table: slot " + std::to_string(header.first_slot + i) + " names key " +
             std::to_string(key) + " of " + std::to_string(header.key_count);
  }
  return "";
}

}  // namespace

std::unique_ptr<const LeaderTable> LeaderTable::parse(const uint8_t* bytes, size_t length,
                                                      std::string& error) {
  Header header{};
  error = check(bytes, length, header);
  if (!error.empty()) return nullptr;

  std::unique_ptr<LeaderTable> table(new LeaderTable);
  table->first_slot_ = header.first_slot;
  table->keys_.reserve(header.key_count);
  for (uint32_t i = 0; i < header.key_count; i++) {
    PublicKey key;
    std::memcpy(key.data(), bytes + kHeaderBytes + size_t{i} * 32, key.size());
    table->keys_.emplace_back(key);
  }
  const uint8_t* numbers = bytes + kHeaderBytes + size_t{header.key_count} * 32;
  table->leader_by_slot_.resize(header.slot_count);
  if (header.slot_count)
    std::memcpy(table->leader_by_slot_.data(), numbers, size_t{header.slot_count} * 4);
  return table;
}

}  // namespace shredway
