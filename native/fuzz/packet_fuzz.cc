// Fuzz target: any datagram. A packet that check_packet accepts must be safe to hash, record and
// send.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "relay/recent_shreds.h"
#include "shred/merkle.h"
#include "shred/wire.h"

using namespace shredway;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
  static const std::unique_ptr<RecentShreds> recent = RecentShreds::create(false);
  // A copy of exactly the input's size, so that a read beyond it is detected.
  const std::unique_ptr<uint8_t[]> packet(new uint8_t[length]);
  if (length) std::memcpy(packet.get(), bytes, length);

  Shred shred;
  const Verdict verdict = check_packet(packet.get(), length, shred);
  require(static_cast<size_t>(verdict) < kVerdictCount && verdict_name(verdict)[0] != 0);
  if (verdict != Verdict::first) return 0;
  require(shred.bytes <= length && shred.leaf < kFecSetLeaves && shred.index < kShredsPerSlotMax);
  require(shred.fec_set_index % kFecSetShreds == 0 && shred.index - shred.fec_set_index < 32);

  const MerkleInput inputs[4] = {
      merkle_input(packet.get(), shred), merkle_input(packet.get(), shred),
      merkle_input(packet.get(), shred), merkle_input(packet.get(), shred)};
  Root roots[4];
  merkle_roots(inputs, 1, roots);
  const Root alone = roots[0];
  merkle_roots(inputs, 4, roots);
  for (const Root& root : roots) require(root == alone);

  const auto outcome = recent->record(shred, packet.get(), alone, {1, 0, 0});
  require(outcome.verdict == Verdict::first || outcome.tiers == 0 ||
          outcome.verdict == Verdict::equivocation);
  // A shred that was sent is not sent again. (A refused further root may be accepted later.)
  const auto again = recent->record(shred, packet.get(), alone, {1, 0, 0});
  require(again.tiers == 0 || outcome.verdict == Verdict::equivocation_excess);
  return 0;
}
