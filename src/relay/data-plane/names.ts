// Names of what the data plane counts or refuses, in the order of its counters.
//
// The native lists (native/shred/verdict.h, native/net/udp_batch.h, native/clone/next_hops.h,
// native/relay/counters.h, native/relay/event_ring.h, native/relay/deshred_thread.h, native/transaction/refusal.h,
// native/transaction/co_signing.h) are the source; TypeScript needs the names as types, so they stand
// here again, and loading the addon fails when the two differ (native.ts).

import { shredRefusalReasons } from "./parse-shred.ts";

export const verdictNames = [
  "first",
  "widened",
  "equivocation",
  "duplicate",
  "equivocation_excess",
  "unknown_source",
  "challenge",
  ...shredRefusalReasons,
  "wrong_version",
  "slot_behind",
  "slot_ahead",
  "unknown_leader",
  "root_mismatch",
  "signature_invalid",
  "source_over_budget",
] as const;
export type VerdictName = (typeof verdictNames)[number];

/** Verdicts of packets that went on to at least one tier. */
export const passedOnVerdicts: readonly VerdictName[] = ["first", "widened", "equivocation"];

export const sendFailureNames = [
  "buffer_full",
  "unreachable",
  "refused",
  "not_permitted",
  "too_big",
  "invalid",
  "other",
] as const;
export type SendFailureName = (typeof sendFailureNames)[number];

/** Why destinations go by socket where clones are in use; those of the first are cloned. */
export const nextHopStateNames = [
  "resolved",
  "no_route",
  "local",
  "interface_unsuitable",
  "neighbour_unknown",
  "neighbour_checked",
  "mtu_small",
] as const;
export type NextHopStateName = (typeof nextHopStateNames)[number];

export const workerCounterNames = [
  "received",
  "batches",
  "send_calls",
  "gso_fallbacks",
  "signature_checks",
  "cpu_ns",
  "receive_drops",
  "window_anchored",
  "highest_slot",
  "events_lost",
  "deshred_lost",
  "clone_triggers",
  "clone_fallbacks",
  "cloned_destinations",
] as const;
export type WorkerCounterName = (typeof workerCounterNames)[number];

export const deshredCounterNames = [
  "shreds",
  "shreds_late",
  "shreds_conflicting",
  "sets_whole",
  "sets_recovered",
  "shreds_recovered",
  "sets_refused",
  "sets_given_up",
  "batches",
  "batches_malformed",
  "batches_given_up",
  "entries",
  "transactions",
  "markers",
  "shreds_handed_back",
  "landings",
  "landings_lost",
  "watched",
  "cpu_ns",
] as const;
export type DeshredCounterName = (typeof deshredCounterNames)[number];

export const eventNames = ["equivocation", "icmp_error", "window_anchored"] as const;
export type EventName = (typeof eventNames)[number];

/** Ways in which bytes can be no valid transaction; the first is none. */
export const transactionRefusalNames = [
  "accepted",
  "too_long",
  "cut_short",
  "malformed",
  "trailing_bytes",
  "version_unknown",
  "signatures_out_of_range",
  "signature_count_wrong",
  "keys_too_few",
  "fee_payer_readonly",
  "key_repeated",
  "accounts_too_many",
  "lookup_empty",
  "config_mask_unknown",
  "config_fee_bits",
  "instructions_too_many",
  "program_is_fee_payer",
  "program_out_of_range",
  "account_out_of_range",
  "instruction_accounts_too_many",
  "compute_budget_unknown",
  "compute_budget_repeated",
  "heap_size_invalid",
  "loaded_bytes_zero",
  "tips_overflow",
] as const;

/** Ways in which a transaction can be none that a nonce's authority signs; the first is none. */
export const coSigningRefusalNames = [
  "accepted",
  "transaction_refused",
  "version_1",
  "not_an_advance",
  "advance_data",
  "advance_accounts",
  "nonce_account_loaded",
  "other_nonce_account",
  "nonce_account_readonly",
  "authority_loaded",
  "other_authority",
  "authority_not_signer",
  "authority_pays_fees",
  "authority_writable",
  "authority_used_elsewhere",
  "authority_as_table",
  "nothing_missing",
  "other_signature_missing",
] as const;
