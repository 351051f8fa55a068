// Shredder: makes authentic shreds from entries, as a leader does.
//
// Used by the sandbox, benchmarks, tests and fixtures (through the addon from TypeScript). It makes
// fixed 32:32 FEC sets: Reed-Solomon parity, Merkle trees, chained roots and one signature per set.
// The last set of a slot has resigned variants (retransmitter signature zero, as sent by the
// leader). Formats: wire.h, merkle.h, reed_solomon.h. Not on the packet path; it may allocate.
#pragma once

#include <cstdint>
#include <vector>

#include "crypto/ed25519.h"
#include "shred/merkle.h"
#include "shred/reed_solomon.h"
#include "shred/wire.h"

namespace shredway {

// Consecutive packets: packet i is bytes[offsets[i], offsets[i + 1]).
struct PacketList {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets{0};
  size_t size() const { return offsets.size() - 1; }
  const uint8_t* packet(size_t i) const { return bytes.data() + offsets[i]; }
  size_t packet_bytes(size_t i) const { return offsets[i + 1] - offsets[i]; }
};

struct SlotPosition {
  uint64_t slot;
  uint16_t parent_offset;  // slot - parent slot; 0 only for slot 0
  uint16_t version;
  Root chained_root;  // root of the previous FEC set; for the first set, of the parent's last set
  uint32_t next_fec_set_index;  // multiple of 32
};

class Shredder {
 public:
  // `key` must outlive the shredder.
  explicit Shredder(const SigningKey& key);

  // Splits one batch of entries into FEC sets and appends their packets to `out`: per set 32 data
  // then 32 code shreds. The last data shred has DATA_COMPLETE, and LAST_IN_SLOT too if
  // `last_in_slot`; only then the last set is resigned, and it is filled before the others (28,768
  // bytes). An empty batch gives one set of empty shreds. Advances `position` (chained root, next
  // FEC set index). Returns false and leaves `out` and `position` unchanged if the sets do not fit
  // into the slot, a field of `position` is invalid (see SlotPosition), the key cannot sign or
  // `out` would exceed 4 GiB.
  bool shred(const uint8_t* entries, size_t entries_bytes, uint8_t reference_tick,
             bool last_in_slot, SlotPosition& position, PacketList& out) const;

 private:
  const SigningKey& key_;
  ReedSolomon reed_solomon_{kFecSetShreds, kFecSetShreds};
};

}  // namespace shredway
