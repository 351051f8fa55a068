// Lead times: by how much the source that brought a shred first was ahead of the second one.
#pragma once

#include <cstdint>

#include "relay/counters.h"
#include "relay/recent_shreds.h"

namespace shredway {

// A further sight of a shred that is recorded already, at this time by this source. Only the second
// source of a shred counts; credited to whichever was ahead. Worker's thread.
void note_lead_time(ShredRecord& shred_record, uint16_t source, SightingTime seen,
                    WorkerCounters& counters);

}  // namespace shredway
