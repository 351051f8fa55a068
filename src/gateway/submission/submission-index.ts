// Submission index: the open transactions, and those that ended recently, in memory.
//
// Every new call and every status query looks here before it asks the store. The pipeline limits the open
// transactions, this class the ended ones; the store holds them longer.

import { FairCache } from "../../core/fair-cache.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { lifetimeKeyOf } from "../../core/transactions/lifetimes.ts";
import type { AccountTransaction, TrackedTransaction } from "./tracked-transaction.ts";
import type { BundleRecord } from "./types.ts";

const landedNoncesMax = 16_384;
/** The store has all of them; here are those that are asked for again and again. */
const bundlesMax = 16_384;

function bundleKey(accountId: string, bundleId: string): string {
  return `${accountId} ${bundleId}`;
}

/** Contains the authority, so that a stranger cannot block a nonce by submitting a pair for it. */
function pairKeyOf(facts: TransactionFacts | null): string | null {
  if (!facts?.nonce) return null;
  return `${lifetimeKeyOf(facts)}${Buffer.from(facts.nonce.authority).toString("latin1")}`;
}

export class SubmissionIndex {
  readonly #endedMax: number;
  readonly #open = new Map<string, TrackedTransaction>();
  /** Oldest end first. */
  readonly #ended = new Map<string, TrackedTransaction>();
  /** The owners are accounts. */
  readonly #bundles = new FairCache<BundleRecord>(bundlesMax);
  /** Number of open transactions by account. */
  readonly #openByAccount = new Map<string, number>();
  /** Nonce value -> signature of the transaction that landed with it; the owners are accounts. */
  readonly #landedByNonce = new FairCache<string>(landedNoncesMax);
  /** Nonce value and authority -> open transactions that were submitted as one of a pair. */
  readonly #pairs = new Map<string, Set<TrackedTransaction>>();

  constructor(endedMax: number) {
    this.#endedMax = endedMax;
  }

  get openCount(): number {
    return this.#open.size;
  }

  openCountOf(accountId: string): number {
    return this.#openByAccount.get(accountId) ?? 0;
  }

  /** An account has one open transaction more (1) or less (-1). */
  countOpenView(accountId: string, change: 1 | -1): void {
    const count = this.openCountOf(accountId) + change;
    if (count > 0) this.#openByAccount.set(accountId, count);
    else this.#openByAccount.delete(accountId);
  }

  get endedCount(): number {
    return this.#ended.size;
  }

  open(signature: string): TrackedTransaction | undefined {
    return this.#open.get(signature);
  }

  ended(signature: string): TrackedTransaction | undefined {
    return this.#ended.get(signature);
  }

  view(accountId: string, signature: string): AccountTransaction | undefined {
    const tracked = this.#open.get(signature) ?? this.#ended.get(signature);
    return tracked?.views.get(accountId);
  }

  bundle(accountId: string, bundleId: string): BundleRecord | undefined {
    return this.#bundles.get(bundleKey(accountId, bundleId));
  }

  addOpen(tracked: TrackedTransaction): void {
    this.#ended.delete(tracked.signature);
    this.#open.set(tracked.signature, tracked);
  }

  /** It was submitted as one of a pair; holds until its end. */
  joinPair(tracked: TrackedTransaction): void {
    const key = pairKeyOf(tracked.facts);
    if (key === null) return;
    const pair = this.#pairs.get(key) ?? new Set();
    this.#pairs.set(key, pair.add(tracked));
  }

  /** Open transactions with this nonce value and authority that were submitted as one of a pair. */
  pairOf(facts: TransactionFacts | null): readonly TrackedTransaction[] {
    const key = pairKeyOf(facts);
    return key === null ? [] : [...(this.#pairs.get(key) ?? [])];
  }

  addBundle(bundle: BundleRecord): void {
    const { accountId, bundleId } = bundle;
    this.#bundles.set(bundleKey(accountId, bundleId), bundle, accountId);
  }

  forgetBundle(accountId: string, bundleId: string | null): void {
    if (bundleId !== null) this.#bundles.delete(bundleKey(accountId, bundleId));
  }

  /** Call it before the facts are dropped. */
  forget(tracked: TrackedTransaction): void {
    this.#open.delete(tracked.signature);
    this.#leavePair(tracked);
  }

  /** Call it before the facts are dropped. */
  moveToEnded(tracked: TrackedTransaction): void {
    this.#open.delete(tracked.signature);
    this.#ended.set(tracked.signature, tracked);
    this.#leavePair(tracked);
    const hasLanded = tracked.end?.kind === "landed" || tracked.end?.kind === "landed_failed";
    if (hasLanded && tracked.facts?.nonce) {
      const accountId = tracked.views.all[0]?.accountId ?? "";
      this.noteLanded(tracked.facts, tracked.signature, accountId);
    }
    this.#trimEnded();
  }

  /** A transaction of the account landed with the nonce value of `facts`. */
  noteLanded(facts: TransactionFacts, signature: string, accountId: string): void {
    this.#landedByNonce.set(lifetimeKeyOf(facts), signature, accountId);
  }

  /** Signature of the transaction that landed with the same nonce value. */
  landedSibling({ facts }: Pick<TrackedTransaction, "facts">): string | undefined {
    return facts?.nonce ? this.#landedByNonce.get(lifetimeKeyOf(facts)) : undefined;
  }

  forgetEndedBefore(ns: bigint): void {
    for (const [signature, tracked] of this.#ended) {
      if (tracked.end && tracked.end.atNs >= ns) break;
      this.#ended.delete(signature);
    }
    for (const { accountId, bundleId, acceptedNs } of this.#bundles.values()) {
      if (acceptedNs < ns) this.forgetBundle(accountId, bundleId);
    }
  }

  #leavePair(tracked: TrackedTransaction): void {
    const key = pairKeyOf(tracked.facts);
    if (key === null) return;
    const pair = this.#pairs.get(key);
    if (pair?.delete(tracked) && pair.size === 0) this.#pairs.delete(key);
  }

  #trimEnded(): void {
    for (const signature of this.#ended.keys()) {
      if (this.#ended.size <= this.#endedMax) return;
      this.#ended.delete(signature);
    }
  }
}
