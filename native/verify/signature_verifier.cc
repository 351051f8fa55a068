#include "verify/signature_verifier.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "system/bytes.h"

namespace shredway {
namespace {

uint64_t random_word() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

// ---- one transaction ------------------------------------------------------------------------

VerifyingKeys::VerifyingKeys() : VerifyingKeys(random_word() | 1) {}

VerifyingKeys::VerifyingKeys(uint64_t multiplier) : multiplier_(multiplier) {
  places_.reserve(kKeys);
  for (size_t i = 0; i < kKeys; i++) places_.push_back({VerifyingKey(PublicKey{})});
}

size_t VerifyingKeys::place_of(const uint8_t* key) const {
  return (load_u64(key) * multiplier_ >> 32) % kKeys;
}

bool VerifyingKeys::verify(const uint8_t* key, const uint8_t* signature, const uint8_t* message,
                           size_t message_bytes) {
  PublicKey bytes;
  std::memcpy(bytes.data(), key, bytes.size());
  const size_t at = place_of(key);
  Prepared& prepared = prepared_[at % kPreparedKeys];
  if (prepared.key && prepared.key->bytes() == bytes) {
    prepared.uses++;
    return prepared.key->verify(signature, message, message_bytes);
  }
  Place& place = places_[at];
  if (place.key.bytes() != bytes) place = {VerifyingKey(bytes)};
  if (!place.key.verify(signature, message, message_bytes)) return false;
  if (++place.valid % kValidToPrepare == 0) prepare(prepared, bytes);
  return true;
}

// Preparing a key costs as much as several checks. So keys that are used alike do not replace each
// other all the time.
void VerifyingKeys::prepare(Prepared& place, const PublicKey& key) {
  if (place.uses >= kValidToPrepare) place.uses /= 2;
  else place = {PreparedKey::create(key), kValidToPrepare};
}

bool VerifyingKeys::is_prepared(const PublicKey& key) const {
  const auto& prepared = prepared_[place_of(key.data()) % kPreparedKeys].key;
  return prepared && prepared->bytes() == key;
}

bool verify_signatures(const uint8_t* bytes, size_t length, VerifyingKeys& keys) {
  Transaction transaction;
  if (parse_transaction(bytes, length, transaction) != ParseResult::complete) return false;
  if (transaction.bytes != length || transaction.signature_count == 0 ||
      transaction.signature_count != transaction.required_signatures ||
      transaction.signature_count > transaction.key_count)
    return false;
  const uint8_t* message = bytes + transaction.message_begin;
  const size_t message_bytes = size_t{transaction.message_end} - transaction.message_begin;
  for (size_t i = 0; i < transaction.signature_count; i++) {
    const uint8_t* key = bytes + transaction.keys_begin + i * kPublicKeyBytes;
    const uint8_t* signature =
        bytes + transaction.signatures_begin + i * kTransactionSignatureBytes;
    if (!keys.verify(key, signature, message, message_bytes)) return false;
  }
  return true;
}

// ---- the threads ----------------------------------------------------------------------------

SignatureVerifier::SignatureVerifier(uint32_t threads, uint32_t queue_max)
    : slots_(new Slot[queue_max]),  // not touched before use
      waiting_(queue_max),
      finished_(queue_max),
      awake_(threads),
      thread_count_(threads) {
  free_.reserve(queue_max);
  for (uint32_t slot = queue_max; slot-- > 0;) free_.push_back(slot);
}

std::unique_ptr<SignatureVerifier> SignatureVerifier::open(uint32_t threads, uint32_t queue_max,
                                                           std::string& error) {
  if (threads == 0 || threads > kVerifierThreadsMax || queue_max == 0 ||
      queue_max > kVerifierQueueMax) {
    error = "expected 1 to " + std::to_string(kVerifierThreadsMax) +
            " threads and a queue of 1 to " + std::to_string(kVerifierQueueMax) + " transactions";
    return nullptr;
  }
  std::unique_ptr<SignatureVerifier> verifier(new SignatureVerifier(threads, queue_max));
  for (uint32_t i = 0; i < threads; i++) {
    verifier->threads_.push_back(std::make_unique<Thread>());
    error = verifier->threads_.back()->start<&SignatureVerifier::run>(verifier.get(),
                                                                      "shredway-verify");
    if (!error.empty()) return nullptr;
  }
  return verifier;
}

SignatureVerifier::~SignatureVerifier() { stop(); }

void SignatureVerifier::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (const auto& thread : threads_) thread->join();
  threads_.clear();
  for (; !waiting_.empty(); finished_.push(waiting_.pop())) {
  }
}

// Requires the lock. Reserves one more thread if jobs wait and a thread sleeps. If it returns true,
// the caller must notify after releasing the lock.
bool SignatureVerifier::call_for_help() {
  if (waiting_.empty() || awake_ == thread_count_) return false;
  awake_++;
  called_++;
  return true;
}

// Sleeps until a job waits; returns false after stop().
bool SignatureVerifier::take(std::unique_lock<std::mutex>& lock, uint32_t& slot) {
  while (waiting_.empty() && !stopping_) {
    awake_--;
    wake_.wait(lock, [&] { return called_ > 0 || stopping_; });
    if (called_ > 0) called_--;  // otherwise the verifier stops
  }
  if (stopping_) return false;
  slot = waiting_.pop();
  return true;
}

void SignatureVerifier::run() {
  VerifyingKeys keys;
  std::unique_lock lock(mutex_);
  for (uint32_t number = 0; take(lock, number);) {
    const bool help = call_for_help();
    lock.unlock();
    if (help) wake_.notify_one();
    Slot& slot = slots_[number];
    const bool valid = verify_signatures(slot.bytes.data(), slot.length, keys);
    slot.outcome = valid ? VerifyOutcome::valid : VerifyOutcome::invalid;
    lock.lock();
    finished_.push(number);
    VerifierNotifier* notifier = is_notified_ ? nullptr : notifier_;
    if (!notifier) continue;
    is_notified_ = true;
    lock.unlock();
    notifier->notify();
    lock.lock();
  }
}

// ---- the submitting thread ------------------------------------------------------------------

bool SignatureVerifier::submit(uint32_t ticket, const uint8_t* bytes, size_t length) {
  if (free_.empty() || threads_.empty()) return false;
  const uint32_t number = free_.back();
  free_.pop_back();
  Slot& slot = slots_[number];
  slot.ticket = ticket;
  slot.outcome = VerifyOutcome::cancelled;  // replaced by the result
  slot.length = length <= slot.bytes.size() ? static_cast<uint32_t>(length) : 0;
  if (slot.length > 0) std::memcpy(slot.bytes.data(), bytes, slot.length);
  bool call = false;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push(number);
    if (awake_ == 0) call = call_for_help();
  }
  if (call) wake_.notify_one();
  return true;
}

bool SignatureVerifier::verify_now(const uint8_t* bytes, size_t length) {
  return verify_signatures(bytes, length, own_keys_);
}

size_t SignatureVerifier::drain(VerifyResult* out, size_t max) {
  const std::lock_guard lock(mutex_);
  size_t count = 0;
  for (; count < max && !finished_.empty(); count++) {
    const uint32_t number = finished_.pop();
    out[count] = {slots_[number].ticket, slots_[number].outcome};
    free_.push_back(number);
  }
  // A caller whose buffer was filled drains again without a notification.
  is_notified_ = false;
  return count;
}

void SignatureVerifier::set_notifier(VerifierNotifier* notifier) {
  bool ring = false;
  {
    const std::lock_guard lock(mutex_);
    notifier_ = notifier;
    ring = notifier && !finished_.empty();
    is_notified_ = ring;
  }
  if (ring) notifier->notify();
}

}  // namespace shredway
