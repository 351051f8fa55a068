// Address lookup tables: the accounts that v0 transactions load in addition to their own keys.
//
// The control plane reads tables from a node and passes changes on. The store collects them on the
// control thread and builds snapshots; the deshred thread reads a snapshot. Tables only grow while
// they exist, and their addresses never change, so an old table can miss addresses but never has a
// wrong one.
//
//   header  magic "SWL1", u32 change count
//   change  table (32 bytes), u64 slot of its last use, u64 slot of its last extension, u16 index
//           of the first address that this extension added, u16 addresses, u8 1: the table does not
//           exist any more, 3 zero bytes, then the addresses (32 bytes each)
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "crypto/ed25519.h"
#include "crypto/sip_hash.h"

namespace shredway {

inline constexpr size_t kLookupTablesMax = 16'384;
inline constexpr size_t kLookupAddressesMax = 1u << 20;  // of all tables: 32 MiB
inline constexpr size_t kLookupTableAddressesMax = 256;

struct LookupTable {
  PublicKey key;
  uint64_t hash;
  uint64_t extended_slot;      // of the last extension
  uint16_t extension_begin;    // first address that it added
  std::vector<uint8_t> bytes;  // of the addresses
  // Slot of the last transaction that used it. The deshred thread writes it.
  mutable std::atomic<uint64_t> used_slot;

  size_t count() const { return bytes.size() / sizeof(PublicKey); }
  // The address that a transaction of this slot loads; nullptr: unknown. The runtime uses an
  // extension from the next slot on.
  const uint8_t* address(size_t index, uint64_t slot) const {
    const bool is_known = index < (slot > extended_slot ? count() : usable_in_extended_slot());
    return is_known ? bytes.data() + index * sizeof(PublicKey) : nullptr;
  }

 private:
  size_t usable_in_extended_slot() const {
    return extension_begin < count() ? extension_begin : count();
  }
};

// Immutable, except the slots of use.
class LookupTables {
 public:
  using Table = std::shared_ptr<const LookupTable>;

  LookupTables(const HashKey& key, std::vector<Table> tables);
  // nullptr: unknown.
  const LookupTable* find(const uint8_t* key) const;

 private:
  HashKey key_;
  std::vector<Table> tables_;
  std::vector<uint32_t> slots_;  // open addressing: 1 + index in tables_; 0: empty
};

struct LookupTableCounts {
  size_t tables;
  size_t addresses;
  uint64_t evicted;  // tables since the start
};

// Bounded: beyond the limits, the tables whose last use is oldest are evicted. Used by one thread.
class LookupTableStore {
 public:
  LookupTableStore() : key_(random_hash_key()), tables_(0, Hash{key_}) {}

  // Returns an error text, empty on success; all or nothing.
  std::string apply(const uint8_t* changes, size_t length);
  std::unique_ptr<const LookupTables> snapshot() const;
  LookupTableCounts counts() const { return {tables_.size(), addresses_, evicted_}; }

 private:
  struct Hash {
    HashKey key;
    size_t operator()(const PublicKey& table) const {
      return sip_hash(table.data(), table.size(), key);
    }
  };

  void put(const uint8_t* change);
  void remove(const PublicKey& table);
  void evict();

  HashKey key_;
  std::unordered_map<PublicKey, LookupTables::Table, Hash> tables_;
  size_t addresses_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace shredway
