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
#define SHREDWAY_STATIC_VERDICTS(X)                                                             \
  X(oversized, false, "longer than 1232 bytes")                                                 \
  X(ping, false, "132-byte gossip ping")                                                        \
  X(too_short, false, "shorter than the shred size of its variant")                             \
  X(unknown_variant, false, "unknown variant byte")                                             \
  X(legacy_variant, false, "legacy shred without a Merkle proof (0xa5, 0x5a)")                  \
  X(unchained_variant, false, "Merkle shred without a chained root (0x8_, 0x4_)")               \
  X(proof_size_invalid, false, "Merkle proof that does not have 6 entries")                     \
  X(index_too_large, false, "index or FEC set index above the 32768 shreds of a slot")          \
  X(fec_set_misaligned, false, "FEC set index that is not a multiple of 32")                    \
  X(index_outside_fec_set, false, "index outside [FEC set index, FEC set index + 32)")          \
  X(flags_invalid, false, "data flag 0x80 without 0x40")                                        \
  X(data_complete_misplaced, false, "DATA_COMPLETE on a shred that is not the last of its set") \
  X(parent_invalid, false, "parent offset above the slot, or 0 in a slot above 0")              \
  X(size_invalid, false, "data size outside [88, end of the body]")                             \
  X(code_counts_invalid, false, "code shred of a set that is not 32:32")                        \
  X(code_position_invalid, false, "code position that is not index minus FEC set index")

#define SHREDWAY_VERDICTS(X)                                                                      \
  /* sent to at least one tier */                                                                 \
  X(first, true, "first arrival of an authenticated shred")                                       \
  X(new_tier, true, "already sent to a wider tier; a source of a narrower tier delivered it too") \
  X(equivocation, true,                                                                           \
    "second shred with a valid signature and another root for the same identity")                 \
  X(first_forwardable, true,                                                                      \
    "already known from a source for own use; a source that is forwarded delivered it too")       \
  /* new, but for own use only */                                                                 \
  X(own_use, false,                                                                               \
    "first arrival of an authenticated shred, from a source for own use; not sent")               \
  /* already known */                                                                             \
  X(duplicate, false, "authenticated shred that all tiers of its source already received")        \
  X(equivocation_excess, false, "root beyond the number that the relay tracks")                   \
  /* not a shred of a configured source */                                                        \
  X(unknown_source, false, "sender that matches no configured source")                            \
  X(challenge, false, "answered ownership challenge")                                             \
  X(trace, false, "trace packet of a block engine (TraceShred)")                                  \
  X(heartbeat, false, "heartbeat of a DoubleZero publisher")                                      \
  SHREDWAY_STATIC_VERDICTS(X)                                                                     \
  X(wrong_version, false, "shred version of another cluster or fork")                             \
  X(slot_behind, false, "slot before the slot window, or one that a recent later slot displaced") \
  X(slot_ahead, false, "slot after the slot window")                                              \
  X(unknown_leader, false, "slot that the leader schedule does not contain")                      \
  X(root_mismatch, false, "known signature, but another Merkle root than the signed one")         \
  X(signature_invalid, false, "invalid signature of the leader over the Merkle root")             \
  X(source_over_budget, false, "not verified in time: the checks of its source fail")

SHREDWAY_NAMED_ENUM(Verdict, uint8_t, kVerdictCount, verdict_name, SHREDWAY_VERDICTS)

// One sentence for the documentation and `doctor`.
const char* verdict_meaning(Verdict verdict);

}  // namespace shredway
