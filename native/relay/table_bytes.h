// Table bytes: the checks that all published tables of 24-byte entries share.
//
//   [0, 4) magic   [4, 8) entry count, u32 little-endian   then 24 bytes an entry
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "shred/wire.h"

namespace shredway {

inline constexpr size_t kTableHeaderBytes = 8;
inline constexpr size_t kTableEntryBytes = 24;

struct TableFormat {
  const char* name;   // for error texts, e.g. "source table"
  const char* magic;  // 4 bytes
  uint32_t entries_max;
};

inline uint32_t table_entry_count(const uint8_t* table) { return load_u32(table + 4); }
inline const uint8_t* table_entry(const uint8_t* table, uint32_t i) {
  return table + kTableHeaderBytes + size_t{i} * kTableEntryBytes;
}

// Checks header, length and every entry. check_entry(bytes) returns an error text, empty if the
// entry is valid. Returns an error text (expected and received values), empty if the table is
// valid.
template <typename CheckEntry>
std::string check_table(const TableFormat& format, const uint8_t* table, size_t length,
                        CheckEntry check_entry) {
  const std::string name = format.name;
  if (length < kTableHeaderBytes || std::memcmp(table, format.magic, 4) != 0)
    return name + ": expected 8 header bytes that begin with " + format.magic + ", got " +
           std::to_string(length) + " bytes";
  const uint32_t count = table_entry_count(table);
  if (count > format.entries_max)
    return name + ": expected at most " + std::to_string(format.entries_max) + " entries, got " +
           std::to_string(count);
  const size_t expected = kTableHeaderBytes + size_t{count} * kTableEntryBytes;
  if (length != expected)
    return name + ": expected " + std::to_string(expected) + " bytes for " + std::to_string(count) +
           " entries, got " + std::to_string(length);
  for (size_t at = kTableHeaderBytes; at < length; at += kTableEntryBytes) {
    const std::string error = check_entry(table + at);
    const size_t index = (at - kTableHeaderBytes) / kTableEntryBytes;
    if (!error.empty()) return name + ": entry " + std::to_string(index) + ": " + error;
  }
  return "";
}

}  // namespace shredway
