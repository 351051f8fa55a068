#include "stream/lookup_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "shred/wire.h"

namespace shredway {
namespace {

constexpr size_t kChangesHeaderBytes = 8;
constexpr size_t kChangeBytes = 56;  // without the addresses
constexpr size_t kAddressBytes = sizeof(PublicKey);
constexpr char kChangesMagic[] = "SWL1";
constexpr size_t kChangesMax = 256;

// The fields of an encoded change.
struct EncodedChange {
  PublicKey table;
  uint64_t used_slot, extended_slot;
  uint16_t extension_begin, addresses;
  bool is_removal;

  explicit EncodedChange(const uint8_t* bytes)
      : used_slot(load_u64(bytes + 32)),
        extended_slot(load_u64(bytes + 40)),
        extension_begin(load_u16(bytes + 48)),
        addresses(load_u16(bytes + 50)),
        is_removal(bytes[52] != 0) {
    std::memcpy(table.data(), bytes, table.size());
  }
  size_t bytes() const { return kChangeBytes + size_t{addresses} * kAddressBytes; }
};

std::string check_changes(const uint8_t* bytes, size_t length) {
  if (length < kChangesHeaderBytes || std::memcmp(bytes, kChangesMagic, 4) != 0)
    return "lookup tables: expected 8 header bytes that begin with SWL1, got " +
           std::to_string(length) + " bytes";
  const uint32_t count = load_u32(bytes + 4);
  if (count > kChangesMax)
    return "lookup tables: expected at most " + std::to_string(kChangesMax) + " changes, got " +
           std::to_string(count);
  size_t at = kChangesHeaderBytes;
  for (uint32_t i = 0; i < count; i++) {
    if (length - at < kChangeBytes) return "lookup tables: the bytes end inside a change";
    const EncodedChange change(bytes + at);
    if (change.addresses > kLookupTableAddressesMax)
      return "lookup tables: expected at most " + std::to_string(kLookupTableAddressesMax) +
             " addresses in a table, got " + std::to_string(change.addresses);
    if (length - at < change.bytes()) return "lookup tables: the bytes end inside a change";
    at += change.bytes();
  }
  if (at == length) return "";
  return "lookup tables: expected " + std::to_string(at) + " bytes, got " + std::to_string(length);
}

}  // namespace

LookupTables::LookupTables(const HashKey& key, std::vector<Table> tables)
    : key_(key), tables_(std::move(tables)), slots_(std::bit_ceil(2 * tables_.size() + 1)) {
  const size_t last = slots_.size() - 1;
  for (uint32_t i = 0; i < tables_.size(); i++) {
    size_t slot = tables_[i]->hash & last;
    while (slots_[slot] != 0) slot = (slot + 1) & last;
    slots_[slot] = i + 1;
  }
}

const LookupTable* LookupTables::find(const uint8_t* key) const {
  if (tables_.empty()) return nullptr;
  const size_t last = slots_.size() - 1;
  const uint64_t hash = sip_hash(key, sizeof(PublicKey), key_);
  for (size_t slot = hash & last; slots_[slot] != 0; slot = (slot + 1) & last) {
    const LookupTable& table = *tables_[slots_[slot] - 1];
    if (table.hash == hash && std::memcmp(table.key.data(), key, table.key.size()) == 0)
      return &table;
  }
  return nullptr;
}

std::string LookupTableStore::apply(const uint8_t* changes, size_t length) {
  std::string error = check_changes(changes, length);
  if (!error.empty()) return error;
  const uint8_t* at = changes + kChangesHeaderBytes;
  for (uint32_t left = load_u32(changes + 4); left > 0; left--) {
    const EncodedChange change(at);
    if (change.is_removal) remove(change.table);
    else put(at);
    at += change.bytes();
  }
  if (tables_.size() > kLookupTablesMax || addresses_ > kLookupAddressesMax) evict();
  return "";
}

std::unique_ptr<const LookupTables> LookupTableStore::snapshot() const {
  std::vector<LookupTables::Table> tables;
  tables.reserve(tables_.size());
  for (const auto& [key, table] : tables_) tables.push_back(table);
  return std::make_unique<const LookupTables>(key_, std::move(tables));
}

void LookupTableStore::put(const uint8_t* change) {
  const EncodedChange encoded(change);
  const auto table = std::make_shared<LookupTable>();
  table->key = encoded.table;
  table->hash = sip_hash(encoded.table.data(), encoded.table.size(), key_);
  table->extended_slot = encoded.extended_slot;
  table->extension_begin = encoded.extension_begin;
  table->bytes.assign(change + kChangeBytes, change + encoded.bytes());
  LookupTables::Table& place = tables_[encoded.table];
  const uint64_t used_slot = place ? place->used_slot.load(std::memory_order_relaxed) : 0;
  table->used_slot.store(std::max(used_slot, encoded.used_slot), std::memory_order_relaxed);
  addresses_ = addresses_ - (place ? place->count() : 0) + table->count();
  place = table;
}

void LookupTableStore::remove(const PublicKey& table) {
  const auto found = tables_.find(table);
  if (found == tables_.end()) return;
  addresses_ -= found->second->count();
  tables_.erase(found);
}

// Leaves an eighth of the limits free, so that the search is rare.
void LookupTableStore::evict() {
  struct Candidate {
    uint64_t used_slot;
    PublicKey key;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(tables_.size());
  for (const auto& [key, table] : tables_)
    candidates.push_back({table->used_slot.load(std::memory_order_relaxed), key});
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.used_slot != b.used_slot ? a.used_slot < b.used_slot : a.key < b.key;
  });
  for (const Candidate& candidate : candidates) {
    if (tables_.size() <= kLookupTablesMax / 8 * 7 && addresses_ <= kLookupAddressesMax / 8 * 7)
      return;
    remove(candidate.key);
    evicted_++;
  }
}

}  // namespace shredway
