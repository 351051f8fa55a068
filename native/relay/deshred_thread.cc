#include "relay/deshred_thread.h"

#include <random>

#include "system/privileges.h"

namespace shredway {
namespace {

// Between two looks at the rings: while shreds come that somebody waits for, while they come and
// nobody does, and when none came for a while. The scheduler adds some 50 us. Each look disturbs
// whoever has the processor.
constexpr uint32_t kLookEvery_us = 200;
constexpr uint32_t kLookEveryForNobody_us = 1000;
constexpr uint32_t kLookEveryWhenQuiet_us = 2000;
constexpr uint32_t kEmptyLooksUntilQuiet = 250;
constexpr size_t kShredsAtOnce = 256;  // of one ring, before the others get their turn

HashKey random_key() {
  std::random_device device;
  const auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

}  // namespace

DeshredThread::DeshredThread(uint32_t workers)
    : counters_(std::make_unique<DeshredCounters>()),
      deshredder_({}, *this),
      watch_list_(random_key()),
      recent_(random_key()) {
  for (uint32_t i = 0; i < workers; i++) {
    rings_.push_back(std::make_unique<ShredRing>());
    recovered_.push_back(std::make_unique<RecoveredRing>());
  }
}

std::unique_ptr<DeshredThread> DeshredThread::start(uint32_t workers, std::string& error) {
  std::unique_ptr<DeshredThread> thread(new DeshredThread(workers));
  error = thread->thread_.start<&DeshredThread::run>(thread.get(), "shredway-see");
  return error.empty() ? std::move(thread) : nullptr;
}

DeshredThread::~DeshredThread() {
  stopping_.store(true, std::memory_order_relaxed);
  thread_.join();
}

// ---- the thread -----------------------------------------------------------------------------

void DeshredThread::run() {
  drop_privileges_of_this_thread();
  yield_to_others();
  uint32_t empty_looks = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    take_orders();
    if (take_shreds()) {
      empty_looks = 0;
      publish_counts();
      continue;
    }
    const bool quiet = ++empty_looks > kEmptyLooksUntilQuiet;
    const bool awaited = watch_list_.size() > 0 || hands_back_.load(std::memory_order_relaxed);
    sleep_for_us(quiet ? kLookEveryWhenQuiet_us : awaited ? kLookEvery_us : kLookEveryForNobody_us);
  }
}

// False when nothing was there.
bool DeshredThread::take_shreds() {
  bool any = false;
  for (size_t worker = 0; worker < rings_.size(); worker++) {
    const auto& ring = rings_[worker];
    recovered_now_ = recovered_[worker].get();
    const size_t count = std::min(ring->waiting(), kShredsAtOnce);
    for (size_t i = 0; i < count; i++) {
      const HandedShred& handed = ring->front(i);
      Shred shred;
      if (check_packet(handed.packet, sizeof handed.packet, shred) == Verdict::first)
        deshredder_.add(handed.packet, shred, handed.received_ns);
    }
    ring->release(count);
    any |= count > 0;
  }
  return any;
}

// What finds the ring full is not handed back: the real shred will come, or never.
void DeshredThread::on_recovered(const FecSet& set, uint64_t missing) {
  if (!hands_back_.load(std::memory_order_relaxed)) return;
  size_t handed = 0;
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    if (!(missing >> leaf & 1)) continue;
    HandedShred* to = recovered_now_->place(handed);
    if (!to) break;
    to->received_ns = 0;
    std::memcpy(to->packet, set.packet(leaf), leaf_shred_bytes(leaf));
    handed++;
  }
  recovered_now_->publish(handed);
  (*counters_)[DeshredCounter::shreds_handed_back].add(handed);
}

void DeshredThread::on_transaction(const BatchPlace& place, const EntryTransaction& seen) {
  if (seen.transaction.signature_count == 0) return;
  const uint8_t* signature = seen.bytes + seen.transaction.signatures_begin;
  const bool told = watch_list_.note_sight(signature, place.slot);
  if (!told && is_simple_vote(seen.bytes, seen.transaction)) return;
  Landing landing{place.slot, place.seen_ns, place.batch_index, seen.ordinal, place.shred_index, 0,
                  {}};
  std::memcpy(landing.signature.data(), signature, landing.signature.size());
  if (told) report(landing);
  landing.before_watch = 1;
  recent_.record(landing);
}

void DeshredThread::report(const Landing& landing) {
  DeshredCounters& counters = *counters_;
  if (!landings_.push(landing)) return counters[DeshredCounter::landings_lost].add(1);
  counters[DeshredCounter::landings].add(1);
  if (!landing.before_watch) {
    const uint64_t now_ns = clock_ns(CLOCK_REALTIME);
    if (now_ns > landing.seen_ns) counters.report_latency.record(now_ns - landing.seen_ns);
  }
  LandingNotifier* notifier = notifier_.load(std::memory_order_acquire);
  if (notifier && !is_notified_.exchange(true, std::memory_order_acq_rel)) notifier->notify();
}

void DeshredThread::take_orders() {
  if (!orders_wait_.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard lock(orders_mutex_);
    orders_taken_.swap(orders_);
    orders_wait_.store(false, std::memory_order_relaxed);
  }
  for (const WatchOrder& order : orders_taken_) {
    if (!order.add) {
      if (watch_list_.remove(order.signature)) promised_.fetch_sub(1, std::memory_order_relaxed);
    } else {
      if (!watch_list_.add(order.signature))
        promised_.fetch_sub(1, std::memory_order_relaxed);  // it was there already
      recent_.find(order.signature.data(), [&](const Landing& landing) { report(landing); });
    }
  }
  orders_taken_.clear();
  (*counters_)[DeshredCounter::watched].set(watch_list_.size());
}

void DeshredThread::publish_counts() {
  DeshredCounters& counters = *counters_;
  const DeshredCounts& counts = deshredder_.counts();
#define X(name) counters[DeshredCounter::name].set(counts.name);
  SHREDWAY_DESHRED_COUNTS(X)
#undef X
  counters[DeshredCounter::cpu_ns].set(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

// ---- control --------------------------------------------------------------------------------

std::string DeshredThread::watch(std::span<const TransactionSignature> signatures) {
  const size_t promised = promised_.load(std::memory_order_relaxed);
  if (promised + signatures.size() > WatchList::kSignaturesMax)
    return "expected at most " + std::to_string(WatchList::kSignaturesMax) +
           " watched signatures, got " + std::to_string(signatures.size()) + " more than the " +
           std::to_string(promised) + " that are watched";
  promised_.fetch_add(signatures.size(), std::memory_order_relaxed);
  const std::lock_guard lock(orders_mutex_);
  for (const TransactionSignature& signature : signatures) orders_.push_back({true, signature});
  orders_wait_.store(true, std::memory_order_release);
  return "";
}

void DeshredThread::unwatch(std::span<const TransactionSignature> signatures) {
  const std::lock_guard lock(orders_mutex_);
  for (const TransactionSignature& signature : signatures) orders_.push_back({false, signature});
  orders_wait_.store(true, std::memory_order_release);
}

void DeshredThread::set_notifier(LandingNotifier* notifier) {
  notifier_.store(notifier, std::memory_order_release);
  if (notifier && landings_.waiting() > 0) notifier->notify();
}

size_t DeshredThread::drain(Landing* out, size_t max) {
  // An exchange: whoever rang before it is seen by the pops below.
  is_notified_.exchange(false, std::memory_order_acq_rel);
  size_t count = 0;
  while (count < max && landings_.pop(out[count])) count++;
  return count;
}

}  // namespace shredway
