// Verdicts: the result of every packet.
//
// wire.h decides by the static rules, the worker by sources, slot window and duplicates, and
// leader_auth by signatures. Counters, logs, documentation and tests use the names.
// native/names.mjs generates the TypeScript names from these lists. Static rules: SIMD-0504
// (2026-05).
#pragma once

#include <cstddef>
#include <cstdint>
#include "system/named_enum.h"

namespace shredway {

// X(name, sent to a tier?, meaning). The rules of check_packet come first; they need only the
// packet.
#define SHREDWAY_STATIC_VERDICTS(X)                                                             \
  X(oversized, false, "longer than 1232 bytes")                                                 \
  X(ping, false, "132-byte gossip ping")                                                        \
  X(too_short, false, "shorter than a shred of its variant")                                    \
  X(unknown_variant, false, "variant byte that is not a shred's")                               \
  X(legacy_variant, false, "legacy shred without Merkle proof (0xa5, 0x5a)")                    \
  X(unchained_variant, false, "Merkle shred without chained root (0x8_, 0x4_)")                 \
  X(proof_size_invalid, false, "Merkle proof that does not have 6 entries")                     \
  X(index_too_large, false, "index or FEC set index beyond the 32768 shreds of a slot")         \
  X(fec_set_misaligned, false, "FEC set index is not a multiple of 32")                         \
  X(index_outside_fec_set, false, "index is not in [FEC set index, FEC set index + 32)")        \
  X(flags_invalid, false, "data flags 0x80 without 0x40")                                       \
  X(data_complete_misplaced, false, "DATA_COMPLETE on a shred that is not the last of its set") \
  X(parent_invalid, false, "parent offset above the slot, or 0 in a slot other than 0")         \
  X(size_invalid, false, "data size outside [88, end of the body]")                             \
  X(code_counts_invalid, false, "code shred of a set that is not 32:32")                        \
  X(code_position_invalid, false, "code position is not index minus FEC set index")

#define SHREDWAY_VERDICTS(X)                                                                   \
  /* sent to at least one tier */                                                              \
  X(first, true, "first arrival of an authentic shred")                                        \
  X(widened, true, "seen before, now also from a source that serves a narrower tier")          \
  X(equivocation, true, "second validly signed shred with another root for the same identity") \
  /* already known */                                                                          \
  X(duplicate, false, "authentic shred that all tiers of its source already received")         \
  X(equivocation_excess, false, "more roots or signatures than the relay follows")             \
  /* not a valid shred of a known source */                                                    \
  X(unknown_source, false, "sender is not a configured source")                                \
  X(challenge, false, "ownership challenge that was answered")                                 \
  SHREDWAY_STATIC_VERDICTS(X)                                                                  \
  X(wrong_version, false, "shred version of another cluster or fork")                          \
  X(slot_behind, false, "slot before the window")                                              \
  X(slot_ahead, false, "slot beyond the window")                                               \
  X(unknown_leader, false, "the leader schedule has no leader for this slot")                  \
  X(root_mismatch, false, "known signature, but another Merkle root")                          \
  X(signature_invalid, false, "leader's signature over the Merkle root is invalid")            \
  X(source_over_budget, false, "not verified: the source exceeded its failed checks")

SHREDWAY_NAMED_ENUM(Verdict, uint8_t, kVerdictCount, verdict_name, SHREDWAY_VERDICTS)

// One sentence for the documentation and `doctor`.
const char* verdict_meaning(Verdict verdict);

}  // namespace shredway
