// Lifetimes: can a transaction with this blockhash, or this nonce value, still land?
//
// Called by the watches of submissions and of registrations; one question for all transactions with
// the same lifetime, rarely while it is young. Nodes lag, and several may answer behind one address: a blockhash can be unknown to
// one that is behind, a nonce value old. So a lifetime is gone only when two answers that lie apart
// say so, and any answer to the contrary takes it back.

import { pubkeyOf } from "../primitives.ts";
import { TimerWheel } from "../timer-wheel.ts";

export interface LifetimeLimits {
  /** Blockhashes are not asked about before they are so old. */
  readonly firstAskMs: number;
  readonly askMs: number;
  /** Old ones are asked about more rarely: after this share of their age; default 0. */
  readonly askAgeShare?: number;
  /** Between two answers that count as two; longer than a node may be behind. */
  readonly settleMs: number;
  /** Questions under way at once. */
  readonly asksMax: number;
}

/** Of the facts of a transaction. */
interface LifetimeFacts {
  readonly lifetime: Uint8Array;
  readonly nonce: { readonly account: Uint8Array } | null;
}

/** A node's answers; see Outcomes of submission/types.ts. */
export interface LifetimeAnswers {
  isBlockhashValid(blockhash: string): Promise<boolean>;
  nonceValue(account: string): Promise<string | null>;
}

/** `T`: who lives and dies with it. */
export class Lifetime<T extends object> {
  readonly key: string;
  readonly facts: LifetimeFacts;
  readonly bornMs: number;
  readonly members = new Set<T>();
  /** When it was first found gone, and found so again; null: not, or taken back. */
  goneMs: number | null = null;
  goneAgainMs: number | null = null;
  /** There is no such nonce account. */
  isUnknownAccount = false;

  constructor(key: string, { lifetime, nonce }: LifetimeFacts, bornMs: number) {
    this.key = key;
    // Copies: the facts may be views of a whole request.
    this.facts = {
      lifetime: Uint8Array.from(lifetime),
      nonce: nonce && { account: Uint8Array.from(nonce.account) },
    };
    this.bornMs = bornMs;
  }
}

/** The same for all transactions that live and die together. */
export function lifetimeKeyOf({ lifetime, nonce }: LifetimeFacts): string {
  const value = Buffer.from(lifetime).toString("latin1");
  return nonce ? `${Buffer.from(nonce.account).toString("latin1")}${value}` : value;
}

interface LifetimesDependencies<T extends object> {
  readonly outcomes: LifetimeAnswers;
  nowMs(): number;
  /** Found gone, for the first time or again: its members should be looked at. */
  gone(lifetime: Lifetime<T>): void;
  failed(error: unknown): void;
}

export class Lifetimes<T extends object> {
  readonly #dependencies: LifetimesDependencies<T>;
  readonly #limits: LifetimeLimits;
  readonly #byKey = new Map<string, Lifetime<T>>();
  readonly #wheel: TimerWheel<Lifetime<T>>;
  /** Due, in order. */
  readonly #waiting = new Set<Lifetime<T>>();
  #asked = 0;

  constructor(dependencies: LifetimesDependencies<T>, limits: LifetimeLimits) {
    this.#dependencies = dependencies;
    this.#limits = limits;
    this.#wheel = new TimerWheel(100, dependencies.nowMs());
  }

  get size(): number {
    return this.#byKey.size;
  }

  /** `bornMs`: since when it is known to exist. */
  join(member: T, facts: LifetimeFacts, bornMs: number): Lifetime<T> {
    const key = lifetimeKeyOf(facts);
    let lifetime = this.#byKey.get(key);
    if (!lifetime) {
      lifetime = new Lifetime(key, facts, bornMs);
      this.#byKey.set(key, lifetime);
      const { firstAskMs, askMs } = this.#limits;
      this.#wheel.set(lifetime, bornMs + (facts.nonce ? askMs : firstAskMs));
    }
    lifetime.members.add(member);
    return lifetime;
  }

  leave(member: T, facts: LifetimeFacts): void {
    const lifetime = this.of(facts);
    if (!lifetime?.members.delete(member) || lifetime.members.size > 0) return;
    this.#byKey.delete(lifetime.key);
    this.#wheel.delete(lifetime);
    this.#waiting.delete(lifetime);
  }

  of(facts: LifetimeFacts): Lifetime<T> | undefined {
    return this.#byKey.get(lifetimeKeyOf(facts));
  }

  /** There is reason to think that it is gone. */
  hurry(facts: LifetimeFacts): void {
    const lifetime = this.of(facts);
    if (lifetime?.goneMs === null && this.#wheel.has(lifetime)) {
      this.#wheel.set(lifetime, this.#dependencies.nowMs());
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

  async #ask(lifetime: Lifetime<T>, askedMs: number): Promise<void> {
    this.#asked++;
    try {
      const isGone = await this.#isGone(lifetime);
      if (this.#byKey.get(lifetime.key) === lifetime) this.#answered(lifetime, isGone, askedMs);
    } catch (error) {
      this.#dependencies.failed(error);
    } finally {
      this.#asked--;
    }
    if (this.#byKey.get(lifetime.key) !== lifetime) return;
    const { askMs, askAgeShare = 0, settleMs } = this.#limits;
    const nowMs = this.#dependencies.nowMs();
    const isHalfKnown = lifetime.goneMs !== null && lifetime.goneAgainMs === null;
    const waitMs = Math.max(askMs, (nowMs - lifetime.bornMs) * askAgeShare);
    this.#wheel.set(lifetime, nowMs + (isHalfKnown ? settleMs : waitMs));
  }

  async #isGone(lifetime: Lifetime<T>): Promise<boolean> {
    const { lifetime: value, nonce } = lifetime.facts;
    const { outcomes } = this.#dependencies;
    const text: string = pubkeyOf(value);
    if (nonce) {
      const present = await outcomes.nonceValue(pubkeyOf(nonce.account));
      if (present === text) return false;
      lifetime.isUnknownAccount = present === null;
    }
    // A transaction that advances a nonce may live by a recent blockhash all the same.
    return !(await outcomes.isBlockhashValid(text));
  }

  #answered(lifetime: Lifetime<T>, isGone: boolean, askedMs: number): void {
    if (!isGone) {
      lifetime.goneMs = null;
      lifetime.goneAgainMs = null;
    } else if (lifetime.goneMs === null) {
      lifetime.goneMs = this.#dependencies.nowMs();
      this.#dependencies.gone(lifetime);
    } else if (
      lifetime.goneAgainMs === null &&
      askedMs >= lifetime.goneMs + this.#limits.settleMs
    ) {
      lifetime.goneAgainMs = this.#dependencies.nowMs();
      this.#dependencies.gone(lifetime);
    }
  }
}
