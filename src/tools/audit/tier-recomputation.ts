// Recomputes the tier history of one account from its counted tips.
//
// Pure, and independent of the tier engine whose results the audit checks. Rules: docs/shreds-api.md. Within
// one millisecond, expiries come first, then ends of grace periods, then counted tips and claims.
//
// A tip takes effect when its commit is durable, up to `effectMaxMs` after the stored time; that moment itself
// is not stored. If another change falls into this time, both orders are possible, and the one that explains
// the stored events is taken. Every sum, tier and number, and the time of every other event, must be equal.

import type { TierEvent, TierEventKind, TierRules, TierState } from "../../shreds/tiers/types.ts";

export interface CountedFact {
  readonly order: bigint;
  readonly lamports: bigint;
  readonly registeredMs: number;
  readonly countedMs: number;
  /** Another account's claim that counted. */
  readonly claim: { readonly order: bigint; readonly ms: number } | null;
}

/** The stored state from which the recomputation begins. */
interface Anchor {
  readonly fromMs: number;
  readonly tier: string | null;
  readonly graceSinceMs: number | null;
  readonly eventCount: bigint;
}

/** Everything up to that time and order is applied. */
interface Horizon {
  readonly untilMs: number;
  readonly order: bigint;
}

export type RecomputedEvent = Omit<TierEvent, "accountId">;

export interface Recomputation {
  readonly events: readonly RecomputedEvent[];
  readonly state: Omit<TierState, "accountId">;
}

/** The database stores sums up to this value. */
const sumMax = 2n ** 63n - 1n;
/** Time from the stored time of a tip until its commit is durable, with retries of a slow database. */
const defaultEffectMaxMs = 60_000;

/** Effects whose order with another change is tried. */
const effectsTried = 16;

/** A tip that counts, or a claim that takes one out of the sum; in this order, from `ms` on. */
interface Effect {
  readonly kind: "counted" | "claimed";
  readonly order: bigint;
  readonly ms: number;
  readonly fact: CountedFact;
}

/** The account between two changes. */
interface Position {
  /** Index of the tier; -1: none. */
  readonly level: number;
  readonly sum: bigint;
  readonly graceSinceMs: number | null;
  readonly eventCount: bigint;
}

interface Step {
  readonly position: Position;
  readonly events: readonly RecomputedEvent[];
}

function effectsOf(
  facts: readonly CountedFact[],
  { windowMs }: TierRules,
  until: bigint,
): Effect[] {
  const effects: Effect[] = [];
  for (const fact of facts) {
    const { order, countedMs, registeredMs, claim } = fact;
    const endMs = registeredMs + windowMs;
    if (order > until || endMs <= countedMs) continue;
    effects.push({ kind: "counted", order, ms: countedMs, fact });
    const isClaimed = claim !== null && claim.order <= until && claim.ms < endMs;
    if (isClaimed) effects.push({ kind: "claimed", order: claim.order, ms: claim.ms, fact });
  }
  return effects.toSorted((a, b) => (a.order < b.order ? -1 : 1));
}

interface WalkOptions {
  readonly rules: TierRules;
  readonly anchor: Anchor;
  /** The events that the result is compared with, from the anchor on. */
  readonly stored: readonly RecomputedEvent[];
  /** Default: a minute. */
  readonly effectMaxMs?: number;
}

export function recomputeTiers(
  facts: readonly CountedFact[],
  horizon: Horizon,
  options: WalkOptions,
): Recomputation {
  return new Walk(options).run(effectsOf(facts, options.rules, horizon.order), horizon.untilMs);
}

class Walk {
  readonly #rules: TierRules;
  readonly #fromMs: number;
  readonly #effectMaxMs: number;
  readonly #stored: ReadonlyMap<bigint, RecomputedEvent>;
  readonly #events: RecomputedEvent[] = [];
  /** Tips in the sum, by the time at which they leave, then by order. */
  readonly #held: CountedFact[] = [];
  #position: Position;

  constructor({ rules, anchor, stored, effectMaxMs = defaultEffectMaxMs }: WalkOptions) {
    const { fromMs, tier, graceSinceMs, eventCount } = anchor;
    this.#rules = rules;
    this.#fromMs = fromMs;
    this.#effectMaxMs = effectMaxMs;
    this.#stored = new Map(stored.map((event) => [event.number, event]));
    const level = rules.tiers.findIndex(({ name }) => name === tier);
    this.#position = { level, sum: 0n, graceSinceMs, eventCount };
  }

  run(effects: readonly Effect[], untilMs: number): Recomputation {
    for (const [i, effect] of effects.entries()) {
      if (effect.ms > untilMs) break;
      this.#applyUntil(effect.ms);
      const isBefore = this.#isBefore(effect);
      const pending = effects.slice(i, i + effectsTried);
      if (!isBefore) this.#applyBefore(pending, untilMs);
      // The window ended before the claim took effect.
      if (effect.kind === "claimed" && !this.#held.includes(effect.fact)) continue;
      this.#take(this.#effect(this.#position, effect, this.#timeOf(effect)), isBefore);
      this.#hold(effect);
    }
    this.#applyUntil(untilMs);
    const { level, sum, graceSinceMs, eventCount } = this.#position;
    const state = {
      tier: this.#name(level),
      graceSinceMs,
      sumLamports: bounded(sum),
      eventCount,
    };
    return { events: this.#events, state };
  }

  // ---- expiries and ends of grace periods ----

  /** Time of the next one; infinite: none. */
  #nextMs(): number {
    const { graceSinceMs } = this.#position;
    const graceEndMs = graceSinceMs === null ? Infinity : graceSinceMs + this.#rules.graceMs;
    return Math.min(this.#expiryMs(), graceEndMs);
  }

  #expiryMs(): number {
    const [first] = this.#held;
    return first ? first.registeredMs + this.#rules.windowMs : Infinity;
  }

  #applyUntil(ms: number): void {
    while (this.#nextMs() <= ms) this.#applyNext();
  }

  /** Applies changes that precede the first of the pending effects although they are due later. */
  #applyBefore(pending: readonly Effect[], untilMs: number): void {
    while (this.#comesFirst(pending, untilMs)) this.#applyNext();
  }

  #applyNext(): void {
    const ms = this.#nextMs();
    const isExpiry = this.#expiryMs() === ms;
    this.#take(this.#next(this.#position), ms < this.#fromMs);
    if (isExpiry) this.#held.shift();
  }

  #next(position: Position): Step {
    const ms = this.#nextMs();
    const [first] = this.#held;
    if (first && this.#expiryMs() === ms) {
      return this.#loss({ ...position, sum: position.sum - first.lamports }, ms, []);
    }
    const moved = { ...position, level: position.level - 1, graceSinceMs: null };
    const { position: after, events } = this.#event(moved, "downgraded", position.level, ms);
    return this.#loss(after, ms, events);
  }

  // ---- the order of an effect and another change ----

  /**
   * Whether the next expiry or end of a grace period precedes the first of the pending effects, although it is
   * due later. Tries each number of effects before it.
   */
  #comesFirst(pending: readonly Effect[], untilMs: number): boolean {
    const nextMs = this.#nextMs();
    const [first] = pending;
    if (!first || nextMs > first.ms + this.#effectMaxMs || nextMs > untilMs) return false;
    const possible = pending.filter(({ ms }) => ms <= nextMs).slice(0, effectsTried);
    let best: readonly RecomputedEvent[] | null = null;
    let isFirst = false;
    for (let before = possible.length; before >= 0; before--) {
      const events = this.#tried(possible, before);
      if (!events || (best && !this.#isBetter(events, best))) continue;
      best = events;
      isFirst = before === 0;
    }
    return isFirst;
  }

  /** The events if `before` of the effects precede the next change. Null: their times contradict this. */
  #tried(effects: readonly Effect[], before: number): RecomputedEvent[] | null {
    const nextMs = this.#nextMs();
    const events: RecomputedEvent[] = [];
    let position = this.#position;
    const take = (step: Step): void => {
      position = step.position;
      events.push(...step.events);
    };
    for (const effect of effects.slice(0, before)) {
      take(this.#effect(position, effect, this.#timeOf(effect, position)));
    }
    if (events.some(({ atMs }) => atMs >= nextMs)) return null;
    const [leaving] = this.#expiryMs() === nextMs ? this.#held : [];
    const isClaimed = effects
      .slice(0, before)
      .some(({ kind, fact }) => kind === "claimed" && fact === leaving);
    if (!isClaimed) take(this.#next(position));
    for (const effect of effects.slice(before)) {
      // The window of a claimed tip ended before its claim took effect, so the claim changes nothing.
      if (effect.kind === "claimed" && effect.fact === leaving) continue;
      take(this.#effect(position, effect, this.#timeOf(effect, position, nextMs)));
    }
    return events;
  }

  /** Whether the stored events contradict fewer of `one`, or confirm more. */
  #isBetter(one: readonly RecomputedEvent[], other: readonly RecomputedEvent[]): boolean {
    const confirmed = [this.#explained(one), this.#explained(other)] as const;
    const contradicted = [one.length - confirmed[0], other.length - confirmed[1]] as const;
    if (contradicted[0] !== contradicted[1]) return contradicted[0] < contradicted[1];
    return confirmed[0] > confirmed[1];
  }

  /** Number of events at the beginning that are stored like this. */
  #explained(events: readonly RecomputedEvent[]): number {
    const at = events.findIndex((event) => !isEqual(event, this.#stored.get(event.number)));
    return at === -1 ? events.length : at;
  }

  /** The stored time of the event that the effect causes, if it is possible; else the earliest time. */
  #timeOf({ ms }: Effect, position = this.#position, leastMs = ms): number {
    const event = this.#stored.get(position.eventCount + 1n);
    const isOwn =
      event?.kind === "upgraded" ||
      event?.kind === "grace_cancelled" ||
      event?.kind === "tip_claimed";
    const isPossible = isOwn && event.atMs >= leastMs && event.atMs <= ms + this.#effectMaxMs;
    return isPossible ? event.atMs : leastMs;
  }

  // ---- effects ----

  #effect(position: Position, { kind, fact }: Effect, ms: number): Step {
    const { lamports } = fact;
    if (kind === "counted") return this.#gain({ ...position, sum: position.sum + lamports }, ms);
    // A claim gives no grace period.
    const sum = position.sum - lamports;
    const isRunning = position.graceSinceMs !== null;
    const level = isRunning ? position.level : Math.min(position.level, this.#reached(sum));
    return this.#event({ ...position, sum, level }, "tip_claimed", position.level, ms);
  }

  #hold({ kind, fact }: Effect): void {
    if (kind === "claimed") {
      const at = this.#held.indexOf(fact);
      if (at >= 0) this.#held.splice(at, 1);
      return;
    }
    const isBehind = (one: CountedFact): boolean =>
      one.registeredMs < fact.registeredMs ||
      (one.registeredMs === fact.registeredMs && one.order < fact.order);
    this.#held.splice(this.#held.findLastIndex(isBehind) + 1, 0, fact);
  }

  #gain(position: Position, ms: number): Step {
    const { level } = position;
    const isOver = position.graceSinceMs !== null && !this.#isBelow(position);
    const first = isOver
      ? this.#event({ ...position, graceSinceMs: null }, "grace_cancelled", level, ms)
      : { position, events: [] };
    const reached = this.#reached(position.sum);
    if (reached <= level) return first;
    const second = this.#event({ ...first.position, level: reached }, "upgraded", level, ms);
    return { position: second.position, events: [...first.events, ...second.events] };
  }

  #loss(position: Position, ms: number, before: readonly RecomputedEvent[]): Step {
    const { graceSinceMs, level } = position;
    if (graceSinceMs !== null || level < 0 || !this.#isBelow(position)) {
      return { position, events: before };
    }
    const begun = this.#event({ ...position, graceSinceMs: ms }, "grace_started", level, ms);
    return { position: begun.position, events: [...before, ...begun.events] };
  }

  #isBelow({ level, sum }: Position): boolean {
    const threshold = this.#rules.tiers[level]?.thresholdLamports;
    return threshold !== undefined && sum < threshold;
  }

  #reached(sum: bigint): number {
    const missed = this.#rules.tiers.findIndex(({ thresholdLamports }) => sum < thresholdLamports);
    return (missed === -1 ? this.#rules.tiers.length : missed) - 1;
  }

  #event(position: Position, kind: TierEventKind, fromLevel: number, atMs: number): Step {
    const number = position.eventCount + 1n;
    const event = {
      number,
      atMs,
      kind,
      from: this.#name(fromLevel),
      to: this.#name(position.level),
      sumLamports: bounded(position.sum),
    };
    return { position: { ...position, eventCount: number }, events: [event] };
  }

  /** `isBefore`: before the anchor only the sum changes, because its events are stored. */
  #take({ position, events }: Step, isBefore: boolean): void {
    this.#position = isBefore ? { ...this.#position, sum: position.sum } : position;
    if (!isBefore) this.#events.push(...events);
  }

  /** The effect of a tip that was counted just before the anchor may have come after it. */
  #isBefore(effect: Effect): boolean {
    if (effect.ms >= this.#fromMs) return false;
    return this.#explained(this.#effect(this.#position, effect, this.#timeOf(effect)).events) === 0;
  }

  #name(level: number): string | null {
    return this.#rules.tiers[level]?.name ?? null;
  }
}

function isEqual(one: RecomputedEvent, other: RecomputedEvent | undefined): boolean {
  return (
    other !== undefined &&
    one.kind === other.kind &&
    one.atMs === other.atMs &&
    one.from === other.from &&
    one.to === other.to &&
    one.sumLamports === other.sumLamports
  );
}

function bounded(sum: bigint): bigint {
  return sum > sumMax ? sumMax : sum;
}

/** The state before `fromMs` that the stored events of the account (ascending) describe. */
export function anchorOf(events: readonly RecomputedEvent[], fromMs: number): Anchor {
  const before = events.filter(({ atMs }) => atMs < fromMs);
  const last = before.at(-1);
  return {
    fromMs,
    tier: last?.to ?? null,
    graceSinceMs: graceOf(before),
    eventCount: last?.number ?? 0n,
  };
}

function graceOf(events: readonly RecomputedEvent[]): number | null {
  // A claim that changes no tier leaves a running grace period as it is.
  const last = events.findLast(({ kind, from, to }) => kind !== "tip_claimed" || from !== to);
  return last?.kind === "grace_started" ? last.atMs : null;
}
