// Verdicts: the result of every packet.
//
// wire.h decides the static rules, the worker those of sources, slot window and duplicates, and
// leader_auth those of signatures. Counters, logs, documentation and tests use the names. These
// lists are the only ones; native/names.mjs generates TypeScript's from them. Static rules:
// SIMD-0504 (2026-05).
#pragma once

#include <cstddef>
#include <cstdint>
#include "system/named_enum.h"

namespace shredway {

// X(name, sent to a tier?, meaning). First the rules of check_packet, which need only the packet.
#define SHREDWAY_STATIC_VERDICTS(X)                                                            \
  X(oversized, false, "longer than 1232 bytes")                                                \
  X(ping, false, "132-byte gossip ping")                                                       \
  X(too_short, false, "shorter than the shred that its variant announces")                     \
  X(unknown_variant, false, "variant byte that no shred has")                                  \
  X(legacy_variant, false, "legacy shred without Merkle proof (0xa5, 0x5a)")                   \
  X(unchained_variant, false, "Merkle shred without chained root (0x8_, 0x4_)")                \
  X(proof_size_invalid, false, "Merkle proof of other than 6 entries")                         \
  X(index_too_large, false, "index or FEC set index beyond the 32768 shreds of a slot")        \
  X(fec_set_misaligned, false, "FEC set index is no multiple of 32")                           \
  X(index_outside_fec_set, false, "index is not in [FEC set index, FEC set index + 32)")       \
  X(flags_invalid, false, "data flags 0x80 without 0x40")                                      \
  X(data_complete_misplaced, false, "DATA_COMPLETE on another than the last shred of its set") \
  X(parent_invalid, false, "parent offset above the slot, or 0 in another slot than 0")        \
  X(size_invalid, false, "data size outside [88, end of the body]")                            \
  X(code_counts_invalid, false, "code shred of another set than 32:32")                        \
  X(code_position_invalid, false, "code position is not index minus FEC set index")

#define SHREDWAY_VERDICTS(X)                                                                   \
  /* passed on to at least one tier */                                                         \
  X(first, true, "first sight of an authentic shred")                                          \
  X(widened, true, "seen before, now also from a source that serves a narrower tier")          \
  X(equivocation, true, "second validly signed shred with another root for the same identity") \
  /* known already */                                                                          \
  X(duplicate, false, "authentic shred that all tiers of its source already received")         \
  X(equivocation_excess, false, "further roots or signatures than are followed")               \
  /* not a shred from somebody we listen to */                                                 \
  X(unknown_source, false, "sender is in no source entry")                                     \
  X(challenge, false, "ownership challenge that was answered")                                 \
  SHREDWAY_STATIC_VERDICTS(X)                                                                  \
  X(wrong_version, false, "shred version of another cluster or fork")                          \
  X(slot_behind, false, "slot before the window")                                              \
  X(slot_ahead, false, "slot beyond the window")                                               \
  X(unknown_leader, false, "the leader schedule names nobody for this slot")                   \
  X(root_mismatch, false, "signature known, but the Merkle root is not the signed one")        \
  X(signature_invalid, false, "leader's signature does not verify over the Merkle root")       \
  X(source_over_budget, false, "unverified and the source used up its failed checks")

SHREDWAY_NAMED_ENUM(Verdict, uint8_t, kVerdictCount, verdict_name, SHREDWAY_VERDICTS)

// One sentence for the documentation and `doctor`.
const char* verdict_meaning(Verdict verdict);

}  // namespace shredway
