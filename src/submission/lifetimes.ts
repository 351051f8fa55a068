// Lifetimes: can a transaction with this blockhash, or this nonce value, still land?
//
// Called by outcome-watch.ts; one question for all transactions with the same lifetime, rarely while
// it is young. Nodes lag, and several may answer behind one address: a blockhash can be unknown to
// one that is behind, a nonce value old. So a lifetime is gone only when two answers that lie apart
// say so, and any answer to the contrary takes it back.

import { pubkeyOf } from "../core/primitives.ts";
import type { TransactionFacts } from "../transactions/facts.ts";
import { TimerWheel } from "./timer-wheel.ts";
import type { Tracked } from "./tracked.ts";
import type { Outcomes } from "./types.ts";

export interface LifetimeLimits {
  /** Blockhashes are not asked about before they are so old. */
  readonly firstAskMs: number;
  readonly askMs: number;
  /** Between two answers that count as two; longer than a node may be behind. */
  readonly settleMs: number;
  /** Questions under way at once. */
  readonly asksMax: number;
}

export class Lifetime {
  readonly key: string;
  readonly facts: TransactionFacts;
  readonly members = new Set<Tracked>();
  /** When it was first found gone, and found so again; null: not, or taken back. */
  goneMs: number | null = null;
  goneAgainMs: number | null = null;
  /** There is no such nonce account. */
  isUnknownAccount = false;

  constructor(key: string, facts: TransactionFacts) {
    this.key = key;
    this.facts = facts;
  }
}

/** The same for all transactions that live and die together. */
export function lifetimeKeyOf({ lifetime, nonce }: TransactionFacts): string {
  const value = Buffer.from(lifetime).toString("latin1");
  return nonce ? `${Buffer.from(nonce.account).toString("latin1")}${value}` : value;
}

export interface LifetimesParts {
  readonly outcomes: Pick<Outcomes, "isBlockhashValid" | "nonceValue">;
  nowMs(): number;
  /** Found gone, for the first time or again: its members should be looked at. */
  gone(lifetime: Lifetime): void;
  failed(error: unknown): void;
}

export class Lifetimes {
  readonly #parts: LifetimesParts;
  readonly #limits: LifetimeLimits;
  readonly #byKey = new Map<string, Lifetime>();
  readonly #wheel: TimerWheel<Lifetime>;
  /** Due, in order. */
  readonly #waiting = new Set<Lifetime>();
  #asked = 0;

  constructor(parts: LifetimesParts, limits: LifetimeLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#wheel = new TimerWheel(100, parts.nowMs());
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** `bornMs`: since when it is known to exist. */
  join(tracked: Tracked, facts: TransactionFacts): void {
    const key = lifetimeKeyOf(facts);
    let lifetime = this.#byKey.get(key);
    if (!lifetime) {
      lifetime = new Lifetime(key, facts);
      this.#byKey.set(key, lifetime);
      const { firstAskMs, askMs } = this.#limits;
      this.#wheel.set(lifetime, tracked.bornMs + (facts.nonce ? askMs : firstAskMs));
    }
    lifetime.members.add(tracked);
  }

  leave(tracked: Tracked, facts: TransactionFacts): void {
    const lifetime = this.of(facts);
    if (!lifetime?.members.delete(tracked) || lifetime.members.size > 0) return;
    this.#byKey.delete(lifetime.key);
    this.#wheel.delete(lifetime);
    this.#waiting.delete(lifetime);
  }

  of(facts: TransactionFacts): Lifetime | undefined {
    return this.#byKey.get(lifetimeKeyOf(facts));
  }

  /** There is reason to think that it is gone. */
  hurry(facts: TransactionFacts): void {
    const lifetime = this.of(facts);
    if (lifetime?.goneMs === null && this.#wheel.has(lifetime)) {
      this.#wheel.set(lifetime, this.#parts.nowMs());
    }
  }

  turn(nowMs: number): void {
    for (const lifetime of this.#wheel.turn(nowMs)) this.#waiting.add(lifetime);
    for (const lifetime of this.#waiting) {
      if (this.#asked >= this.#limits.asksMax) return;
      this.#waiting.delete(lifetime);
      void this.#ask(lifetime, nowMs);
    }
  }

  async #ask(lifetime: Lifetime, askedMs: number): Promise<void> {
    this.#asked++;
    try {
      const isGone = await this.#isGone(lifetime);
      if (this.#byKey.get(lifetime.key) === lifetime) this.#answered(lifetime, isGone, askedMs);
    } catch (error) {
      this.#parts.failed(error);
    } finally {
      this.#asked--;
    }
    if (this.#byKey.get(lifetime.key) !== lifetime) return;
    const { askMs, settleMs } = this.#limits;
    const isHalfKnown = lifetime.goneMs !== null && lifetime.goneAgainMs === null;
    this.#wheel.set(lifetime, this.#parts.nowMs() + (isHalfKnown ? settleMs : askMs));
  }

  async #isGone(lifetime: Lifetime): Promise<boolean> {
    const { lifetime: value, nonce } = lifetime.facts;
    const { outcomes } = this.#parts;
    const text: string = pubkeyOf(value);
    if (nonce) {
      const present = await outcomes.nonceValue(pubkeyOf(nonce.account));
      if (present === text) return false;
      lifetime.isUnknownAccount = present === null;
    }
    // A transaction that advances a nonce may live by a recent blockhash all the same.
    return !(await outcomes.isBlockhashValid(text));
  }

  #answered(lifetime: Lifetime, isGone: boolean, askedMs: number): void {
    if (!isGone) {
      lifetime.goneMs = null;
      lifetime.goneAgainMs = null;
    } else if (lifetime.goneMs === null) {
      lifetime.goneMs = this.#parts.nowMs();
      this.#parts.gone(lifetime);
    } else if (
      lifetime.goneAgainMs === null &&
      askedMs >= lifetime.goneMs + this.#limits.settleMs
    ) {
      lifetime.goneAgainMs = this.#parts.nowMs();
      this.#parts.gone(lifetime);
    }
  }
}
