#include "relay/counters.h"

#include <algorithm>

namespace shredway {
namespace {

void add_histogram(const Histogram& from, uint64_t* out) {
  out[0] += from.sum.get();
  out[1] = std::max(out[1], from.max.get());
  for (size_t i = 0; i < kHistogramBuckets; i++) out[2 + i] += from.buckets[i].get();
}

void add_source(const SourceCounters& from, uint64_t* out) {
  for (size_t i = 0; i < kVerdictCount; i++) out[i] += from.verdicts[i].get();
  add_histogram(from.lead_time, out + kVerdictCount);
}

void add_destination(const DestinationCounters& from, uint64_t* out) {
  out[0] += from.sent.get();
  for (size_t i = 0; i < kSendFailureCount; i++) out[1 + i] += from.failed[i].get();
  out[1 + kSendFailureCount] += from.icmp_errors.get();
  out[2 + kSendFailureCount] += from.recovered_sent.get();
}

void merge(SlotRow& into, const SlotRow& row) {
  into.first_arrival_ns = std::min(into.first_arrival_ns, row.first_arrival_ns);
  into.last_arrival_ns = std::max(into.last_arrival_ns, row.last_arrival_ns);
  into.data += row.data;
  into.code += row.code;
  into.highest_data_index = std::max(into.highest_data_index, row.highest_data_index);
  into.last_plus_1 = std::max(into.last_plus_1, row.last_plus_1);
}

// Writes the newest kSlotRows slots of all workers, ascending. Unused rows have the slot kNone.
void write_slots(std::span<const WorkerCounters* const> workers, uint64_t* out) {
  std::vector<SlotRow> rows;
  for (const WorkerCounters* worker : workers) {
    for (const SlotCounters& counters : worker->slots) {
      SlotRow row;
      if (!counters.read(row)) continue;
      const auto same = std::find_if(rows.begin(), rows.end(),
                                     [&](const SlotRow& other) { return other.slot == row.slot; });
      if (same == rows.end()) rows.push_back(row);
      else merge(*same, row);
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const SlotRow& a, const SlotRow& b) { return a.slot < b.slot; });
  if (rows.size() > kSlotRows) rows.erase(rows.begin(), rows.end() - long{kSlotRows});
  for (size_t i = 0; i < kSlotRows; i++) {
    uint64_t* fields = out + i * kSlotRowFields;
    const SlotRow row = i < rows.size() ? rows[i] : SlotRow{SlotCounters::kNone, 0, 0, 0, 0, 0, 0};
    const uint64_t values[kSlotRowFields] = {
        row.slot, row.first_arrival_ns,   row.last_arrival_ns, row.data,
        row.code, row.highest_data_index, row.last_plus_1};
    std::copy(std::begin(values), std::end(values), fields);
  }
}

}  // namespace

void SlotCounters::begin(uint64_t new_slot, uint64_t received_ns) {
  const uint64_t odd = version.load(std::memory_order_relaxed) + 1;
  version.store(odd, std::memory_order_relaxed);
  slot.set(new_slot);
  first_arrival_ns.set(received_ns);
  last_arrival_ns.set(received_ns);
  data_shreds.set(0);
  code_shreds.set(0);
  highest_data_index.set(0);
  last_data_index_plus_1.set(0);
  version.store(odd + 1, std::memory_order_release);
}

bool SlotCounters::read(SlotRow& row) const {
  const uint64_t before = version.load(std::memory_order_acquire);
  row.slot = slot.get();
  row.first_arrival_ns = first_arrival_ns.get();
  row.last_arrival_ns = last_arrival_ns.get();
  row.data = data_shreds.get();
  row.code = code_shreds.get();
  row.highest_data_index = highest_data_index.get();
  row.last_plus_1 = last_data_index_plus_1.get();
  const bool is_consistent = before % 2 == 0 && version.load(std::memory_order_relaxed) == before;
  return is_consistent && row.slot != kNone;
}

void WorkerCounters::record_first_arrival(const Shred& shred, uint64_t received_ns) {
  SlotCounters& row = slots[shred.slot % kSlotRows];
  const uint64_t present = row.slot.get();
  if (present != shred.slot) {
    // Ignore a late shred of an older slot, whose row was overwritten. A much higher slot in the
    // row is not a reason to ignore the shred: with authentication off it may be forged.
    const bool older = present > shred.slot && present - shred.slot < SlotWindow::kSlots;
    if (present != SlotCounters::kNone && older) return;
    row.begin(shred.slot, received_ns);
  }
  row.last_arrival_ns.set(received_ns);
  if (shred.type == ShredType::code) {
    row.code_shreds.add(1);
    return;
  }
  row.data_shreds.add(1);
  if (shred.index > row.highest_data_index.get()) row.highest_data_index.set(shred.index);
  if (is_last_in_slot(shred.flags)) row.last_data_index_plus_1.set(uint64_t{shred.index} + 1);
}

SnapshotLayout::SnapshotLayout(size_t worker_count, size_t source_count, size_t destination_count)
    : workers(worker_count), sources(source_count), destinations(destination_count) {
  worker_begin = 0;
  latency_begin = worker_begin + workers * kWorkerCounterCount;
  slots_begin = latency_begin + kHistogramWords;
  deshred_begin = slots_begin + kSlotRows * kSlotRowFields;
  next_hops_begin = deshred_begin + kDeshredWords;
  sources_begin = next_hops_begin + kNextHopStateCount;
  destinations_begin = sources_begin + (sources + 1) * kSourceWords;
  words = destinations_begin + destinations * kDestinationWords;
}

void take_snapshot(const CounterBlocks& blocks, const SnapshotLayout& layout, uint64_t* out) {
  const auto& workers = blocks.workers;
  std::fill_n(out, layout.words, 0);
  for (size_t w = 0; w < workers.size(); w++) {
    const WorkerCounters& from = *workers[w];
    for (size_t i = 0; i < kWorkerCounterCount; i++)
      out[layout.worker_begin + w * kWorkerCounterCount + i] = from.worker[i].get();
    add_histogram(from.latency, out + layout.latency_begin);
    // All workers have the same destinations.
    if (w == 0)
      for (size_t i = 0; i < kNextHopStateCount; i++)
        out[layout.next_hops_begin + i] = from.next_hops[i].get();
    for (size_t i = 0; i < layout.sources; i++)
      add_source(from.sources[i], out + layout.sources_begin + i * SnapshotLayout::kSourceWords);
    add_source(from.sources[kUnknownSourceRow],
               out + layout.sources_begin + layout.sources * SnapshotLayout::kSourceWords);
    for (size_t i = 0; i < layout.destinations; i++)
      add_destination(from.destinations[i],
                      out + layout.destinations_begin + i * SnapshotLayout::kDestinationWords);
  }
  write_slots(workers, out + layout.slots_begin);
  if (!blocks.deshred) return;
  uint64_t* deshred = out + layout.deshred_begin;
  for (const Counter& counter : blocks.deshred->counters) *deshred++ = counter.get();
  add_histogram(blocks.deshred->report_latency, deshred);
}

}  // namespace shredway
