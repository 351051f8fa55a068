// Lead times: the time between the first and the second source of a shred.
#pragma once

#include <cstdint>

#include "relay/counters.h"
#include "relay/recent_shreds.h"

namespace shredway {

// Records a further arrival of a recorded shred. Only the second source of a shred counts; the
// source that was ahead gets the lead time. Worker's thread.
void record_lead_time(ShredRecord& shred_record, uint16_t source, ArrivalTime arrival,
                      WorkerCounters& counters);

}  // namespace shredway
