// Signature verifier: verifies all signatures of a transaction on its own threads, for the event
// loop.
//
// One thread submits and drains. The verifier's threads take jobs in the order of submission and
// publish results as they finish. Bounded: a job occupies a slot from submit() until its result is
// drained, and all slots are allocated at the start. Idle threads sleep. An awake thread wakes the
// next one if more jobs wait than it can take, so that the submitting thread pays for a wake-up
// only if all sleep. The checks are Solana's strict ones (crypto/ed25519.h).
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
#include "crypto/prepared_key.h"
#include "net/thread.h"
#include "transaction/wire.h"

namespace shredway {

enum class VerifyOutcome : uint32_t {
  invalid,    // not a transaction, or a signature is invalid
  valid,      // all signatures are valid
  cancelled,  // the verifier stopped before the check
};

// In the layout that the control plane reads.
struct VerifyResult {
  uint32_t ticket;
  VerifyOutcome outcome;
};
static_assert(sizeof(VerifyResult) == 8);

inline constexpr uint32_t kVerifierThreadsMax = 64;
inline constexpr uint32_t kVerifierQueueMax = 65'536;

// Notified on a verifier thread when results wait; not again before they are drained.
class VerifierNotifier {
 public:
  virtual void notify() = 0;

 protected:
  ~VerifierNotifier() = default;
};

// Cache of public keys, because signers recur. With some libraries, the import of a key costs a
// tenth of a verification. A key that has verified kValidToPrepare signatures is prepared, which
// makes its checks more than twice as fast (crypto/prepared_key.h). One cache per thread, of at
// most 5 MiB. A newer key replaces an older one; it
// replaces a prepared one only if that is used rarely.
class VerifyingKeys {
 public:
  static constexpr uint32_t kValidToPrepare = 16;

  VerifyingKeys();
  explicit VerifyingKeys(uint64_t multiplier);  // for tests; odd
  // True if the signature is valid. `key` has 32 bytes.
  bool verify(const uint8_t* key, const uint8_t* signature, const uint8_t* message,
              size_t message_bytes);
  bool is_prepared(const PublicKey& key) const;  // for tests

 private:
  static constexpr size_t kKeys = 256, kPreparedKeys = 64;
  struct Place {
    VerifyingKey key;
    uint32_t valid = 0;  // signatures of this key
  };
  struct Prepared {
    std::unique_ptr<const PreparedKey> key;
    uint32_t uses = 0;  // halved whenever another key would take the place
  };
  size_t place_of(const uint8_t* key) const;
  static void prepare(Prepared& place, const PublicKey& key);

  std::vector<Place> places_;
  std::array<Prepared, kPreparedKeys> prepared_;
  const uint64_t multiplier_;  // secret, so that nobody can choose keys that evict a certain key
};

// True if the bytes are one transaction and all its signatures are valid. Stops at the first
// invalid one.
bool verify_signatures(const uint8_t* bytes, size_t length, VerifyingKeys& keys);

class SignatureVerifier {
 public:
  // Starts 1 to kVerifierThreadsMax threads for at most `queue_max` (1 to kVerifierQueueMax) jobs
  // that are not drained. Returns nullptr and fills `error` if a thread cannot be started.
  static std::unique_ptr<SignatureVerifier> open(uint32_t threads, uint32_t queue_max,
                                                 std::string& error);
  ~SignatureVerifier();  // stops

  // Copies the bytes, at most kTransactionV1BytesMax of them (longer ones are invalid). Returns
  // false if the queue is full or the verifier has stopped.
  bool submit(uint32_t ticket, const uint8_t* bytes, size_t length);
  // Checks the signatures on the calling thread, which must be the one that submits. Needs no queue
  // place.
  bool verify_now(const uint8_t* bytes, size_t length);
  // Removes results in the order in which they were found.
  size_t drain(VerifyResult* out, size_t max);
  // `notifier` must live until stop() has returned; nullptr removes it. It is notified at once if
  // results wait.
  void set_notifier(VerifierNotifier* notifier);
  // Ends the threads; unfinished jobs can be drained as cancelled. May be called repeatedly.
  void stop();

 private:
  struct Slot {
    uint32_t ticket;
    VerifyOutcome outcome;
    uint32_t length;
    std::array<uint8_t, kTransactionV1BytesMax> bytes;
  };
  // First-in-first-out queue of slot indexes. Each slot is in at most one queue, so that none can
  // overflow.
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
  std::vector<uint32_t> free_;  // used by the submitting thread only
  VerifyingKeys own_keys_;      // of the submitting thread

  std::mutex mutex_;  // guards all following members up to `notifier_`
  std::condition_variable wake_;
  SlotQueue waiting_, finished_;
  uint32_t awake_;       // threads that are awake or have been woken
  uint32_t called_ = 0;  // woken threads that have not run yet
  bool stopping_ = false;
  bool is_notified_ = false;
  VerifierNotifier* notifier_ = nullptr;

  const uint32_t thread_count_;
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace shredway
