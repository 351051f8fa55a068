// Source table: the senders whose packets the relay accepts, and the tiers that they serve.
//
// The control plane publishes it as a whole; afterwards it is immutable. Every worker looks up
// every packet in it. A source is identified by its address or range, by the port that it sends to,
// or by both. The longest prefix wins, then the entry with a port. A lookup takes two probes of a
// hash table for each prefix length that occurs, however many entries there are. Layout,
// little-endian:
//   [0, 4) "SWS1"   [4, 8) entry count   then 24 bytes an entry:
//   [0, 2) source id   [2, 3) tier   [3, 4) prefix bits 0..128 (0: any address)
//   [4, 6) port it sends to, 0: any   [6, 7) 1: for own use, 0: forwarded   [7, 8) zero
//   [8, 24) address, IPv4 as ::ffff:a.b.c.d
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
#include "relay/recent_shreds.h"

namespace shredway {

inline constexpr uint32_t kSourcesMax = 256;
inline constexpr uint32_t kSourceEntriesMax = 4096;
inline constexpr uint32_t kTiersMax = 8;

struct Source {
  uint16_t id;         // index of its counters
  TierMask tier_mask;  // its own tier and every wider tier; 0: for own use, never sent
};

class SourceTable {
 public:
  // Checks all bytes before it builds a table. Returns nullptr and fills `error` if the bytes are
  // not a valid table for `tier_count` tiers. With an empty table every sender is unknown.
  static std::unique_ptr<const SourceTable> parse(const uint8_t* bytes, size_t length,
                                                  uint32_t tier_count, std::string& error);
  // Source of the packet, or nullptr if it is unknown. `port`: port of the receiving socket.
  const Source* find(const sockaddr_storage& sender, uint16_t port) const;
  // Source of a packet to a multicast group, from any sender: the entry with the group's address
  // and the port, or nullptr. Groups are never senders, so both kinds of entries share the table.
  const Source* find_group(const AddressBytes& group, uint16_t port) const;

 private:
  struct Address {
    uint64_t high, low;  // big-endian halves as numbers
    bool operator==(const Address&) const = default;
  };
  // One entry of the table, or (used false) an empty place.
  struct Entry {
    Address address;
    uint16_t port;
    uint8_t prefix_bits;
    bool used;
    Source source;
  };
  struct Prefix {
    uint8_t bits;
    Address mask;
  };
  SourceTable() = default;
  static Address address_of(const sockaddr_storage& sender);
  static size_t hash_of(const Address& address, uint8_t prefix_bits, uint16_t port);
  // Place of the entry, or the empty place where it belongs.
  size_t place_of(const Address& address, uint8_t prefix_bits, uint16_t port) const;

  std::vector<Entry> entries_;    // hash table with open addressing
  std::vector<Prefix> prefixes_;  // lengths that occur, longest first
};

}  // namespace shredway
