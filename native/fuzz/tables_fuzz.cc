// Fuzz target: any bytes as any of the three tables. A table that was parsed must answer every
// lookup.
#include <cstdlib>
#include <cstring>

#include "relay/fanout_table.h"
#include "relay/source_table.h"
#include "shred/leader_table.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A tier and every wider one, or no tier: for own use.
bool is_tier_mask(TierMask mask) { return mask == 0 || mask == 4 || mask == 6 || mask == 7; }

void look_up_sources(const SourceTable& table, const uint8_t* bytes, size_t length) {
  sockaddr_storage sender{};
  Endpoint endpoint;
  for (size_t at = 0; at + 16 <= length && at < 4096; at += 8) {
    std::memcpy(endpoint.address.data(), bytes + at, 16);
    to_sockaddr(endpoint, sender);
    if (const Source* source = table.find(sender, static_cast<uint16_t>(at * 257)))
      require(source->id < kSourcesMax && is_tier_mask(source->tier_mask));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  std::string error;
  if (const auto table = SourceTable::parse(bytes, length, 3, error))
    look_up_sources(*table, bytes, length);
  else require(!error.empty());

  error.clear();
  if (const auto table = FanoutTable::parse(bytes, length, 3, error)) {
    for (uint32_t tier = 0; tier < 3; tier++)
      for (const Destination& destination : table->of_tier(tier))
        require(table->find(endpoint_from_sockaddr(&destination.address)) == &destination);
  } else {
    require(!error.empty());
  }

  error.clear();
  if (const auto table = LeaderTable::parse(bytes, length, error)) {
    uint64_t first_slot;
    std::memcpy(&first_slot, bytes + 8, sizeof first_slot);
    table->leader_of(first_slot);
    table->leader_of(first_slot - 1);
    table->leader_of(first_slot + table->slot_count());
    table->leader_of(~uint64_t{0});
  } else {
    require(!error.empty());
  }
  return 0;
}
