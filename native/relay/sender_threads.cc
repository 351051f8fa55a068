#include "relay/sender_threads.h"

#include <sched.h>

#include <algorithm>

#include "system/privileges.h"

namespace shredway {
namespace {

// Targets that a thread takes at a time: one system call for a single shred. Threads finish at
// most one such piece apart. Calls of 8 messages cost 4 % more per datagram than calls of 64.
constexpr uint32_t kTargetsPerClaim = 16;
// About 40 us. The thread that the worker waits for may need the worker's processor.
constexpr uint32_t kPausesUntilYield = 1000;
constexpr uint32_t kPausesPerClockRead = 64;

}  // namespace

struct SenderThreads::Sender {
  Sender(SenderThreads& the_owner, size_t the_share, const SendSockets& sockets,
         SendObserver& observer, const SocketCalls& the_calls)
      : owner(the_owner), share(the_share), calls(the_calls), batch(sockets, observer, the_calls) {}
  ~Sender();
  void run();
  void wait();
  void post();
  bool take_back();

  SenderThreads& owner;
  const size_t share;
  const SocketCalls& calls;
  TargetBatch batch;
  // Written by both threads: worker: posted, taken back, stopping; sender: asleep, sending, done.
  alignas(64) std::atomic<State> state{State::polling};
  Thread thread;
};

SenderThreads::SenderThreads(const SenderThreadsOptions& options, const SendSockets& sockets,
                             SendObserver& observer, const SocketCalls& calls)
    : shares_(options.count + 1), poll_us_(options.poll_us) {
  for (uint32_t i = 0; i < options.count; i++)
    senders_.push_back(std::make_unique<Sender>(*this, i + 1, sockets, observer, calls));
}

std::unique_ptr<SenderThreads> SenderThreads::start(const SenderThreadsOptions& options,
                                                    const SendSockets& sockets,
                                                    SendObserver& observer,
                                                    const SocketCalls& calls, std::string& error) {
  std::unique_ptr<SenderThreads> threads(new SenderThreads(options, sockets, observer, calls));
  for (const auto& sender : threads->senders_) {
    error = sender->thread.start<&Sender::run>(
        sender.get(),
        "shredway-" + std::to_string(options.worker) + "-s" + std::to_string(sender->share));
    if (!error.empty()) return nullptr;
  }
  return threads;
}

SenderThreads::~SenderThreads() = default;

// ---- a thread -------------------------------------------------------------------------------

void SenderThreads::Sender::run() {
  drop_privileges_of_this_thread();
  for (;;) {
    wait();
    State seen = State::posted;
    if (state.compare_exchange_strong(seen, State::sending, std::memory_order_acquire)) {
      owner.send_shares(share, batch);
      state.store(State::polling, std::memory_order_release);
    } else if (seen == State::stopping) {
      return;
    }
  }
}

// Returns when the state is neither polling nor asleep.
void SenderThreads::Sender::wait() {
  const auto is_polling = [this] {
    return state.load(std::memory_order_relaxed) == State::polling;
  };
  const uint64_t poll_ns = uint64_t{owner.poll_us_} * 1000;
  const uint64_t begin_ns = poll_ns > 0 ? calls.clock_ns(CLOCK_MONOTONIC) : 0;
  while (poll_ns > 0 && is_polling() && calls.clock_ns(CLOCK_MONOTONIC) - begin_ns < poll_ns)
    for (uint32_t i = 0; i < kPausesPerClockRead && is_polling(); i++) pause_briefly();
  State seen = State::polling;
  if (!state.compare_exchange_strong(seen, State::asleep, std::memory_order_relaxed)) return;
  state.wait(State::asleep, std::memory_order_relaxed);
}

// ---- the worker -----------------------------------------------------------------------------

SenderThreads::Sender::~Sender() {
  state.store(State::stopping, std::memory_order_release);
  state.notify_one();
  thread.join();
}

void SenderThreads::Sender::post() {
  const State before = state.exchange(State::posted, std::memory_order_acq_rel);
  if (before == State::asleep) state.notify_one();
}

// Returns false after the thread has ended its work, true if it had not begun: it then will not.
bool SenderThreads::Sender::take_back() {
  State seen = State::posted;
  if (state.compare_exchange_strong(seen, State::polling, std::memory_order_acquire)) return true;
  for (uint32_t pauses = 0; state.load(std::memory_order_acquire) == State::sending; pauses++) {
    if (pauses < kPausesUntilYield) pause_briefly();
    else sched_yield();
  }
  return false;
}

void SenderThreads::send_to_all(std::span<const TransmitTarget> targets,
                                const TransmitGroups& groups, uint32_t rotation, TargetBatch& own) {
  targets_ = targets;
  groups_ = &groups;
  rotation_ = rotation;
  divide(targets.size());
  for (const auto& sender : senders_) sender->post();
  send_shares(0, own);
  for (const auto& sender : senders_) late_ += sender->take_back();
  sends_++;
}

// No thread reads the shares now.
void SenderThreads::divide(size_t target_count) {
  const size_t parts = shares_.size();
  for (size_t i = 0; i < parts; i++) {
    const size_t first = target_count * i / parts;
    shares_[i].claimed.store(0, std::memory_order_relaxed);
    shares_[i].first = static_cast<uint32_t>(first);
    shares_[i].count = static_cast<uint32_t>(target_count * (i + 1) / parts - first);
  }
}

// ---- both -----------------------------------------------------------------------------------

// The own share first, then what is left of the others.
void SenderThreads::send_shares(size_t own_share, TargetBatch& batch) {
  batch.alternate(rotation_);
  for (size_t i = 0; i < shares_.size(); i++)
    send_share(shares_[(own_share + i) % shares_.size()], batch);
}

void SenderThreads::send_share(Share& share, TargetBatch& batch) {
  for (;;) {
    const uint32_t begin = share.claimed.fetch_add(kTargetsPerClaim, std::memory_order_relaxed);
    if (begin >= share.count) return;
    const uint32_t end = std::min(begin + kTargetsPerClaim, share.count);
    const uint32_t start = rotation_ % share.count;  // first: a sum with the rotation may overflow
    for (uint32_t i = begin; i < end; i++)
      batch.add(targets_[share.first + (start + i) % share.count], *groups_);
    batch.flush();
  }
}

// ---- counts ---------------------------------------------------------------------------------

void SenderThreads::forget_refusals() {
  for (const auto& sender : senders_) sender->batch.forget_refusals();
}

uint64_t SenderThreads::cpu_ns() const {
  uint64_t sum_ns = 0;
  for (const auto& sender : senders_) sum_ns += sender->thread.cpu_ns();
  return sum_ns;
}

uint64_t SenderThreads::system_calls() const {
  uint64_t sum = 0;
  for (const auto& sender : senders_) sum += sender->batch.system_calls();
  return sum;
}

uint64_t SenderThreads::gso_fallbacks() const {
  uint64_t sum = 0;
  for (const auto& sender : senders_) sum += sender->batch.gso_fallbacks();
  return sum;
}

void SenderThreads::lock_memory(MemoryLock& lock) const {
  lock.add(this, sizeof *this);
  lock.add(shares_.data(), shares_.size() * sizeof(Share));
  for (const auto& sender : senders_) {
    lock.add(sender.get(), sizeof *sender);
    sender->batch.lock_memory(lock);
    sender->thread.lock_memory(lock);
  }
}

}  // namespace shredway
