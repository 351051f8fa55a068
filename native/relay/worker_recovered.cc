// Worker: recovered copies, which go to the destinations that want them before the real shreds
// come.
#include <algorithm>

#include "relay/worker.h"

namespace shredway {

// Shreds that the deshredder computed from others: to those who want them, before the real ones
// come.
void Worker::queue_recovered() {
  RecoveredRing& ring = *options_.recovered;
  const size_t count = std::min(ring.waiting(), kReceiveBatchMax);
  if (count == 0) return;
  take_tables();
  for (size_t i = 0; i < count; i++) send_recovered(ring.front(i).packet);
  sends_recovered_ = true;
  send_fresh();
  sends_recovered_ = false;
  ring.release(count);
}

// A tier gets a recovered shred when it could have been recovered from what the tier was sent.
void Worker::send_recovered(const uint8_t* packet) {
  Shred shred;
  if (check_packet(packet, kPacketBytesMax, shred) != Verdict::first) return;
  FecSetRecord* record = recent_->find(shred, packet);
  if (!record) return;
  ShredRecord& shred_record = record->shred_records[shred.leaf];
  for (uint32_t tier = 0; tier < options_.tier_count; tier++) {
    const auto bit = static_cast<TierMask>(1u << tier);
    if ((shred_record.tiers_served | shred_record.tiers_recovered_sent) & bit) continue;
    const auto served =
        std::count_if(std::begin(record->shred_records), std::end(record->shred_records),
                      [&](const ShredRecord& one) { return one.tiers_served & bit; });
    if (served < static_cast<long>(kFecSetShreds)) continue;
    shred_record.tiers_recovered_sent |= bit;
    fresh_->wants_recovered[tier][static_cast<size_t>(shred.type)].add(packet, shred.bytes);
  }
}

}  // namespace shredway
