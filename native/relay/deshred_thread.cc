#include "relay/deshred_thread.h"

#include "system/privileges.h"
#include "transaction/vote.h"

namespace shredway {
namespace {

// Polling intervals of the rings: while shreds arrive and somebody reads streams, or signatures are
// watched, or neither (a history may be recorded), and after no shred arrived for a while. Each
// poll disturbs the thread that runs on the processor.
constexpr uint32_t kStreamPollInterval_us = 100;
constexpr uint32_t kPollInterval_us = 200;
constexpr uint32_t kUnwatchedPollInterval_us = 1000;
constexpr uint32_t kIdlePollInterval_us = 2000;
constexpr uint32_t kEmptyPollsUntilIdle = 250;
constexpr size_t kShredsPerTurn = 256;  // shreds read from one ring before the other rings are read

}  // namespace

DeshredThread::DeshredThread(uint32_t workers, const SocketCalls& calls)
    : calls_(calls),
      counters_(std::make_unique<DeshredCounters>()),
      deshredder_({}, *this),
      watch_list_(random_hash_key()),
      recent_(random_hash_key()) {
  for (uint32_t i = 0; i < workers; i++) {
    rings_.push_back(std::make_unique<ShredRing>());
    recovered_.push_back(std::make_unique<RecoveredRing>());
  }
}

std::unique_ptr<DeshredThread> DeshredThread::start(uint32_t workers, std::string& error) {
  std::unique_ptr<DeshredThread> thread = create(workers, system_socket_calls());
  error = thread->thread_.start<&DeshredThread::run>(thread.get(), "shredway-see");
  return error.empty() ? std::move(thread) : nullptr;
}

std::unique_ptr<DeshredThread> DeshredThread::create(uint32_t workers, const SocketCalls& calls) {
  return std::unique_ptr<DeshredThread>(new DeshredThread(workers, calls));
}

DeshredThread::~DeshredThread() {
  stopping_.store(true, std::memory_order_relaxed);
  thread_.join();
}

// ---- the thread -----------------------------------------------------------------------------

void DeshredThread::run() {
  drop_privileges_of_this_thread();
  yield_to_others();
  sleep_precisely();
  uint32_t empty_polls = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    if (take_turn()) {
      empty_polls = 0;
      continue;
    }
    const bool idle = ++empty_polls > kEmptyPollsUntilIdle;
    const bool watched =
        watch_list_.size() > 0 || returns_recovered_.load(std::memory_order_relaxed);
    sleep_for_us(idle                 ? kIdlePollInterval_us
                 : streams_.is_live() ? kStreamPollInterval_us
                 : watched            ? kPollInterval_us
                                      : kUnwatchedPollInterval_us);
  }
}

bool DeshredThread::take_turn() {
  apply_watch_orders();
  streams_.update();
  report_restarts();
  const bool replayed = streams_.replay_some();
  if (streams_.take_written()) stream_wake_up_.notify();
  if (!read_shreds()) return replayed;
  publish_counts();
  return true;
}

// Returns false if all rings were empty.
bool DeshredThread::read_shreds() {
  bool any = false;
  for (size_t worker = 0; worker < rings_.size(); worker++) {
    const auto& ring = rings_[worker];
    recovered_ring_ = recovered_[worker].get();
    const size_t count = std::min(ring->waiting(), kShredsPerTurn);
    streams_.update();  // filters that were published before a shred arrived apply to it
    for (size_t i = 0; i < count; i++) {
      const QueuedShred& queued = ring->front(i);
      Shred shred;
      if (check_packet(queued.packet, sizeof queued.packet, shred) != Verdict::first) continue;
      if (!queued.is_forwardable && !forwardable_)
        forwardable_ = std::make_unique<ForwardableRecovery>(*this);
      if (queued.is_new) deshredder_.add(queued.packet, shred, queued.received_ns);
      if (queued.is_forwardable) add_forwardable(queued, shred);
      streams_.see(shred);
      if (queued.tiers && streams_.is_active())
        streams_.add(queued.packet, shred, queued.tiers, queued.received_ns);
      // The first message of a long turn does not wait for the last one.
      if (streams_.take_written()) stream_wake_up_.notify();
    }
    ring->release(count);
    any |= count > 0;
  }
  return any;
}

void DeshredThread::add_forwardable(const QueuedShred& queued, const Shred& shred) {
  if (!forwardable_ || !returns_recovered_.load(std::memory_order_relaxed)) return;
  forwardable_->deshredder.add(queued.packet, shred, queued.received_ns);
}

void DeshredThread::on_recovered(const FecSet& set, uint64_t missing) {
  if (!forwardable_) hand_back(set, missing);
}

// A shred that finds the ring full is not returned. Destinations get the real shred if it arrives.
void DeshredThread::hand_back(const FecSet& set, uint64_t missing) {
  if (!returns_recovered_.load(std::memory_order_relaxed)) return;
  size_t queued = 0;
  for (uint8_t leaf = 0; leaf < kFecSetLeaves; leaf++) {
    if (!(missing >> leaf & 1)) continue;
    QueuedShred* to = recovered_ring_->place(queued);
    if (!to) break;
    to->received_ns = 0;
    std::memcpy(to->packet, set.packet(leaf), leaf_shred_bytes(leaf));
    queued++;
  }
  recovered_ring_->publish(queued);
  (*counters_)[DeshredCounter::shreds_handed_back].add(queued);
}

void DeshredThread::on_transaction(const BatchPlace& place, const EntryTransaction& entry) {
  if (entry.transaction.signature_count == 0) return;
  const uint8_t* signature = entry.bytes + entry.transaction.signatures_begin;
  if (place.batch_index < restarts_.begin_of(place.slot))
    return (*counters_)[DeshredCounter::abandoned].add(1);
  const bool is_watched = watch_list_.record_landing(signature, place.slot, place.batch_index);
  if (!is_watched && is_simple_vote(entry.bytes, entry.transaction)) return;
  Landing landing{
      place.slot, place.arrival_ns, place.batch_index, entry.ordinal, place.shred_index, 0, {}};
  std::memcpy(landing.signature.data(), signature, landing.signature.size());
  if (is_watched) report(landing);
  landing.flags = kBeforeWatch;
  recent_.record(landing);
}

void DeshredThread::on_marker(const BatchPlace& place, const BlockMarker& marker) {
  has_markers_ = true;
  if (is_update_parent(marker)) restarts_.add(place.slot, place.batch_index, place.arrival_ns);
}

void DeshredThread::report(Landing landing) {
  DeshredCounters& counters = *counters_;
  if (has_markers_ || !has_plain_blocks_) landing.flags |= kMayRestart;
  if (!landings_.push(landing)) return counters[DeshredCounter::landings_lost].add(1);
  counters[DeshredCounter::landings].add(1);
  if (!(landing.flags & kBeforeWatch)) {
    const uint64_t now_ns = calls_.clock_ns(CLOCK_REALTIME);
    if (now_ns > landing.arrival_ns) counters.report_latency.record(now_ns - landing.arrival_ns);
  }
  landing_wake_up_.notify();
}

// After the landings that they withdraw, because one ring has both. A full ring loses no restart:
// it is reported later.
void DeshredThread::report_restarts() {
  restarts_.report([this](const SlotRestarts::Restart& restart) {
    if (!landings_.push(
            {restart.slot, restart.arrival_ns, restart.batch_index, 0, 0, kRestart, {}}))
      return false;
    (*counters_)[DeshredCounter::restarts].add(1);
    landing_wake_up_.notify();
    return true;
  });
}

void DeshredThread::apply_watch_orders() {
  if (!orders_waiting_.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard lock(orders_mutex_);
    orders_in_progress_.swap(orders_);
    orders_waiting_.store(false, std::memory_order_relaxed);
  }
  for (const WatchOrder& order : orders_in_progress_) {
    if (!order.add) {
      if (watch_list_.remove(order.signature)) reserved_.fetch_sub(1, std::memory_order_relaxed);
    } else {
      if (!watch_list_.add(order.signature))
        reserved_.fetch_sub(1, std::memory_order_relaxed);  // it is already watched
      recent_.find(order.signature.data(), [&](const Landing& landing) {
        if (landing.batch_index >= restarts_.begin_of(landing.slot)) report(landing);
      });
    }
  }
  orders_in_progress_.clear();
  (*counters_)[DeshredCounter::watched].set(watch_list_.size());
}

void DeshredThread::publish_counts() {
  DeshredCounters& counters = *counters_;
  const DeshredCounts& counts = deshredder_.counts();
#define X(name) counters[DeshredCounter::name].set(counts.name);
  SHREDWAY_DESHRED_COUNTS(X)
#undef X
  counters[DeshredCounter::stream_messages].set(streams_.messages());
  counters[DeshredCounter::stream_repeated].set(streams_.repeated());
  counters[DeshredCounter::stream_lost].set(streams_.lost());
  const LookupResolver& lookups = streams_.lookups();
  counters[DeshredCounter::stream_lookups].set(lookups.transactions());
  counters[DeshredCounter::stream_unresolved].set(lookups.unresolved());
  counters[DeshredCounter::stream_lookup_reports_lost].set(lookups.reports_lost());
  counters[DeshredCounter::cpu_ns].set(calls_.clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

// ---- control --------------------------------------------------------------------------------

std::string DeshredThread::watch(std::span<const TransactionSignature> signatures) {
  const size_t reserved = reserved_.load(std::memory_order_relaxed);
  if (reserved + signatures.size() > WatchList::kSignaturesMax)
    return "expected at most " + std::to_string(WatchList::kSignaturesMax) +
           " watched signatures, got " + std::to_string(signatures.size()) + " more than the " +
           std::to_string(reserved) + " that are watched";
  reserved_.fetch_add(signatures.size(), std::memory_order_relaxed);
  const std::lock_guard lock(orders_mutex_);
  for (const TransactionSignature& signature : signatures) orders_.push_back({true, signature});
  orders_waiting_.store(true, std::memory_order_release);
  return "";
}

void DeshredThread::unwatch(std::span<const TransactionSignature> signatures) {
  const std::lock_guard lock(orders_mutex_);
  for (const TransactionSignature& signature : signatures) orders_.push_back({false, signature});
  orders_waiting_.store(true, std::memory_order_release);
}

void DeshredThread::set_notifier(WakeUpNotifier* notifier) {
  landing_wake_up_.set(notifier, [this] { return landings_.waiting() > 0; });
}

void DeshredThread::set_stream_notifier(WakeUpNotifier* notifier) {
  stream_wake_up_.set(notifier, [this] { return streams_.message_ring().next_bytes() > 0; });
}

size_t DeshredThread::drain_streams(uint8_t* out, size_t max, size_t enough) {
  stream_wake_up_.begin_drain();
  return streams_.message_ring().drain(out, max, enough);
}

size_t DeshredThread::drain(Landing* out, size_t max) {
  landing_wake_up_.begin_drain();
  size_t count = 0;
  while (count < max && landings_.pop(out[count])) count++;
  return count;
}

}  // namespace shredway
