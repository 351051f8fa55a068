#include "relay/fanout_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "relay/table_bytes.h"

namespace shredway {
namespace {

constexpr TableFormat kFanOutFormat = {"fan-out table", "SWF1", kDestinationsMax};

std::string check_destination(const uint8_t* entry, uint32_t tier_count) {
  const uint32_t id = load_u32(entry);
  if (id >= kDestinationsMax)
    return "expected a destination id below " + std::to_string(kDestinationsMax) + ", got " +
           std::to_string(id);
  if (entry[4] >= tier_count)
    return "expected a tier below " + std::to_string(tier_count) + ", got " +
           std::to_string(entry[4]);
  if (entry[5] > 1) return "expected 0 or 1 for recovered shreds, got " + std::to_string(entry[5]);
  if (load_u16(entry + 22) == 0) return "expected a port from 1 to 65535, got 0";
  return "";
}

// Text of the first address or id that two entries share; empty if all are unique.
std::string find_repetition(const uint8_t* table) {
  const uint32_t count = table_entry_count(table);
  std::vector<const uint8_t*> order(count);
  for (uint32_t i = 0; i < count; i++) order[i] = table_entry(table, i);
  const auto by_address = [](const uint8_t* a, const uint8_t* b) {
    return std::memcmp(a + 6, b + 6, kEndpointBytes) < 0;
  };
  std::sort(order.begin(), order.end(), by_address);
  for (uint32_t i = 1; i < count; i++)
    if (std::memcmp(order[i - 1] + 6, order[i] + 6, kEndpointBytes) == 0)
      return "address " + to_string(endpoint_from_bytes(order[i] + 6));
  const auto by_id = [](const uint8_t* a, const uint8_t* b) { return load_u32(a) < load_u32(b); };
  std::sort(order.begin(), order.end(), by_id);
  for (uint32_t i = 1; i < count; i++)
    if (load_u32(order[i - 1]) == load_u32(order[i]))
      return "destination id " + std::to_string(load_u32(order[i]));
  return "";
}

}  // namespace

std::unique_ptr<const FanoutTable> FanoutTable::parse(const uint8_t* bytes, size_t length,
                                                      uint32_t tier_count, std::string& error) {
  error = check_table(kFanOutFormat, bytes, length,
                      [&](const uint8_t* entry) { return check_destination(entry, tier_count); });
  if (!error.empty()) return nullptr;
  const std::string repeated = find_repetition(bytes);
  if (!repeated.empty()) {
    error = "fan-out table: two entries with the same " + repeated;
    return nullptr;
  }
  std::unique_ptr<FanoutTable> table(new FanoutTable);
  table->tiers_.resize(tier_count);
  const uint32_t count = table_entry_count(bytes);
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t* entry = table_entry(bytes, i);
    sockaddr_storage storage{};
    const socklen_t address_bytes = to_sockaddr(endpoint_from_bytes(entry + 6), storage);
    Destination destination{};
    std::memcpy(&destination.ipv6, &storage, address_bytes);
    destination.id = load_u32(entry);
    destination.wants_recovered = entry[5] == 1;
    table->any_wants_recovered_ |= destination.wants_recovered;
    table->tiers_[entry[4]].push_back(destination);
  }
  table->build_index();
  return table;
}

void FanoutTable::build_index() {
  size_t count = 0;
  for (const auto& tier : tiers_) count += tier.size();
  index_.assign(std::bit_ceil(std::max<size_t>(16, count * 2)), nullptr);
  for (const auto& tier : tiers_)
    for (const Destination& destination : tier)
      index_[place_of(endpoint_from_sockaddr(&destination.address))] = &destination;
}

// Place of the destination with this endpoint, or the empty place where it belongs.
size_t FanoutTable::place_of(const Endpoint& endpoint) const {
  const uint64_t key = load_u64(endpoint.address.data()) * 0x9e3779b97f4a7c15u ^
                       load_u64(endpoint.address.data() + 8) ^ endpoint.port;
  size_t place = (key * 0xd6e8feb86659fd93u) >> 32;
  const size_t last = index_.size() - 1;
  while (index_[place & last] && endpoint_from_sockaddr(&index_[place & last]->address) != endpoint)
    place++;
  return place & last;
}

std::vector<std::array<uint8_t, 16>> FanoutTable::addresses() const {
  std::vector<std::array<uint8_t, 16>> out;
  for (const auto& tier : tiers_)
    for (const Destination& destination : tier)
      out.push_back(endpoint_from_sockaddr(&destination.address).address);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

const Destination* FanoutTable::find(const Endpoint& endpoint) const {
  return index_[place_of(endpoint)];
}

}  // namespace shredway
