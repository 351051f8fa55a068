// Support for several native tests: shreds with chosen fields, authentic FEC sets, table bytes.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "net/address.h"
#include "shred/shredder.h"
#include "shred/wire.h"

namespace shredway::test {

using Bytes = std::vector<uint8_t>;

template <typename Integer>
void store(Bytes& bytes, size_t at, Integer value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <typename Integer>
void append(Bytes& bytes, Integer value) {
  bytes.resize(bytes.size() + sizeof value);
  std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

// A shred that passes every static rule (slot 7, index 0), with an arbitrary proof and signature.
Bytes plain_shred(uint8_t variant);

// Authentic FEC sets of one slot by a leader with the given seed byte: 32 data and 32 code shreds
// per set. `first_byte` of the entries distinguishes contents.
struct AuthenticSlot {
  PublicKey leader;
  std::vector<Bytes> packets;
};
struct SlotRequest {
  uint64_t slot;
  uint32_t fec_sets = 1;
  uint8_t leader_seed = 1;
  uint8_t first_byte = 0;
  uint16_t version = 1;
  bool last_in_slot = true;
  uint32_t first_fec_set_index = 0;
};
AuthenticSlot make_slot(const SlotRequest& request);
PublicKey leader_key(uint8_t seed);
std::vector<Bytes> sorted(std::vector<Bytes> packets);

struct SourceEntry {
  const char* address;  // IPv4 text
  uint8_t ipv4_prefix;  // 0..32
  uint8_t tier;
  uint16_t id;
  uint16_t port = 0;
  bool own_use = false;
};
Bytes source_table(const std::vector<SourceEntry>& entries);
struct DestinationEntry {
  Endpoint endpoint;
  uint8_t tier;
  uint32_t id;
  bool wants_recovered = false;
};
Bytes fanout_table(const std::vector<DestinationEntry>& entries);
// One key leads every slot in [first_slot, first_slot + slots).
Bytes leader_table(const PublicKey& key, uint64_t first_slot, uint32_t slots);

Endpoint ipv4_endpoint(const char* address, uint16_t port);

}  // namespace shredway::test
