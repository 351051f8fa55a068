// Lifetimes: whether a transaction with a blockhash or nonce value can still land.
//
// Used to observe submissions and registrations. One query to the node serves all transactions with
// the same lifetime; recent lifetimes are queried rarely. Several nodes may answer behind one
// address, and a lagging node may not know a blockhash yet or return an old nonce value. While the
// cluster confirms nothing, no node knows the newest blockhashes. A lifetime therefore counts as expired
// only after two responses some time and some slots apart, and any contradicting response reverts that. After a
// standstill, confirmation first catches up: the first response afterwards is the first that counts.

import { pubkeyOf } from "../primitives.ts";
import { TimerWheel } from "../timer-wheel.ts";

/**
 * The cluster has confirmed so many slots between two responses that both count. It is more than the
 * slots by which confirmation usually follows the newest block, and by which a node lags at first.
 */
const settleSlots = 12n;
/** If fewer slots are confirmed between two such responses, the cluster has stopped. */
const movingSlots = 3n;

export interface LifetimeLimits {
  /** Age of a blockhash at the first query. */
  readonly firstAskMs: number;
  readonly askMs: number;
  /** Interval of queries for old lifetimes, as a share of their age; default 0. */
  readonly askAgeShare?: number;
  /** Shortest time between two responses that both count. It is longer than a node may lag. */
  readonly settleMs: number;
  /** Maximum number of concurrent queries. */
  readonly asksMax: number;
}

/** The facts of a transaction that determine its lifetime. */
interface LifetimeFacts {
  readonly lifetime: Uint8Array;
  readonly nonce: { readonly account: Uint8Array } | null;
}

/** A blockhash as a node knows it, at commitment "confirmed". */
export interface BlockhashState {
  readonly isValid: boolean;
  /** The newest slot that the node knows to be confirmed. */
  readonly slot: bigint;
}

/** Responses of a Solana node; see Outcomes in gateway/submission/types.ts. */
export interface LifetimeAnswers {
  blockhashState(blockhash: string): Promise<BlockhashState>;
  nonceValue(account: string): Promise<string | null>;
}

/** `T`: the owner of this lifetime. */
export class Lifetime<T extends object> {
  readonly key: string;
  readonly facts: LifetimeFacts;
  readonly bornMs: number;
  readonly members = new Set<T>();
  /**
   * Times of the first and of the confirming response that it has expired; null: no such response,
   * or reverted.
   */
  goneMs: number | null = null;
  goneAgainMs: number | null = null;
  /** When a query began whose response was that it is valid; null: no such response. */
  validMs: number | null = null;
  /** Confirmed slot of the first of them. */
  goneSlot = 0n;
  /** After the first of them, the cluster has stopped. */
  isStopped = false;
  /** The nonce account does not exist. */
  isUnknownAccount = false;
  /** When a transaction with this lifetime landed last, and its slot; null: none is known to have landed. */
  landed: { readonly atMs: number; readonly slot: bigint } | null = null;

  constructor(key: string, { lifetime, nonce }: LifetimeFacts, bornMs: number) {
    this.key = key;
    // The bytes are copied, because the facts may be views of a whole request.
    this.facts = {
      lifetime: Uint8Array.from(lifetime),
      nonce: nonce && { account: Uint8Array.from(nonce.account) },
    };
    this.bornMs = bornMs;
  }
}

/** Equal for all transactions with the same lifetime. */
export function lifetimeKeyOf({ lifetime, nonce }: LifetimeFacts): string {
  const value = Buffer.from(lifetime).toString("latin1");
  return nonce ? `${Buffer.from(nonce.account).toString("latin1")}${value}` : value;
}

interface LifetimesDependencies<T extends object> {
  readonly outcomes: LifetimeAnswers;
  nowMs(): number;
  /** Called when a lifetime has expired, for the first time or again. */
  onExpired(lifetime: Lifetime<T>): void;
  failed(error: unknown): void;
}

export class Lifetimes<T extends object> {
  readonly #dependencies: LifetimesDependencies<T>;
  readonly #limits: LifetimeLimits;
  readonly #byKey = new Map<string, Lifetime<T>>();
  readonly #wheel: TimerWheel<Lifetime<T>>;
  /** Lifetimes that are due for a query, in order. */
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

  /** `bornMs`: time of its first use. */
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

  /**
   * A transaction with this lifetime landed in the slot, so its nonce is probably spent. Returns the lifetime.
   * From now on, a response that it has expired counts only if the node knows this slot to be confirmed: others
   * may lack the block whose hash it is.
   */
  landed(facts: LifetimeFacts, slot: bigint): Lifetime<T> | undefined {
    const lifetime = this.of(facts);
    if (!lifetime) return undefined;
    lifetime.landed = { atMs: this.#dependencies.nowMs(), slot };
    if (lifetime.goneMs !== null && lifetime.goneSlot < slot) this.#revert(lifetime);
    this.pollFaster(lifetime);
    return lifetime;
  }

  /** Queries it immediately, because it has probably expired. */
  pollFaster(lifetime: Lifetime<T>): void {
    if (lifetime.goneMs === null && this.#wheel.has(lifetime))
      this.#wheel.set(lifetime, this.#dependencies.nowMs());
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
      const goneSlot = await this.#goneSlot(lifetime);
      if (this.#byKey.get(lifetime.key) === lifetime) this.#answered(lifetime, goneSlot, askedMs);
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

  /** Confirmed slot of the response that it has expired; null: it has not. */
  async #goneSlot(lifetime: Lifetime<T>): Promise<bigint | null> {
    const { lifetime: value, nonce } = lifetime.facts;
    const { outcomes } = this.#dependencies;
    const text: string = pubkeyOf(value);
    if (nonce) {
      const present = await outcomes.nonceValue(pubkeyOf(nonce.account));
      if (present === text) return null;
      lifetime.isUnknownAccount = present === null;
    }
    // A transaction that advances a nonce may have a recent blockhash as its lifetime.
    const { isValid, slot } = await outcomes.blockhashState(text);
    return isValid ? null : slot;
  }

  #answered(lifetime: Lifetime<T>, goneSlot: bigint | null, askedMs: number): void {
    if (goneSlot === null) {
      lifetime.validMs = askedMs;
      this.#revert(lifetime);
    } else if (lifetime.landed !== null && goneSlot < lifetime.landed.slot) {
      return; // the node lags
    } else if (lifetime.goneMs === null) {
      this.#begin(lifetime, goneSlot);
      this.#dependencies.onExpired(lifetime);
    } else if (
      lifetime.goneAgainMs === null &&
      askedMs >= lifetime.goneMs + this.#limits.settleMs
    ) {
      this.#answeredAgain(lifetime, goneSlot);
    }
  }

  #revert(lifetime: Lifetime<T>): void {
    lifetime.goneMs = null;
    lifetime.goneAgainMs = null;
  }

  /** The first response that counts. */
  #begin(lifetime: Lifetime<T>, goneSlot: bigint): void {
    lifetime.goneMs = this.#dependencies.nowMs();
    lifetime.goneSlot = goneSlot;
    lifetime.isStopped = false;
  }

  #answeredAgain(lifetime: Lifetime<T>, goneSlot: bigint): void {
    const slots = goneSlot - lifetime.goneSlot;
    if (slots < 0n) return; // the node lags
    if (slots < movingSlots) {
      lifetime.isStopped = true;
    } else if (lifetime.isStopped) {
      this.#begin(lifetime, goneSlot);
    } else if (slots >= settleSlots) {
      lifetime.goneAgainMs = this.#dependencies.nowMs();
      this.#dependencies.onExpired(lifetime);
    }
  }
}
