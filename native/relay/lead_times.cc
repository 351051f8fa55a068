#include "relay/lead_times.h"

namespace shredway {

void record_lead_time(ShredRecord& shred_record, uint16_t source, ArrivalTime arrival,
                      WorkerCounters& counters) {
  if (shred_record.has_second_source || shred_record.first_source == source) return;
  shred_record.has_second_source = true;
  // Processed first but received later by the kernel's clock: the packet of the other source waited
  // on another port or queue and was ahead.
  const auto lead = static_cast<int32_t>(arrival - shred_record.first_arrival);
  const uint16_t ahead = lead < 0 ? source : shred_record.first_source;
  const auto by = static_cast<uint64_t>(lead < 0 ? -int64_t{lead} : int64_t{lead});
  counters.sources[ahead].lead_time.record(by << 10);
}

}  // namespace shredway
