// Deshred thread: the relay's own eyes on the chain, beside the path of the packets.
//
// Workers leave a copy of every new shred in a ring when it has gone out to the destinations; one
// thread of lower priority deshreds them and reports the transactions whose signatures are watched.
// It looks at the rings by itself, several times a millisecond while somebody waits for a signature
// and less often otherwise, so that it costs the workers one copy and no system call; a full ring
// loses shreds (counted by the worker), which the FEC sets' redundancy mostly hides. Control calls
// come from one thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "deshred/deshredder.h"
#include "net/thread.h"
#include "relay/histogram.h"
#include "relay/landings.h"
#include "relay/spsc_ring.h"
#include "system/named_enum.h"

namespace shredway {

// One shred on its way from a worker to the deshred thread. The packet is authentic and cut to the
// shred's own length, 1203 or 1228 bytes.
struct HandedShred {
  uint64_t received_ns;
  uint8_t packet[kPacketBytesMax];
};
inline constexpr size_t kHandedShredsMax = 4096;  // 5 MB; 0.4 s at 10,000 shreds a second
using ShredRing = SpscRing<HandedShred, kHandedShredsMax>;
// The way back: recovered shreds for the worker that the set's other shreds came from.
inline constexpr size_t kRecoveredShredsMax = 1024;
using RecoveredRing = SpscRing<HandedShred, kRecoveredShredsMax>;

// X(name): besides what the deshredder counts.
#define SHREDWAY_DESHRED_COUNTERS(X)                                                       \
  SHREDWAY_DESHRED_COUNTS(X)                                                               \
  X(shreds_handed_back) /* recovered shreds on their way to destinations that want them */ \
  X(landings)           /* sights of watched transactions that were reported */            \
  X(landings_lost)      /* sights that found the ring of reports full */                   \
  X(watched)            /* signatures on the watch-list now; not a sum */                  \
  X(cpu_ns)             /* processor time of the thread */

SHREDWAY_NAMED_ENUM(DeshredCounter, uint8_t, kDeshredCounterCount, deshred_counter_name,
                    SHREDWAY_DESHRED_COUNTERS)

struct DeshredCounters {
  std::array<Counter, kDeshredCounterCount> counters;
  Histogram report_latency;  // ns from the receive time of the last needed shred to the report

  Counter& operator[](DeshredCounter counter) { return counters[static_cast<size_t>(counter)]; }
};

// Told, on the deshred thread, that landings wait; not again before they were drained.
class LandingNotifier {
 public:
  virtual void notify() = 0;

 protected:
  ~LandingNotifier() = default;
};

class DeshredThread final : private DeshredSink {
 public:
  // One ring for each worker. Returns nullptr and fills `error` when the thread cannot be had.
  static std::unique_ptr<DeshredThread> start(uint32_t workers, std::string& error);
  ~DeshredThread();  // stops; the workers have stopped before

  ShredRing& ring_of(uint32_t worker) { return *rings_[worker]; }
  RecoveredRing& recovered_of(uint32_t worker) { return *recovered_[worker]; }
  // Whether recovered shreds are handed back to the workers.
  void hand_back(bool wanted) { hands_back_.store(wanted, std::memory_order_relaxed); }

  // Signatures whose sights are reported from now on, once for each slot (forks), first those that
  // are recorded; these also when it is watched already. Returns an error text, empty on success;
  // all or nothing.
  std::string watch(std::span<const TransactionSignature> signatures);
  void unwatch(std::span<const TransactionSignature> signatures);
  size_t drain(Landing* out, size_t max);
  // `notifier` must outlive the thread; nullptr: nobody. It is notified at once when landings wait
  // already.
  void set_notifier(LandingNotifier* notifier);
  const DeshredCounters& counters() const { return *counters_; }

 private:
  struct WatchOrder {
    bool add;
    TransactionSignature signature;
  };

  explicit DeshredThread(uint32_t workers);
  void run();
  bool take_shreds();
  void take_orders();
  void report(const Landing& landing);
  void publish_counts();

  void on_entry(const BatchPlace&, const Entry&) override {}
  void on_transaction(const BatchPlace& place, const EntryTransaction& transaction) override;
  void on_marker(const BatchPlace&, const BlockMarker&) override {}
  void on_recovered(const FecSet& set, uint64_t missing) override;

  std::vector<std::unique_ptr<ShredRing>> rings_;
  std::vector<std::unique_ptr<RecoveredRing>> recovered_;
  RecoveredRing* recovered_now_ = nullptr;  // of the worker whose shreds are being read
  std::atomic<bool> hands_back_{false};
  std::unique_ptr<DeshredCounters> counters_;
  Deshredder deshredder_;
  WatchList watch_list_;
  RecentLandings recent_;
  LandingRing landings_;
  std::atomic<LandingNotifier*> notifier_{nullptr};
  std::atomic<bool> is_notified_{false};

  std::mutex orders_mutex_;
  std::vector<WatchOrder> orders_;  // under the mutex
  std::atomic<bool> orders_wait_{false};
  std::vector<WatchOrder> orders_taken_;  // the thread's own
  std::atomic<size_t> promised_{0};       // signatures on the list, and those on their way to it

  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace shredway
