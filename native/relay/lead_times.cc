#include "relay/lead_times.h"

namespace shredway {

void note_lead_time(Sighting& sighting, uint16_t source, SightingTime seen,
                    WorkerCounters& counters) {
  if (sighting.second_source_seen || sighting.first_source == source) return;
  sighting.second_source_seen = true;
  // Taken up first, yet received later by the kernel's clock: on another port or queue the other
  // source was ahead.
  const auto lead = static_cast<int32_t>(seen - sighting.first_seen);
  const uint16_t ahead = lead < 0 ? source : sighting.first_source;
  const auto by = static_cast<uint64_t>(lead < 0 ? -int64_t{lead} : int64_t{lead});
  counters.sources[ahead].lead_time.record(by << 10);
}

}  // namespace shredway
