#include "relay/source_table.h"

#include <netinet/in.h>

#include <algorithm>

#include "relay/table_bytes.h"

namespace shredway {
namespace {

constexpr TableFormat kFormat = {"source table", "SWS1", kSourceEntriesMax};

std::string check_entry(const uint8_t* entry, uint32_t tier_count) {
  const uint16_t id = load_u16(entry);
  if (id >= kSourcesMax)
    return "expected a source id below " + std::to_string(kSourcesMax) + ", got " +
           std::to_string(id);
  if (entry[2] >= tier_count)
    return "expected a tier below " + std::to_string(tier_count) + ", got " +
           std::to_string(entry[2]);
  if (entry[3] > 128) return "expected at most 128 prefix bits, got " + std::to_string(entry[3]);
  return "";
}

uint64_t load_big_endian(const uint8_t* p) { return __builtin_bswap64(load_u64(p)); }

uint64_t prefix_mask(uint32_t bits) {  // mask of one 64-bit half
  return bits == 0 ? 0 : bits >= 64 ? ~uint64_t{0} : ~(~uint64_t{0} >> bits);
}

}  // namespace

std::unique_ptr<const SourceTable> SourceTable::parse(const uint8_t* bytes, size_t length,
                                                      uint32_t tier_count, std::string& error) {
  error = check_table(kFormat, bytes, length,
                      [&](const uint8_t* entry) { return check_entry(entry, tier_count); });
  if (!error.empty()) return nullptr;

  std::vector<Range> all;
  const uint32_t count = table_entry_count(bytes);
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t* entry = table_entry(bytes, i);
    const uint32_t bits = entry[3];
    const Address mask{prefix_mask(bits), prefix_mask(bits > 64 ? bits - 64 : 0)};
    const Address address{load_big_endian(entry + 8) & mask.high,
                          load_big_endian(entry + 16) & mask.low};
    const uint32_t all_tiers = (1u << tier_count) - 1;
    const auto tier_mask = static_cast<TierMask>(all_tiers & ~((1u << entry[2]) - 1));
    all.push_back({address, mask, load_u16(entry + 4), entry[3], {load_u16(entry), tier_mask}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Range& a, const Range& b) {
    if (a.prefix_bits != b.prefix_bits) return a.prefix_bits > b.prefix_bits;
    return (a.port != 0) > (b.port != 0);
  });
  for (size_t i = 1; i < all.size(); i++) {
    for (size_t j = i; j-- > 0 && all[j].prefix_bits == all[i].prefix_bits;) {
      if (all[j].address == all[i].address && all[j].port == all[i].port) {
        error = "source table: two entries for the same range and port (sources " +
                std::to_string(all[j].source.id) + " and " + std::to_string(all[i].source.id) + ")";
        return nullptr;
      }
    }
  }
  std::unique_ptr<SourceTable> table(new SourceTable);
  table->build_exact(all);
  std::copy_if(all.begin(), all.end(), std::back_inserter(table->ranges_),
               [](const Range& range) { return range.prefix_bits != 128; });
  return table;
}

void SourceTable::build_exact(const std::vector<Range>& all) {
  const auto count = static_cast<size_t>(std::count_if(
      all.begin(), all.end(), [](const Range& range) { return range.prefix_bits == 128; }));
  size_t places = 16;
  while (places < count * 2) places *= 2;
  exact_.assign(places, Range{});
  for (const Range& range : all) {
    if (range.prefix_bits != 128) continue;
    size_t place = hash_of(range.address, range.port) & (places - 1);
    while (exact_[place].prefix_bits) place = (place + 1) & (places - 1);
    exact_[place] = range;
  }
}

const Source* SourceTable::find(const sockaddr_storage& sender, uint16_t port) const {
  const Address address = address_of(sender);
  if (const Source* source = find_exact(address, port)) return source;
  if (const Source* source = find_exact(address, 0)) return source;
  for (const Range& range : ranges_) {
    if (range.port != 0 && range.port != port) continue;
    const Address masked{address.high & range.mask.high, address.low & range.mask.low};
    if (masked == range.address) return &range.source;
  }
  return nullptr;
}

const Source* SourceTable::find_exact(const Address& address, uint16_t port) const {
  const size_t last = exact_.size() - 1;
  for (size_t place = hash_of(address, port) & last; exact_[place].prefix_bits;
       place = (place + 1) & last) {
    if (exact_[place].address == address && exact_[place].port == port)
      return &exact_[place].source;
  }
  return nullptr;
}

SourceTable::Address SourceTable::address_of(const sockaddr_storage& sender) {
  if (sender.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(sender);
    return {0, 0x0000ffff00000000u | __builtin_bswap32(ipv4.sin_addr.s_addr)};
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(sender);
  return {load_big_endian(ipv6.sin6_addr.s6_addr), load_big_endian(ipv6.sin6_addr.s6_addr + 8)};
}

size_t SourceTable::hash_of(const Address& address, uint16_t port) {
  const uint64_t mixed =
      (address.high * 0x9e3779b97f4a7c15u ^ address.low ^ port) * 0xd6e8feb86659fd93u;
  return static_cast<size_t>(mixed >> 32);
}

}  // namespace shredway
