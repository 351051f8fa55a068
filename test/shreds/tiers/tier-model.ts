// A slow second implementation of the tier rules: every step sums the full list of tips again.

import type {
  TierEvent,
  TierEventKind,
  TierRules,
  TierState,
} from "../../../src/shreds/tiers/types.ts";

export interface ModelTip {
  readonly order: bigint;
  readonly accountId: string;
  readonly lamports: bigint;
  readonly registeredMs: number;
  /** When it took effect. */
  readonly effectiveMs: number;
}

interface Move {
  readonly atMs: number;
  readonly kind: "leave" | "count";
  readonly tip: ModelTip;
}

function compareMoves(a: Move, b: Move): number {
  if (a.atMs !== b.atMs) return a.atMs - b.atMs;
  if (a.kind !== b.kind) return a.kind === "leave" ? -1 : 1;
  const byRegistration = a.tip.registeredMs - b.tip.registeredMs;
  if (a.kind === "leave" && byRegistration !== 0) return byRegistration;
  return a.tip.order < b.tip.order ? -1 : 1;
}

export interface ModelAccount {
  readonly state: TierState;
  readonly events: readonly TierEvent[];
}

export function emptyState(accountId: string): TierState {
  return { accountId, tier: null, graceSinceMs: null, sumLamports: 0n, eventCount: 0n };
}

/** The state of one account at the end of millisecond `untilMs`, and its history. */
export function modelAccount(
  { tiers, windowMs, graceMs }: TierRules,
  accountId: string,
  tips: readonly ModelTip[],
  untilMs: number,
): ModelAccount {
  const own = tips.filter((tip) => tip.accountId === accountId);
  const moves: Move[] = own
    .flatMap((tip): Move[] => [
      { atMs: tip.effectiveMs, kind: "count", tip },
      { atMs: tip.registeredMs + windowMs, kind: "leave", tip },
    ])
    .filter(({ atMs }) => atMs <= untilMs)
    .toSorted(compareMoves);
  const sumAfter = (done: readonly Move[]): bigint => {
    let sum = 0n;
    for (const tip of own) {
      const isCounted = done.some((move) => move.kind === "count" && move.tip === tip);
      const hasLeft = done.some((move) => move.kind === "leave" && move.tip === tip);
      if (isCounted && !hasLeft) sum += tip.lamports;
    }
    return sum;
  };

  const events: TierEvent[] = [];
  let tier = 0; // 0: none, 1: the first of the rules, …
  let graceSinceMs: number | null = null;
  let sum = 0n;
  const nameOf = (number: number) => (number === 0 ? null : (tiers[number - 1]?.name ?? "?"));
  const isReached = (number: number) =>
    number === 0 || sum >= (tiers[number - 1]?.thresholdLamports ?? 0n);
  const note = (kind: TierEventKind, atMs: number, from: number) => {
    const number = BigInt(events.length + 1);
    const names = { from: nameOf(from), to: nameOf(tier) };
    events.push({ accountId, number, atMs, kind, ...names, sumLamports: sum });
  };
  const endGraces = (isOver: (endMs: number) => boolean) => {
    while (graceSinceMs !== null && isOver(graceSinceMs + graceMs)) {
      const endMs: number = graceSinceMs + graceMs;
      tier--;
      graceSinceMs = null;
      note("downgraded", endMs, tier + 1);
      if (!isReached(tier)) {
        graceSinceMs = endMs;
        note("grace_started", endMs, tier);
      }
    }
  };

  for (const [i, move] of moves.entries()) {
    endGraces((endMs) => endMs < move.atMs || (endMs === move.atMs && move.kind === "count"));
    sum = sumAfter(moves.slice(0, i + 1));
    if (graceSinceMs !== null && isReached(tier)) {
      graceSinceMs = null;
      note("grace_cancelled", move.atMs, tier);
    }
    const before = tier;
    for (let number = tiers.length; number > tier; number--) if (isReached(number)) tier = number;
    if (tier !== before) note("upgraded", move.atMs, before);
    if (graceSinceMs === null && !isReached(tier)) {
      graceSinceMs = move.atMs;
      note("grace_started", move.atMs, tier);
    }
  }
  endGraces((endMs) => endMs <= untilMs);
  const eventCount = BigInt(events.length);
  return {
    state: { accountId, tier: nameOf(tier), graceSinceMs, sumLamports: sum, eventCount },
    events,
  };
}

export function modelOf(
  rules: TierRules,
  tips: readonly ModelTip[],
  untilMs: number,
): ReadonlyMap<string, ModelAccount> {
  const accountIds = new Set(tips.map(({ accountId }) => accountId));
  return new Map(
    Array.from(accountIds, (id) => [id, modelAccount(rules, id, tips, untilMs)] as const),
  );
}
