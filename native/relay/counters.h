// Counters: everything that the relay counts, per worker, and the layout of a snapshot.
//
// Each worker writes its own block without locks; a snapshot adds up the blocks. A snapshot is an
// array of u64. TypeScript reads it by the names and offsets of SnapshotLayout. No counter shares a
// cache line with a counter of another worker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "clone/clone.h"
#include "net/udp_batch.h"
#include "relay/deshred_thread.h"
#include "relay/fanout_table.h"
#include "relay/histogram.h"
#include "relay/source_table.h"
#include "shred/verdict.h"
#include "system/named_enum.h"

namespace shredway {

// X(name): one number per worker.
#define SHREDWAY_WORKER_COUNTERS(X)                                                                \
  X(received)            /* datagrams taken from the sockets and from AF_XDP */                    \
  X(batches)             /* receive calls that returned packets */                                 \
  X(send_calls)          /* sendmmsg calls */                                                      \
  X(divided_sends)       /* sends that the worker divided among its sender threads and itself */   \
  X(late_senders)        /* sender threads that had not begun when a divided send was done */      \
  X(sender_cpu_ns)       /* processor time of the worker's sender threads */                       \
  X(gso_fallbacks)       /* GSO messages that were sent as single datagrams instead */             \
  X(signature_checks)    /* Ed25519 verifications */                                               \
  X(prepared_checks)     /* verifications with a prepared key, among signature_checks */           \
  X(cpu_ns)              /* processor time of the worker's thread */                               \
  X(signatures_replaced) /* shreds sent with the verified signature of their root, not their own   \
                          */                                                                       \
  X(resigned)            /* first arrivals of shreds with a retransmitter signature */             \
  X(receive_drops) /* datagrams that the kernel dropped because the receive buffer was full */     \
  X(filtered)      /* datagrams that the receive filter dropped: neither shred nor challenge */    \
  X(misdirected)   /* shreds of FEC sets that the steering gives to another worker */              \
  X(xdp_received)  /* datagrams received by AF_XDP, among `received` */                            \
  X(xdp_refused)   /* frames of AF_XDP that the network stack would have dropped */                \
  X(xdp_drops)     /* datagrams for AF_XDP that found no frame, among `receive_drops` */           \
  X(xdp_fill_ring_empty) /* times that a queue of AF_XDP had no free frame */                      \
  X(window_anchored)     /* number of times that the slot window was anchored */                   \
  X(highest_slot)        /* highest known slot; not a sum */                                       \
  X(events_lost)         /* events that found the ring full */                                     \
  X(deshred_lost)        /* new shreds that found the deshredder's ring full */                    \
  X(clone_triggers)      /* sends that the kernel cloned for many destinations; calls of AF_XDP */ \
  X(clone_fallbacks)     /* datagrams sent by socket because their trigger or interface failed */  \
  X(clone_refusals) /* times that the kernel refused the clone triggers of an address family */    \
  X(cloned_destinations) /* destinations sent to by clone or AF_XDP now; not a sum */

SHREDWAY_NAMED_ENUM(WorkerCounter, uint8_t, kWorkerCounterCount, worker_counter_name,
                    SHREDWAY_WORKER_COUNTERS)

struct SourceCounters {
  std::array<Counter, kVerdictCount> verdicts;
  Histogram lead_time;  // ns until the second source sent the same shred, if this source was first
};

struct DestinationCounters {
  Counter sent;
  std::array<Counter, kSendFailureCount> failed;
  Counter icmp_errors;
  Counter recovered_sent;  // recovered shreds, sent before the real ones; not in `sent`
};

// Arrivals in one slot, read at one moment.
struct SlotRow {
  uint64_t slot, first_arrival_ns, last_arrival_ns, data, code, highest_data_index, last_plus_1;
};

// A field of SlotCounters: like Counter, but its stores release and its loads acquire.
class SlotField {
 public:
  void add(uint64_t amount) { set(value_.load(std::memory_order_relaxed) + amount); }
  void set(uint64_t value) { value_.store(value, std::memory_order_release); }
  uint64_t get() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Arrivals in one slot: a sequence lock with one writer. Readers discard what they read if the row
// was reused for another slot meanwhile; counters of the same slot may be of different moments.
//
// A fence between the reader's data and its second load of `version` is not needed: each field is
// released and acquired. If a reader gets a value of a later version, the odd version that precedes
// this value happens before the reader's second load, which thus returns it or a later one. See
// Boehm, "Can seqlocks get along with programming language memory models?" (MSPC 2012), and
// [intro.races] in the C++ standard. On x86-64 these are plain loads and stores, and
// ThreadSanitizer, which ignores fences, understands them.
struct alignas(64) SlotCounters {
  static constexpr uint64_t kNone = ~uint64_t{0};
  std::atomic<uint64_t> version{0};  // odd while the writer changes the slot
  SlotField slot;
  SlotField first_arrival_ns;
  SlotField last_arrival_ns;
  SlotField data_shreds;
  SlotField code_shreds;
  SlotField highest_data_index;
  SlotField last_data_index_plus_1;  // 0: the last shred of the slot has not arrived

  SlotCounters() { slot.set(kNone); }
  // Writer. Begins another slot with one arrival and no shreds.
  void begin(uint64_t new_slot, uint64_t received_ns);
  // Returns false if the row is unused, or if the writer begins another slot in it. Any thread.
  bool read(SlotRow& row) const;
};
inline constexpr size_t kSlotRows = 64;  // per worker and in a snapshot
inline constexpr size_t kSlotRowFields = 7;

// Row of the sources array for packets of unknown senders.
inline constexpr size_t kUnknownSourceRow = kSourcesMax;

struct alignas(64) WorkerCounters {
  std::array<SlotCounters, kSlotRows> slots;
  // Current number of destinations by next-hop state; all 0 if next hops are not watched.
  std::array<Counter, kNextHopStateCount> next_hops;
  std::array<Counter, kWorkerCounterCount> worker;
  Histogram latency;  // ns from the kernel's receive time to after the send
  std::array<DestinationCounters, kDestinationsMax> destinations;
  std::array<SourceCounters, kSourcesMax + 1> sources;

  Counter& operator[](WorkerCounter counter) { return worker[static_cast<size_t>(counter)]; }
  void record_first_arrival(const Shred& shred, uint64_t received_ns);
};

// Offsets of a snapshot (in u64) for `workers` workers and the first `sources` and `destinations`
// ids.
struct SnapshotLayout {
  SnapshotLayout(size_t workers, size_t sources, size_t destinations);
  static constexpr size_t kHistogramWords = kHistogramBuckets + 2;  // sum, max, buckets
  static constexpr size_t kSourceWords = kVerdictCount + kHistogramWords;
  static constexpr size_t kDestinationWords = 1 + kSendFailureCount + 2;
  static constexpr size_t kDeshredWords = kDeshredCounterCount + kHistogramWords;
  size_t workers, sources, destinations;
  size_t worker_begin, latency_begin, slots_begin, deshred_begin, next_hops_begin, sources_begin,
      destinations_begin, words;
};

struct CounterBlocks {
  std::span<const WorkerCounters* const> workers;
  const DeshredCounters* deshred;  // nullptr: zeros
};
// Adds the blocks up into `out`, which must have layout.words words. The row after the last source
// counts unknown senders. Any thread.
void take_snapshot(const CounterBlocks& blocks, const SnapshotLayout& layout, uint64_t* out);

}  // namespace shredway
