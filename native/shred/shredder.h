// Shredder: bytes of entries to authentic shreds, as a leader makes them.
//
// Called by the default start, bench, tests and fixtures (through the addon from TypeScript). Makes
// fixed 32:32 FEC sets: Reed-Solomon parity, Merkle trees, chained roots, the last set of a slot
// resigned (retransmitter signature zero, as straight from the leader), one signature per set.
// Formats: wire.h, merkle.h, reed_solomon.h. Not on the packet path; it may allocate.
#pragma once

#include <cstdint>
#include <vector>

#include "crypto/ed25519.h"
#include "shred/merkle.h"
#include "shred/reed_solomon.h"
#include "shred/wire.h"

namespace shredway {

// Packets of equal treatment, back to back: packet i is bytes[offsets[i], offsets[i + 1]).
struct PacketList {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> offsets{0};
  size_t size() const { return offsets.size() - 1; }
  const uint8_t* packet(size_t i) const { return bytes.data() + offsets[i]; }
  size_t packet_bytes(size_t i) const { return offsets[i + 1] - offsets[i]; }
};

struct SlotPosition {
  uint64_t slot;
  uint16_t parent_offset;  // slot - parent slot; 0 only in slot 0
  uint16_t version;
  Root chained_root;            // root of the previous FEC set (of the parent's last for the first)
  uint32_t next_fec_set_index;  // multiple of 32
};

class Shredder {
 public:
  // `key` must outlive the shredder.
  explicit Shredder(const SigningKey& key);

  // Cuts one batch of entries into FEC sets and appends their packets to `out`, per set 32 data
  // then 32 code shreds. The last data shred carries DATA_COMPLETE, and LAST_IN_SLOT too when
  // `last_in_slot`; only then the last set is resigned, and filled before the others (28,768
  // bytes). An empty batch gives one set of empty shreds. Advances `position` (chained root, next
  // FEC set index).
  // Returns false, with `out` and `position` unchanged, when the slot has no room for the sets, a
  // field of `position` is invalid (see SlotPosition), the key cannot sign or `out` would pass
  // 4 GiB.
  bool shred(const uint8_t* entries, size_t entries_bytes, uint8_t reference_tick,
             bool last_in_slot, SlotPosition& position, PacketList& out) const;

 private:
  const SigningKey& key_;
  ReedSolomon reed_solomon_{kFecSetShreds, kFecSetShreds};
};

}  // namespace shredway
