// Transitions: the state machine of one transaction, as one table.
//
// Pure. state-machine.ts looks up every event and carries out the effects in the order of the row.
// docs/transaction-status.md shows the same table to readers, and test/gateway/submission/transitions.test.ts
// compares the two. Every end is absorbing: the state never changes again, and listeners are notified of
// one end only.

import { type EndState, endStates } from "./types.ts";

export const transactionStates = [
  /** No account has submitted it yet. */
  "new",
  /** Submitted, not ended. */
  "open",
  /** As "open", and observed in a block that may still be abandoned. */
  "in_block",
  "landed",
  "landed_failed",
  "expired",
  "superseded",
  "rejected",
  /** The only call that submitted it was refused after all. */
  "revoked",
] as const;
export type TransactionState = (typeof transactionStates)[number];

export const eventKinds = [
  /** An account submits it. */
  "accepted",
  /** An account's submission is restored from the store. */
  "resumed",
  /** Dispatch or a route reports: held, queued, sent, acknowledged, refused, failed, dropped. */
  "route_reported",
  /** The last attempt that its options allow has been made. */
  "attempts_exhausted",
  /** Every route refused it for good, for every account. */
  "routes_refused",
  /** Observed in a block: in the relay's own shreds, or the node answered "processed". */
  "landing_observed",
  /** As "landing_observed", in a slot that was reported before. */
  "landing_repeated",
  /** One of several blocks with it began again without it. */
  "landing_withdrawn",
  /** It is no longer in a block: the block began again without it, or the node does not know it. */
  "block_abandoned",
  /** The node confirmed it without an error; without a node: it was observed in shreds. */
  "landing_confirmed",
  /** The node confirmed it with an error. */
  "failure_confirmed",
  /** Its lifetime is over and the node does not know it, or the observation timer fired. */
  "lifetime_over",
  /** Its nonce has another value, and the node does not know it. */
  "nonce_advanced",
  /** The store answered how it ended before this process started: landed, failed, otherwise. */
  "landing_found",
  "failure_found",
  "end_found",
  /** The only call that submitted it is refused after all. */
  "call_refused",
] as const;
export type EventKind = (typeof eventKinds)[number];

export const effects = [
  /** Observe the chain until its end. */
  "observe",
  "stop_observing",
  /** Append the event to the timeline of every account concerned. */
  "record",
  /** Write the timeline to the store: within a second, an end at once. */
  "persist",
  /** Write the timeline at once. */
  "persist_now",
  /** Call the accounts' listeners. */
  "notify",
  /** The account submitted it after its end: record that end for the account, too. */
  "repeat_end",
  /** Count an event that came after the end. */
  "count_late",
  "count_end",
  /** Tip statistics: its tip was observed, landed, or is retracted. */
  "report_tip",
  "confirm_tip",
  "retract_tip",
  /** Report that its nonce account has a new value. */
  "report_nonce",
  /** Other transactions with this nonce value can no longer land. */
  "end_siblings",
  /** Offer it, and the other one of its pair, to routes again. */
  "offer_again",
  /** Offer nothing more of any submission that it belongs to. */
  "stop_offering",
  /** Move it from the open transactions to the ended ones; its bytes are dropped. */
  "close",
  /** Drop it from memory. */
  "drop",
] as const;
export type Effect = (typeof effects)[number];

interface Transition {
  readonly to: TransactionState;
  readonly effects: readonly Effect[];
}

/** Columns of the table: all ends behave alike. */
type Phase = "new" | "open" | "in_block" | "ended";

/** "same": the state stays. "as_found": the end that the store found. */
type Target = Exclude<TransactionState, "new"> | "same" | "as_found";

interface Cell {
  readonly to: Target;
  readonly effects: readonly Effect[];
}

/** An absent cell: the event changes nothing in this phase and has no effects. */
type Row = Readonly<Partial<Record<Phase, Cell>>>;

function cell(to: Target, ...all: readonly Effect[]): Cell {
  return { to, effects: all };
}

/** The same cell for "open" and "in_block". */
function untilEnd(to: Target, ...all: readonly Effect[]): Row {
  return { open: cell(to, ...all), in_block: cell(to, ...all) };
}

const notify = ["record", "persist", "notify"] as const;
const finish = ["stop_observing", "close", "stop_offering", ...notify] as const;
const spendNonce = ["report_nonce", "end_siblings"] as const;

export const transitions: Readonly<Record<EventKind, Row>> = {
  accepted: {
    new: cell("open", "observe", ...notify),
    ...untilEnd("same", ...notify),
    ended: cell("same", ...notify, "repeat_end"),
  },
  resumed: { new: cell("open", "observe"), ended: cell("same", "repeat_end") },
  route_reported: { ...untilEnd("same", ...notify), ended: cell("same", "count_late") },
  attempts_exhausted: untilEnd("same", "persist_now"),
  routes_refused: untilEnd("rejected", "count_end", "retract_tip", ...finish),
  landing_observed: untilEnd("in_block", ...notify, "report_nonce", "report_tip"),
  landing_repeated: untilEnd("in_block"),
  landing_withdrawn: { in_block: cell("same", ...notify) },
  block_abandoned: { in_block: cell("open", ...notify, "retract_tip", "offer_again") },
  landing_confirmed: untilEnd("landed", "count_end", "confirm_tip", ...finish, ...spendNonce),
  failure_confirmed: untilEnd(
    "landed_failed",
    ...(["count_end", "retract_tip", ...finish, ...spendNonce] as const),
  ),
  lifetime_over: untilEnd("expired", "count_end", "retract_tip", ...finish),
  nonce_advanced: untilEnd("superseded", "count_end", "retract_tip", ...finish),
  landing_found: untilEnd("landed", "stop_observing", "close", "end_siblings"),
  failure_found: untilEnd(
    "landed_failed",
    "retract_tip",
    "stop_observing",
    "close",
    "end_siblings",
  ),
  end_found: untilEnd("as_found", "retract_tip", "stop_observing", "close"),
  call_refused: untilEnd("revoked", "retract_tip", "stop_observing", "drop"),
};

/** The event that ends a transaction in this state. */
export const eventOfEnd = {
  landed: "landing_confirmed",
  landed_failed: "failure_confirmed",
  expired: "lifetime_over",
  superseded: "nonce_advanced",
  rejected: "routes_refused",
} as const satisfies Readonly<Record<EndState, EventKind>>;

/** As `eventOfEnd`, for an end that the store found. */
export const eventOfFoundEnd = {
  landed: "landing_found",
  landed_failed: "failure_found",
  expired: "end_found",
  superseded: "end_found",
  rejected: "end_found",
} as const satisfies Readonly<Record<EndState, EventKind>>;

const ends: ReadonlySet<string> = new Set(endStates);

export function isEndState(state: string): state is EndState {
  return ends.has(state);
}

export function phaseOf(state: TransactionState): Phase {
  return state === "new" || state === "open" || state === "in_block" ? state : "ended";
}

/** `found`: the end that the store found, for "end_found". */
export function transition(
  state: TransactionState,
  event: EventKind,
  found: EndState = "expired",
): Transition {
  const next = transitions[event][phaseOf(state)];
  if (!next) return { to: state, effects: [] };
  const { to, effects: all } = next;
  if (to === "same") return { to: state, effects: all };
  return { to: to === "as_found" ? found : to, effects: all };
}
