#include "relay/source_table.h"

#include <netinet/in.h>

#include <algorithm>
#include <bit>

#include "relay/table_bytes.h"

namespace shredway {
namespace {

constexpr TableFormat kSourceFormat = {"source table", "SWS1", kSourceEntriesMax};

std::string check_source(const uint8_t* entry, uint32_t tier_count) {
  const uint16_t id = load_u16(entry);
  if (id >= kSourcesMax)
    return "expected a source id below " + std::to_string(kSourcesMax) + ", got " +
           std::to_string(id);
  if (entry[2] >= tier_count)
    return "expected a tier below " + std::to_string(tier_count) + ", got " +
           std::to_string(entry[2]);
  if (entry[6] > 1) return "expected 0 or 1 for own use, got " + std::to_string(entry[6]);
  if (entry[3] > 128) return "expected at most 128 prefix bits, got " + std::to_string(entry[3]);
  return "";
}

uint64_t load_big_endian(const uint8_t* p) { return __builtin_bswap64(load_u64(p)); }

uint64_t half_mask(int bits) {  // mask of one 64-bit half
  return bits <= 0 ? 0 : bits >= 64 ? ~uint64_t{0} : ~(~uint64_t{0} >> bits);
}

}  // namespace

std::unique_ptr<const SourceTable> SourceTable::parse(const uint8_t* bytes, size_t length,
                                                      uint32_t tier_count, std::string& error) {
  error = check_table(kSourceFormat, bytes, length,
                      [&](const uint8_t* entry) { return check_source(entry, tier_count); });
  if (!error.empty()) return nullptr;

  std::unique_ptr<SourceTable> table(new SourceTable);
  const uint32_t count = table_entry_count(bytes);
  table->entries_.assign(std::bit_ceil(std::max<size_t>(16, size_t{count} * 2)), Entry{});
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t* line = table_entry(bytes, i);
    const uint8_t bits = line[3];
    const Address mask{half_mask(bits), half_mask(bits - 64)};
    const Address address{load_big_endian(line + 8) & mask.high,
                          load_big_endian(line + 16) & mask.low};
    const uint32_t all_tiers = (1u << tier_count) - 1;
    const bool own_use = line[6] == 1;
    const auto tier_mask = static_cast<TierMask>(own_use ? 0 : all_tiers & ~((1u << line[2]) - 1));
    const Source source{load_u16(line), tier_mask};
    const uint16_t port = load_u16(line + 4);
    Entry& entry = table->entries_[table->place_of(address, bits, port)];
    if (entry.used) {
      error = "source table: two entries for the same range and port (sources " +
              std::to_string(entry.source.id) + " and " + std::to_string(source.id) + ")";
      return nullptr;
    }
    entry = {address, port, bits, true, source};
    const auto same_length = [&](const Prefix& prefix) { return prefix.bits == bits; };
    if (std::none_of(table->prefixes_.begin(), table->prefixes_.end(), same_length))
      table->prefixes_.push_back({bits, mask});
  }
  std::sort(table->prefixes_.begin(), table->prefixes_.end(),
            [](const Prefix& a, const Prefix& b) { return a.bits > b.bits; });
  return table;
}

const Source* SourceTable::find(const sockaddr_storage& sender, uint16_t port) const {
  const Address address = address_of(sender);
  for (const Prefix& prefix : prefixes_) {
    const Address masked{address.high & prefix.mask.high, address.low & prefix.mask.low};
    for (const uint16_t wanted : {port, uint16_t{0}}) {
      const Entry& entry = entries_[place_of(masked, prefix.bits, wanted)];
      if (entry.used) return &entry.source;
    }
  }
  return nullptr;
}

const Source* SourceTable::find_group(const AddressBytes& group, uint16_t port) const {
  const Address address{load_big_endian(group.data()), load_big_endian(group.data() + 8)};
  const Entry& entry = entries_[place_of(address, 128, port)];
  return entry.used ? &entry.source : nullptr;
}

size_t SourceTable::place_of(const Address& address, uint8_t prefix_bits, uint16_t port) const {
  const size_t last = entries_.size() - 1;
  size_t place = hash_of(address, prefix_bits, port) & last;
  while (entries_[place].used &&
         !(entries_[place].address == address && entries_[place].prefix_bits == prefix_bits &&
           entries_[place].port == port))
    place = (place + 1) & last;
  return place;
}

SourceTable::Address SourceTable::address_of(const sockaddr_storage& sender) {
  if (sender.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(sender);
    return {0, 0x0000ffff00000000u | __builtin_bswap32(ipv4.sin_addr.s_addr)};
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(sender);
  return {load_big_endian(ipv6.sin6_addr.s6_addr), load_big_endian(ipv6.sin6_addr.s6_addr + 8)};
}

size_t SourceTable::hash_of(const Address& address, uint8_t prefix_bits, uint16_t port) {
  const uint64_t key = address.low ^ port ^ uint64_t { prefix_bits } << 16;
  const uint64_t mixed = (address.high * 0x9e3779b97f4a7c15u ^ key) * 0xd6e8feb86659fd93u;
  return static_cast<size_t>(mixed >> 32);
}

}  // namespace shredway
