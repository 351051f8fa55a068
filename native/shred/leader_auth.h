// Leader authentication: checks whether a leader signed a Merkle root.
//
// One Ed25519 verification per FEC set and signature. The result, valid or invalid, is cached under
// all of (leader, signature, root), so that it applies to no other bytes. Bounded: a fixed number
// of entries; a newer entry replaces an older one. One per worker, used by its thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "crypto/ed25519.h"
#include "crypto/prepared_key.h"
#include "shred/merkle.h"
#include "system/memory_lock.h"

namespace shredway {

class LeaderAuth {
 public:
  enum class Answer : uint8_t { unknown, valid, invalid };

  // `entries` must be a power of two.
  explicit LeaderAuth(size_t entries = 4096);
  // Cached result of an earlier verification, or unknown.
  Answer recall(const VerifyingKey& leader, const uint8_t* signature, const Root& root) const;
  // Verifies and caches the result. It takes about 50 to 100 us, or 20 us with `prepared`, which is
  // the leader's prepared key or nullptr.
  bool verify(const VerifyingKey& leader, const PreparedKey* prepared, const uint8_t* signature,
              const Root& root);
  void lock_memory(MemoryLock& lock) const {
    lock.add(entries_.data(), entries_.size() * sizeof(Entry));
  }
  uint64_t verifications() const { return verifications_; }

 private:
  struct Entry {
    PublicKey leader;
    Signature signature;
    Root root;
    Answer answer;
  };
  size_t place_of(const uint8_t* signature, const Root& root) const;

  std::vector<Entry> entries_;
  uint64_t verifications_ = 0;
};

}  // namespace shredway
