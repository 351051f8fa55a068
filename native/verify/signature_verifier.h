// Signature verifier: does every signature of a transaction hold? Asked on the event loop, answered
// by threads of its own.
//
// One thread submits and drains; the verifier's threads take jobs in the order in which they came,
// and results come as they are found. Bounded: a job has a slot of its own from submit() until its
// result is drained, and all slots are there from the start. Idle threads sleep; whoever is awake
// wakes the next one when more is waiting than it can take, so that the submitting thread pays for
// a wake-up only when all sleep. The checks are the network's strict ones (crypto/ed25519.h).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "crypto/ed25519.h"
#include "net/thread.h"
#include "transaction/wire.h"

namespace shredway {

enum class VerifyOutcome : uint32_t {
  invalid,    // no transaction, or not all of its signatures hold
  valid,      // all of them hold
  cancelled,  // the verifier was stopped before it was known
};

// As the control plane reads it.
struct VerifyResult {
  uint32_t ticket;
  VerifyOutcome outcome;
};
static_assert(sizeof(VerifyResult) == 8);

inline constexpr uint32_t kVerifierThreadsMax = 64;
inline constexpr uint32_t kVerifierQueueMax = 65'536;

// Told, on one of the verifier's threads, that results wait; not again before they were drained.
class VerifierNotifier {
 public:
  virtual void notify() = 0;

 protected:
  ~VerifierNotifier() = default;
};

// Public keys made ready once: signers come again, and with some libraries the making costs a tenth
// of a check. One per thread. A newer key takes the place of an older one.
class VerifyingKeys {
 public:
  VerifyingKeys();
  const VerifyingKey& of(const uint8_t* key);

 private:
  static constexpr size_t kKeys = 256;
  std::vector<VerifyingKey> keys_;
  uint64_t multiplier_;  // secret: nobody can choose keys that drive out a certain other one
};

// Whether these bytes are one transaction and each of its signatures holds. Stops at the first one
// that does not.
bool verify_signatures(const uint8_t* bytes, size_t length, VerifyingKeys& keys);

class SignatureVerifier {
 public:
  // 1 to kVerifierThreadsMax threads, at most `queue_max` (1 to kVerifierQueueMax) jobs of which
  // the result was not drained. Returns nullptr and fills `error` when a thread cannot be had.
  static std::unique_ptr<SignatureVerifier> open(uint32_t threads, uint32_t queue_max,
                                                 std::string& error);
  ~SignatureVerifier();  // stops

  // Copies the bytes, at most kTransactionV1BytesMax of them (longer ones are invalid). False: the
  // queue is full, or the verifier has stopped.
  bool submit(uint32_t ticket, const uint8_t* bytes, size_t length);
  // Takes results out, in the order in which they were found.
  size_t drain(VerifyResult* out, size_t max);
  // `notifier` must live until stop() has returned; nullptr: nobody. It is notified at once when
  // results wait already.
  void set_notifier(VerifierNotifier* notifier);
  // Ends the threads; what they had not finished can be drained as cancelled. May be called again.
  void stop();

 private:
  struct Slot {
    uint32_t ticket;
    VerifyOutcome outcome;
    uint32_t length;
    std::array<uint8_t, kTransactionV1BytesMax> bytes;
  };
  // First in, first out, of slot numbers; each is in at most one, so that it cannot overflow.
  class SlotQueue {
   public:
    explicit SlotQueue(size_t slots) : places_(slots) {}
    bool empty() const { return count_ == 0; }
    void push(uint32_t slot) { places_[(first_ + count_++) % places_.size()] = slot; }
    uint32_t pop() {
      const uint32_t slot = places_[first_];
      first_ = (first_ + 1) % places_.size();
      count_--;
      return slot;
    }

   private:
    std::vector<uint32_t> places_;
    size_t first_ = 0, count_ = 0;
  };

  SignatureVerifier(uint32_t threads, uint32_t queue_max);
  void run();
  bool take(std::unique_lock<std::mutex>& lock, uint32_t& slot);
  bool call_for_help();

  const std::unique_ptr<Slot[]> slots_;
  std::vector<uint32_t> free_;  // the submitting thread's own

  std::mutex mutex_;  // over all that follows up to `notifier_`
  std::condition_variable wake_;
  SlotQueue waiting_, finished_;
  uint32_t awake_;       // threads that do not sleep, those that were called included
  uint32_t called_ = 0;  // threads that were woken and have not noticed yet
  bool stopping_ = false;
  bool is_notified_ = false;
  VerifierNotifier* notifier_ = nullptr;

  const uint32_t thread_count_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace shredway
