// Deshred thread: finds watched transactions in the shreds and decodes them for streams, outside
// the packet path.
//
// After sending, workers copy every new shred into a ring. One thread of lower priority deshreds
// these shreds and reports transactions with watched signatures. It polls the rings, several times
// per millisecond while signatures are watched and less often otherwise, so that a worker pays for
// one copy and no system call. A full ring loses shreds (the worker counts them); the redundancy of
// the FEC sets hides most losses. Control calls come from one thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "deshred/deshredder.h"
#include "deshred/slot_restarts.h"
#include "net/socket_calls.h"
#include "net/thread.h"
#include "relay/histogram.h"
#include "relay/landings.h"
#include "relay/wake_up.h"
#include "stream/streams.h"
#include "system/named_enum.h"
#include "system/spsc_ring.h"

namespace shredway {

// One shred in a ring between a worker and the deshred thread. The packet is authenticated and cut
// to the shred's own length, 1203 or 1228 bytes.
struct QueuedShred {
  uint64_t received_ns;
  uint8_t packet[kPacketBytesMax];
  bool is_new = true;          // first arrival, from any source
  bool is_forwardable = true;  // first arrival from a source that is forwarded
  uint8_t tiers = 0;  // bits of the tiers whose sources delivered it now for the first time
};
inline constexpr size_t kQueuedShredsMax = 4096;  // 5 MB; 0.4 s at 10,000 shreds a second
using ShredRing = SpscRing<QueuedShred, kQueuedShredsMax>;
// Recovered shreds, returned to the worker that received the other shreds of the set.
inline constexpr size_t kRecoveredShredsMax = 1024;
using RecoveredRing = SpscRing<QueuedShred, kRecoveredShredsMax>;

// X(name): counters in addition to those of the deshredder.
#define SHREDWAY_DESHRED_COUNTERS(X)                                                             \
  SHREDWAY_DESHRED_COUNTS(X)                                                                     \
  X(shreds_handed_back) /* recovered shreds that were returned to workers for destinations that  \
                           want them */                                                          \
  X(landings)           /* landings of watched transactions that were reported */                \
  X(abandoned)          /* transactions before an update-parent marker that was known already */ \
  X(restarts)           /* update-parent markers that were reported */                           \
  X(landings_lost)      /* landings that found the ring of reports full */                       \
  X(stream_messages)    /* messages for subscribers of streams */                                \
  X(stream_repeated)    /* transactions that a block repeated, which streams leave out */        \
  X(stream_lost)        /* messages that found the ring of streams full */                       \
  X(stream_lookups)     /* transactions with lookup tables that streams examined */              \
  X(stream_unresolved)  /* transactions among them with an unknown loaded address */             \
  X(stream_lookup_reports_lost) /* reports of tables that found their ring full */               \
  X(watched)                    /* signatures on the watch-list now; not a sum */                \
  X(cpu_ns)                     /* processor time of the thread */

SHREDWAY_NAMED_ENUM(DeshredCounter, uint8_t, kDeshredCounterCount, deshred_counter_name,
                    SHREDWAY_DESHRED_COUNTERS)

struct DeshredCounters {
  std::array<Counter, kDeshredCounterCount> counters;
  Histogram report_latency;  // ns from the receive time of the last needed shred to the report

  Counter& operator[](DeshredCounter counter) { return counters[static_cast<size_t>(counter)]; }
};

class DeshredThread final : private DeshredSink {
 public:
  // One ring per worker. Returns nullptr and fills `error` if the thread cannot be started.
  static std::unique_ptr<DeshredThread> start(uint32_t workers, std::string& error);
  // The same without a thread: the caller calls take_turn(). `calls`: the clock to use.
  static std::unique_ptr<DeshredThread> create(uint32_t workers, const SocketCalls& calls);
  // Carries out the orders that wait and reads the rings. Returns false if there was nothing to do.
  // The thread itself.
  bool take_turn();
  ~DeshredThread();  // stops; the workers must have stopped before

  ShredRing& ring_of(uint32_t worker) { return *rings_[worker]; }
  RecoveredRing& recovered_of(uint32_t worker) { return *recovered_[worker]; }
  // Whether recovered shreds are returned to the workers.
  void return_recovered(bool wanted) {
    returns_recovered_.store(wanted, std::memory_order_relaxed);
  }

  // From now on, landings of these signatures are reported once per slot (forks). Recorded landings
  // are reported first, also for signatures that are already watched. Returns an error text, empty
  // on success; all or nothing.
  std::string watch(std::span<const TransactionSignature> signatures);
  void unwatch(std::span<const TransactionSignature> signatures);
  size_t drain(Landing* out, size_t max);
  // Notified when landings wait, or messages of streams. Each notifier must outlive the thread;
  // nullptr removes it. It is notified at once if something waits.
  void set_notifier(WakeUpNotifier* notifier);
  void set_stream_notifier(WakeUpNotifier* notifier);
  // Moves messages of streams to `out`; see StreamRing.
  size_t drain_streams(uint8_t* out, size_t max, size_t enough);
  Streams& streams() { return streams_; }
  const DeshredCounters& counters() const { return *counters_; }

 private:
  struct WatchOrder {
    bool add;
    TransactionSignature signature;
  };

  DeshredThread(uint32_t workers, const SocketCalls& calls);
  void run();
  bool read_shreds();
  void apply_watch_orders();
  void report(Landing landing);
  void report_restarts();
  void publish_counts();

  void on_entry(const BatchPlace& place, const Entry&) override {
    if (place.batch_index == 0) has_plain_blocks_ = true;
  }
  void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) override;
  void on_marker(const BatchPlace& place, const BlockMarker& marker) override;
  void on_recovered(const FecSet& set, uint64_t missing) override;
  void add_forwardable(const QueuedShred& queued, const Shred& shred);
  void hand_back(const FecSet& set, uint64_t missing);

  // Gets the shreds of sources that are forwarded, so that no recovered shred that is sent contains
  // a byte of the others. Needed after the first shred for own use only; until then `deshredder_`
  // has the same shreds.
  struct ForwardableRecovery final : DeshredSink {
    explicit ForwardableRecovery(DeshredThread& owner)
        : thread(owner), deshredder({.reads_batches = false}, *this) {}
    void on_entry(const BatchPlace&, const Entry&) override {}
    void on_transaction(const BatchPlace&, const EntryTransaction&) override {}
    void on_marker(const BatchPlace&, const BlockMarker&) override {}
    void on_recovered(const FecSet& set, uint64_t missing) override {
      thread.hand_back(set, missing);
    }
    DeshredThread& thread;
    Deshredder deshredder;
  };

  const SocketCalls& calls_;
  std::vector<std::unique_ptr<ShredRing>> rings_;
  std::vector<std::unique_ptr<RecoveredRing>> recovered_;
  RecoveredRing* recovered_ring_ = nullptr;  // ring of the worker whose shreds are being read
  std::atomic<bool> returns_recovered_{false};
  std::unique_ptr<DeshredCounters> counters_;
  Deshredder deshredder_;
  std::unique_ptr<ForwardableRecovery> forwardable_;  // nullptr: no shred was for own use yet
  WatchList watch_list_;
  RecentLandings recent_;
  SlotRestarts restarts_;
  bool has_plain_blocks_ = false;  // a block began without a marker
  bool has_markers_ = false;       // a block contained a marker
  LandingRing landings_;
  WakeUp landing_wake_up_;
  Streams streams_;
  WakeUp stream_wake_up_;

  std::mutex orders_mutex_;
  std::vector<WatchOrder> orders_;  // guarded by the mutex
  std::atomic<bool> orders_waiting_{false};
  std::vector<WatchOrder> orders_in_progress_;  // used by the deshred thread only
  std::atomic<size_t> reserved_{0};             // signatures watched or queued to be watched

  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace shredway
