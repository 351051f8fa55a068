// Determines the end of every transaction: by the node, with the times of the shred feed if there is one.
//
// Called by run.ts every `pollMs`. A landing counts at "confirmed". A transaction is "expired" only if the chain
// has passed its last valid block height and the node, asked afterwards, does not know it. The same holds for a
// nonce whose value has changed. Failed calls to the node are repeated at the next poll.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { SignatureOutcome } from "../../gateway/submission/types.ts";
import type { LandNode } from "./node.ts";
import type { EndState, RoundRecord, TransactionEnd, TransactionRecord } from "./records.ts";
import type { ShredObserver } from "./shred-observer.ts";

/** Attempts to read a block. */
const blockTriesMax = 5;
/** Blocks in memory. */
const blocksMax = 64;
/** Answers of nodes about older transactions come from their history. */
const recentNs = 60_000_000_000n;

interface OutcomesOptions {
  readonly node: LandNode;
  readonly nonceAccount: string | null;
  readonly observer: ShredObserver | null;
  readonly clock: Clock;
  readonly onEnd: (round: RoundRecord, transaction: TransactionRecord, end: TransactionEnd) => void;
  readonly onNote: (text: string) => void;
}

interface Waiting {
  readonly round: RoundRecord;
  readonly transaction: TransactionRecord;
  /** Whether this process sent it: otherwise nobody observed when it landed. */
  readonly isLive: boolean;
  /** First time that the node knew it. */
  nodeSeenNs: bigint | null;
}

/** Facts of the chain, read before the statuses that they decide about. */
interface ChainState {
  readonly height: number | null;
  readonly nonce: string | null;
}

export class Outcomes {
  readonly #options: OutcomesOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #blocks = new Map<number, { signatures: readonly string[] | null; tries: number }>();
  #isPolling = false;
  #lastNote = "";

  constructor(options: OutcomesOptions) {
    this.#options = options;
  }

  /** Number of transactions without an end. */
  get open(): number {
    return this.#waiting.size;
  }

  /** `isLive`: this process sends it; otherwise an earlier one may have sent it. */
  add(round: RoundRecord, isLive: boolean): void {
    for (const transaction of round.transactions) {
      if (transaction.end) continue;
      this.#waiting.set(transaction.signature, { round, transaction, isLive, nodeSeenNs: null });
    }
  }

  /** Never rejects. A call during another one does nothing. */
  async poll(): Promise<void> {
    if (this.#isPolling || this.#waiting.size === 0) return;
    this.#isPolling = true;
    try {
      await this.#poll();
      this.#lastNote = "";
    } catch (error) {
      const text = messageOf(error);
      if (text !== this.#lastNote) this.#options.onNote(`node: ${text}; asking again`);
      this.#lastNote = text;
    } finally {
      this.#isPolling = false;
    }
  }

  /** Ends all transactions that have none yet: the benchmark waits no longer. */
  giveUp(): void {
    for (const { round, transaction } of this.#waiting.values()) {
      this.#finish(round, transaction, { state: "not_landed", landing: null });
    }
  }

  async #poll(): Promise<void> {
    const state = await this.#chainState();
    const recent: Waiting[] = [];
    const older: Waiting[] = [];
    const nowNs = this.#options.clock.nowNs();
    for (const waiting of this.#waiting.values()) {
      const sentNs = waiting.transaction.answer?.sentNs ?? 0n;
      (nowNs - sentNs < recentNs ? recent : older).push(waiting);
    }
    await this.#judge(recent, false, state);
    await this.#judge(older, true, state);
  }

  async #chainState(): Promise<ChainState> {
    const { node, nonceAccount } = this.#options;
    if (nonceAccount !== null) {
      return { height: null, nonce: (await node.nonce(nonceAccount)).value };
    }
    return { height: await node.blockHeight(), nonce: null };
  }

  async #judge(waiting: readonly Waiting[], searchHistory: boolean, state: ChainState) {
    if (waiting.length === 0) return;
    const signatures = waiting.map(({ transaction }) => transaction.signature);
    const statuses = await this.#options.node.statuses(signatures, searchHistory);
    const seenNs = this.#options.clock.nowNs();
    const ended: { each: Waiting; status: SignatureOutcome }[] = [];
    for (const [i, each] of waiting.entries()) {
      const status = statuses[i] ?? null;
      if (!status) this.#missing(each, state);
      else {
        each.nodeSeenNs ??= seenNs;
        if (status.commitment !== "processed") ended.push({ each, status });
      }
    }
    for (const { each, status } of ended) await this.#landed(each, status);
  }

  #missing({ round, transaction }: Waiting, { height, nonce }: ChainState): void {
    const { lastValidBlockHeight: last } = round;
    const state: EndState | null =
      last !== null && height !== null && height > last
        ? "expired"
        : round.nonce !== null && nonce !== null && nonce !== round.nonce
          ? "superseded"
          : null;
    if (state) this.#finish(round, transaction, { state, landing: null });
  }

  async #landed(each: Waiting, { slot, err }: SignatureOutcome): Promise<void> {
    const { round, transaction, nodeSeenNs } = each;
    const block = await this.#position(Number(slot), transaction.signature);
    if (block === "later") return;
    const sentNs = transaction.answer?.sentNs ?? null;
    const seen = this.#options.observer?.observation(transaction.signature, Number(slot)) ?? null;
    const via = this.#options.observer ? "shreds" : "node";
    const atNs = via === "shreds" ? (seen?.seenNs ?? null) : nodeSeenNs;
    const shred = seen && {
      fecSet: seen.fecSet,
      shredIndex: seen.shredIndex,
      batchIndex: seen.batchIndex,
      ordinal: seen.ordinal,
    };
    const isTimed = each.isLive && sentNs !== null && atNs !== null;
    this.#finish(round, transaction, {
      state: err === null ? "landed" : "failed",
      landing: {
        slot: Number(slot),
        slots: Number(slot) - round.slot,
        timeNs: isTimed ? Number(atNs - sentNs) : null,
        via,
        shred,
        block,
        error: err === null ? null : JSON.stringify(err).slice(0, 200),
      },
    });
  }

  /** "later": the block is not available yet. */
  async #position(slot: number, signature: string) {
    const known = this.#blocks.get(slot) ?? { signatures: null, tries: 0 };
    this.#blocks.set(slot, known);
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > blocksMax && oldest !== undefined) this.#blocks.delete(oldest);
    if (!known.signatures && known.tries < blockTriesMax) {
      known.tries++;
      known.signatures = await this.#options.node.blockSignatures(slot).catch(() => null);
      if (!known.signatures) return known.tries < blockTriesMax ? "later" : null;
    }
    const index = known.signatures?.indexOf(signature) ?? -1;
    return index < 0 ? null : { index, transactions: known.signatures?.length ?? 0 };
  }

  #finish(round: RoundRecord, transaction: TransactionRecord, end: TransactionEnd): void {
    this.#waiting.delete(transaction.signature);
    this.#options.observer?.unwatch(transaction.signature);
    transaction.end = end;
    this.#options.onEnd(round, transaction, end);
  }
}
