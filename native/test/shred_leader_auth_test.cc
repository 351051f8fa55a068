// leader_auth: results are cached under all of leader, signature and root.
#include "shred/leader_auth.h"

#include <cstring>

#include "check.h"
#include "support.h"

using namespace shredway;
using namespace shredway::test;

namespace {

struct Signed {
  VerifyingKey key;
  Signature signature;
  Root root;
};

Signed signed_set(uint8_t seed, uint8_t content) {
  const AuthenticSlot slot = make_slot({.slot = 9, .leader_seed = seed, .first_byte = content});
  Shred shred;
  CHECK_EQ(check_packet(slot.packets[0].data(), slot.packets[0].size(), shred), Verdict::first);
  Signed out{VerifyingKey(slot.leader), {}, {}};
  std::memcpy(out.signature.data(), slot.packets[0].data(), out.signature.size());
  const MerkleInput input = merkle_input(slot.packets[0].data(), shred);
  merkle_roots(&input, 1, &out.root);
  return out;
}

}  // namespace

TEST(leader_auth_separates_valid_and_invalid_results) {
  LeaderAuth auth;
  const Signed one = signed_set(1, 10);
  const Signed two = signed_set(2, 20);
  const auto recall = [&](const VerifyingKey& key, const Signature& signature, const Root& root) {
    return auth.recall(key, signature.data(), root);
  };
  using Answer = LeaderAuth::Answer;
  CHECK(recall(one.key, one.signature, one.root) == Answer::unknown);
  CHECK(auth.verify(one.key, nullptr, one.signature.data(), one.root));
  CHECK(recall(one.key, one.signature, one.root) == Answer::valid);
  // None of the three may be replaced by another value.
  CHECK(recall(two.key, one.signature, one.root) == Answer::unknown);
  CHECK(recall(one.key, two.signature, one.root) == Answer::unknown);
  CHECK(recall(one.key, one.signature, two.root) == Answer::unknown);
  CHECK(!auth.verify(two.key, nullptr, one.signature.data(), one.root));
  CHECK(recall(two.key, one.signature, one.root) == Answer::invalid);
  CHECK(!auth.verify(one.key, nullptr, one.signature.data(), two.root));
  CHECK_EQ(auth.verifications(), 3u);
}

TEST(leader_auth_is_bounded_and_correct_when_entries_are_replaced) {
  LeaderAuth auth(1);
  const Signed one = signed_set(1, 10);
  const Signed two = signed_set(2, 20);
  CHECK(auth.verify(one.key, nullptr, one.signature.data(), one.root));
  CHECK(auth.verify(two.key, nullptr, two.signature.data(), two.root));
  CHECK(auth.recall(one.key, one.signature.data(), one.root) == LeaderAuth::Answer::unknown);
  CHECK(auth.recall(two.key, two.signature.data(), two.root) == LeaderAuth::Answer::valid);
}

TEST(leader_auth_verifies_once_for_each_fec_set_of_a_capture) {
  if (testdata().empty()) SKIP("real captures missing");
  const auto packets =
      read_lpb(testdata() + "/shreds/firedancer-testnet-385970984/chained_resigned.lpb");
  LeaderAuth auth;
  const VerifyingKey wrong(leader_key(3));
  for (const auto& packet : packets) {
    Shred shred;
    if (check_packet(packet.data(), packet.size(), shred) != Verdict::first) continue;
    const MerkleInput input = merkle_input(packet.data(), shred);
    Root root;
    merkle_roots(&input, 1, &root);
    if (auth.recall(wrong, packet.data(), root) == LeaderAuth::Answer::unknown)
      CHECK(!auth.verify(wrong, nullptr, packet.data(), root));
  }
  CHECK_EQ(auth.verifications(), 5u);  // one for each FEC set
}
