#include "relay/lead_times.h"

namespace shredway {

void note_lead_time(ShredRecord& shred_record, uint16_t source, SightingTime seen,
                    WorkerCounters& counters) {
  if (shred_record.second_source_seen || shred_record.first_source == source) return;
  shred_record.second_source_seen = true;
  // Taken up first, yet received later by the kernel's clock: on another port or queue the other
  // source was ahead.
  const auto lead = static_cast<int32_t>(seen - shred_record.first_seen);
  const uint16_t ahead = lead < 0 ? source : shred_record.first_source;
  const auto by = static_cast<uint64_t>(lead < 0 ? -int64_t{lead} : int64_t{lead});
  counters.sources[ahead].lead_time.record(by << 10);
}

}  // namespace shredway
