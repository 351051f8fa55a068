// Worker: recovered copies. Destinations that want them get them before the real shreds arrive.
#include <algorithm>

#include "relay/worker.h"

namespace shredway {

// Sends the shreds that the deshredder recovered to the destinations that want recovered shreds.
void Worker::queue_recovered() {
  RecoveredRing& ring = *options_.recovered;
  const size_t count = std::min(ring.waiting(), kReceiveBatchMax);
  if (count == 0) return;
  acquire_tables();
  for (size_t i = 0; i < count; i++) send_recovered(ring.front(i).packet);
  sends_recovered_ = true;
  send_queued();
  sends_recovered_ = false;
  ring.release(count);
}

// A tier gets a recovered shred only if the shreds already sent to that tier suffice to recover it.
void Worker::send_recovered(const uint8_t* packet) {
  Shred shred;
  if (check_packet(packet, kPacketBytesMax, shred) != Verdict::first) return;
  FecSetRecord* known = recent_->find(shred, packet);
  if (!known) return;
  ShredRecord& shred_record = known->shred_records[shred.leaf];
  for (uint32_t tier = 0; tier < options_.tier_count; tier++) {
    const auto bit = static_cast<TierMask>(1u << tier);
    if ((shred_record.tiers_served | shred_record.tiers_recovered_sent) & bit) continue;
    const auto served =
        std::count_if(std::begin(known->shred_records), std::end(known->shred_records),
                      [&](const ShredRecord& one) { return one.tiers_served & bit; });
    if (served < static_cast<long>(kFecSetShreds)) continue;
    shred_record.tiers_recovered_sent |= bit;
    send_queue_->wants_recovered[tier][static_cast<size_t>(shred.type)].add(packet, shred.bytes);
  }
}

}  // namespace shredway
