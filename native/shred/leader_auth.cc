#include "shred/leader_auth.h"

#include <cassert>
#include <cstring>

namespace shredway {

LeaderAuth::LeaderAuth(size_t entries) : entries_(entries, Entry{}) {
  assert(entries && (entries & (entries - 1)) == 0);
}

// A sender who crafts collisions only replaces an entry. That costs one more verification, which
// counts against the budget of its source. Equality is always checked on all bytes.
size_t LeaderAuth::place_of(const uint8_t* signature, const Root& root) const {
  const uint64_t mixed = (load_u64(signature) ^ load_u64(root.data())) * 0x9e3779b97f4a7c15u;
  return static_cast<size_t>(mixed >> 32) & (entries_.size() - 1);
}

LeaderAuth::Answer LeaderAuth::recall(const VerifyingKey& leader, const uint8_t* signature,
                                      const Root& root) const {
  const Entry& entry = entries_[place_of(signature, root)];
  const bool same = entry.answer != Answer::unknown && entry.root == root &&
                    std::memcmp(entry.signature.data(), signature, kSignatureBytes) == 0 &&
                    entry.leader == leader.bytes();
  return same ? entry.answer : Answer::unknown;
}

bool LeaderAuth::verify(const VerifyingKey& leader, const PreparedKey* prepared,
                        const uint8_t* signature, const Root& root) {
  verifications_++;
  const bool valid = prepared ? prepared->verify(signature, root.data(), root.size())
                              : leader.verify(signature, root.data(), root.size());
  Entry& entry = entries_[place_of(signature, root)];
  entry.leader = leader.bytes();
  std::memcpy(entry.signature.data(), signature, kSignatureBytes);
  entry.root = root;
  entry.answer = valid ? Answer::valid : Answer::invalid;
  return valid;
}

}  // namespace shredway
