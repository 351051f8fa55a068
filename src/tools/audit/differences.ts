// Differences between what the service stored and what the audit computed. Pure.
//
// Used by account-audit.ts; the command audit prints them.

import type { AuditedRegistration } from "../../platform/store/tables/audit-store.ts";
import type { ChainFact } from "./chain-facts.ts";
import type { CountedFact, Recomputation, RecomputedEvent } from "./tier-recomputation.ts";

/** One difference. `stored` and `expected` are null if there is nothing on that side. */
export interface Difference {
  readonly kind: "registration" | "tier_event" | "tier_state";
  /** The signature of the registration, or the number of the event. */
  readonly subject: string | null;
  readonly field: string;
  readonly stored: string | null;
  readonly expected: string | null;
  readonly explanation: string;
}

type Value = string | number | bigint | null;

function textOf(value: Value): string | null {
  return value === null ? null : String(value);
}

// ---- registrations --------------------------------------------------------------------------

type Found = readonly [field: string, stored: Value, expected: Value, explanation: string];

/** A tip older than this must be settled. */
const settleMs = 24 * 3_600_000 + 3_600_000;

function withoutLanding({ state, registeredMs }: AuditedRegistration, nowMs: number): Found[] {
  if (state === "counted") {
    return [["state", state, "dropped", "the chain does not have the transaction"]];
  }
  const isOverdue = state === "pending" && nowMs - registeredMs > settleMs;
  return isOverdue ? [["state", state, "dropped", "it did not land within 24 hours"]] : [];
}

function ofCounted(registration: AuditedRegistration, chain: ChainFact): Found[] {
  const { countedLamports, lamports } = registration;
  if (chain.hasFailed) return [["state", "counted", "dropped", "the transaction failed"]];
  if (chain.gainLamports <= 0n) {
    const text = "the balance of the tip addresses did not increase";
    return [["state", "counted", "dropped", text]];
  }
  const expected = chain.gainLamports < lamports ? chain.gainLamports : lamports;
  if (expected === countedLamports) return [];
  const text = "the smaller of the transfers and of the gain of the tip addresses counts";
  return [["countedLamports", countedLamports, expected, text]];
}

function ofDropped({ reason }: AuditedRegistration, chain: ChainFact): Found[] {
  const isRefunded = !chain.hasFailed && chain.gainLamports <= 0n;
  if (reason === "landed_failed" && !chain.hasFailed) {
    return [["reason", reason, isRefunded ? "refunded" : null, "the transaction did not fail"]];
  }
  if (reason === "refunded" && !isRefunded) {
    return [
      ["reason", reason, chain.hasFailed ? "landed_failed" : null, "the tip addresses gained"],
    ];
  }
  if (reason !== "expired") return [];
  return [["reason", reason, null, `the transaction landed in slot ${chain.slot}`]];
}

function ofFacts(registration: AuditedRegistration): Found[] {
  const { state, settledMs, countedLamports, countedOrder, reason } = registration;
  const isCounted = state === "counted";
  const isComplete = settledMs !== null && countedLamports !== null && countedOrder !== null;
  if (isCounted && !isComplete) {
    return [["state", state, null, "a counted tip needs its time, amount and order"]];
  }
  if (state === "dropped" && reason === null) {
    return [["reason", null, "a reason", "a dropped registration needs a reason"]];
  }
  return [];
}

/** `chain`: null: not on the chain; undefined: not asked. */
export function ofRegistration(
  registration: AuditedRegistration,
  chain: ChainFact | null | undefined,
  nowMs: number,
): Difference[] {
  const found = [...ofFacts(registration)];
  if (chain === null) found.push(...withoutLanding(registration, nowMs));
  if (chain) {
    const { state, lamports } = registration;
    if (chain.transferLamports !== lamports) {
      const text = "sum of the transfers to the tip addresses from other addresses";
      found.push(["lamports", lamports, chain.transferLamports, text]);
    }
    if (state === "counted") found.push(...ofCounted(registration, chain));
    if (state === "dropped") found.push(...ofDropped(registration, chain));
  }
  return found.map(([field, stored, expected, explanation]) => ({
    kind: "registration",
    subject: registration.signature,
    field,
    stored: textOf(stored),
    expected: textOf(expected),
    explanation,
  }));
}

/** The facts of tips that count or counted. */
export function countedFactsOf(registrations: readonly AuditedRegistration[]): CountedFact[] {
  return registrations.flatMap(
    ({ countedOrder, countedLamports, settledMs, registeredMs, claim }) => {
      if (countedOrder === null || countedLamports === null || settledMs === null) return [];
      const lamports = countedLamports;
      const claimed = claim?.counted ?? null;
      return [
        { order: countedOrder, lamports, registeredMs, countedMs: settledMs, claim: claimed },
      ];
    },
  );
}

// ---- tiers ----------------------------------------------------------------------------------

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function eventText({ kind, atMs, from, to, sumLamports }: RecomputedEvent): string {
  return `${kind} at ${timeText(atMs)}, ${from ?? "no tier"} → ${to ?? "no tier"}, sum ${sumLamports}`;
}

/** Compares by number. */
export function ofEvents(
  stored: readonly RecomputedEvent[],
  expected: readonly RecomputedEvent[],
): Difference[] {
  const numbers = new Set([...stored, ...expected].map(({ number }) => number));
  const byNumber = (events: readonly RecomputedEvent[]) =>
    new Map(events.map((event) => [event.number, event]));
  const [theirs, ours] = [byNumber(stored), byNumber(expected)];
  return [...numbers]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .flatMap((number) => {
      const [one, other] = [theirs.get(number), ours.get(number)];
      const texts = [one && eventText(one), other && eventText(other)];
      if (texts[0] === texts[1]) return [];
      return [
        {
          kind: "tier_event" as const,
          subject: String(number),
          field: fieldOf(one, other),
          stored: texts[0] ?? null,
          expected: texts[1] ?? null,
          explanation: !one
            ? "the history lacks an event"
            : !other
              ? "the counted tips do not explain this event"
              : "the event differs",
        },
      ];
    });
}

function fieldOf(one: RecomputedEvent | undefined, other: RecomputedEvent | undefined): string {
  if (!one || !other) return "event";
  const names = ["kind", "atMs", "from", "to", "sumLamports"] as const;
  return names.find((name) => one[name] !== other[name]) ?? "event";
}

type State = Recomputation["state"];

export function ofState(stored: State | null, expected: State): Difference[] {
  const present = stored ?? { tier: null, graceSinceMs: null, sumLamports: 0n, eventCount: 0n };
  const rows = [
    ["tier", present.tier, expected.tier],
    ["graceSince", timeText(present.graceSinceMs), timeText(expected.graceSinceMs)],
    ["sumLamports", String(present.sumLamports), String(expected.sumLamports)],
    ["eventCount", String(present.eventCount), String(expected.eventCount)],
  ] as const;
  return rows.flatMap(([field, was, is]) =>
    was === is
      ? []
      : [
          {
            kind: "tier_state" as const,
            subject: null,
            field,
            stored: was,
            expected: is,
            explanation: "the stored tier differs from the one that the counted tips give",
          },
        ],
  );
}
