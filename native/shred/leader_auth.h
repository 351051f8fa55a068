// Leader authentication: did this leader sign this Merkle root?
//
// One Ed25519 verification per FEC set and signature; the answer, good or bad, is kept under all of
// (leader, signature, root), so that no answer can be borrowed for other bytes. Bounded: a fixed
// number of entries, the newer one replaces the older. One per worker, used by its thread alone.
#pragma once

#include <cstdint>
#include <vector>

#include "crypto/ed25519.h"
#include "shred/merkle.h"

namespace shredway {

class LeaderAuth {
 public:
  enum class Answer : uint8_t { unknown, valid, invalid };

  // `entries` must be a power of two.
  explicit LeaderAuth(size_t entries = 4096);
  // What an earlier verification found; unknown when there was none or it was replaced.
  Answer recall(const VerifyingKey& leader, const uint8_t* signature, const Root& root) const;
  // Verifies (about 50 to 100 us) and keeps the answer.
  bool verify(const VerifyingKey& leader, const uint8_t* signature, const Root& root);
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
