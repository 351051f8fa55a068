#include "deshred/slot_restarts.h"

#include "transaction/wire.h"

namespace shredway {
namespace {

// u8 version, u64 parent slot, parent block id.
constexpr uint16_t kUpdateParentBytes = 1 + 8 + kHashBytes;
constexpr uint8_t kUpdateParentVersion = 1;

}  // namespace

bool is_update_parent(const BlockMarker& marker) {
  return marker.kind == BlockMarkerKind::update_parent &&
         marker.payload_bytes == kUpdateParentBytes && marker.payload_seen == kUpdateParentBytes &&
         marker.payload[0] == kUpdateParentVersion;
}

void SlotRestarts::add(uint64_t slot, uint32_t batch_index, uint64_t arrival_ns) {
  Restart& restart = restarts_[slot % kSlots];
  if (restart.slot > slot || (restart.slot == slot && restart.batch_index >= batch_index)) return;
  if (batch_index == 0) return;  // nothing precedes it
  if (restart.is_reported) unreported_++;
  restart = {slot, arrival_ns, batch_index, false};
}

}  // namespace shredway
