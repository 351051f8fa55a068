// The chain of the simulated cluster: which transactions leaders put into their blocks, forks, and what is
// confirmed. The checks compare the reports of the gateway with it.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { WireTransaction } from "../../../src/sandbox/chain/wire.ts";
import type { SlotPlan, VersionContents } from "../cluster.ts";
import { NonceLedger, type NonceStates, type NonceUse } from "./nonce-accounts.ts";
import { NonceVisibility } from "./nonce-visibility.ts";

/** A transaction lands in the descendants of its block, at most so many blocks later. */
export const lifetimeBlocks = 20;
/** A block with so many descendants is confirmed. Forks of the scenario never reach that far back. */
export const confirmedDepth = 4;
export const finalizedDepth = 12;
/** A leader puts a transaction that it has into its block with this probability. */
const takenShare = 0.8;
/** The same for every fourth transaction, which is in few blocks therefore. */
const unluckyShare = 0.15;
/** Blocks that a lagging node lacks. */
export const lagBlocks = 3;
const executionError = { InstructionError: [0, { Custom: 1 }] };
/** A byte of the signature. */
const luckAt = 5;

/** A transaction as leaders see it. */
export interface ChainTransaction {
  readonly signature: string;
  readonly parsed: WireTransaction;
  /** Recent blockhash or nonce value, in hex. */
  readonly blockhash: string;
  /** It lands with an error. */
  readonly fails: boolean;
  /** The nonce that it creates or advances first; null: none. */
  readonly nonce: NonceUse | null;
}

export interface Block {
  readonly slot: bigint;
  readonly parent: Block | null;
  readonly height: number;
  /** In hex. */
  readonly hash: string;
  /** Errors by signature; null: the transaction succeeded. */
  readonly landed: ReadonlyMap<string, unknown>;
  /** The nonce accounts after it. */
  readonly nonces: NonceStates;
}

interface Group {
  readonly transactions: readonly ChainTransaction[];
  /** All of them or none, and none that fails. */
  readonly isBundle: boolean;
}

/** The blocks that contained a transaction, in whatever version. */
interface Showings {
  readonly slots: Set<bigint>;
  readonly firstMs: number;
  lastMs: number;
}

/** The transactions in the shreds of one slot. */
export interface SlotContents {
  /** Transactions by version of the block, then by FEC set. */
  readonly versions: readonly VersionContents[];
  /** The errors of those that remain in the first version, by signature. */
  readonly landed: ReadonlyMap<string, unknown>;
  /** The nonce accounts after the first version. */
  readonly nonces: NonceStates;
  /** Transactions that the first version has before its update-parent marker only. */
  readonly withdrawn: ReadonlySet<string>;
}

/** Whether `block` is `of`, or one of its ancestors. */
export function isAncestor(block: Block, of: Block | null): boolean {
  let at = of;
  while (at && at.height > block.height) at = at.parent;
  return at === block;
}

export function ancestorOf(block: Block | null, blocks: number): Block | null {
  let at = block;
  for (let i = 0; i < blocks && at; i++) at = at.parent;
  return at;
}

export class Chain {
  /** In the order of production. The last one is the tip. */
  readonly blocks: Block[] = [];
  readonly #bySlot = new Map<bigint, Block>();
  readonly #byHash = new Map<string, Block>();
  readonly #withTransaction = new Map<string, Block[]>();
  readonly #shown = new Map<string, Showings>();
  readonly #firstNonces: NonceStates;
  readonly #visibility: NonceVisibility;
  readonly #nowMs: () => number;
  #pending: Group[] = [];
  #stoppedUntilMs = Number.NEGATIVE_INFINITY;
  #addedMs = 0;

  /** `nonces`: the accounts before the first block. */
  constructor(nonces: NonceStates, nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#firstNonces = nonces;
    this.#visibility = new NonceVisibility(nowMs, nonces);
  }

  get tip(): Block | null {
    return this.blocks.at(-1) ?? null;
  }

  get confirmed(): Block | null {
    return ancestorOf(this.tip, confirmedDepth);
  }

  /** For this time, the cluster produces and confirms no block. */
  stop(forMs: number): void {
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.#nowMs() + forMs);
  }

  get sinceLastBlockMs(): number {
    return this.#nowMs() - this.#addedMs;
  }

  get isStopped(): boolean {
    return this.wasStopped(this.#nowMs());
  }

  /** Whether the cluster did not work at a time since `sinceMs`. */
  wasStopped(sinceMs: number): boolean {
    return this.#stoppedUntilMs > sinceMs;
  }

  /** A leader has it. */
  arrive(transactions: readonly ChainTransaction[], isBundle: boolean): void {
    const isKnown = this.#pending.some(
      (group) =>
        group.isBundle === isBundle &&
        group.transactions.length === transactions.length &&
        group.transactions.every(({ signature }, i) => signature === transactions[i]?.signature),
    );
    if (!isKnown) this.#pending.push({ transactions, isBundle });
  }

  /** The leader of this slot puts some of the transactions that it has into its block. */
  fill(plan: SlotPlan, random: SeededRandom): SlotContents {
    const parent = this.#parentOf(plan.parent);
    this.#pending = this.#pending.filter((group) => this.#isAlive(group));
    const restartAfter = plan.restartAfter ?? 0;
    const begin = restartAfter < plan.sets - 1 ? restartAfter : 0;
    const landed = new Map<string, unknown>();
    const withdrawn = new Set<string>();
    let nonces = this.noncesAt(parent);
    const versions = Array.from({ length: plan.versions }, (_, version) => {
      const sets = Array.from({ length: plan.sets }, (): WireTransaction[] => []);
      const before = this.#newBlock(parent);
      const after = this.#newBlock(parent);
      for (const group of this.#pending) {
        if (!random.happens(takenShareOf(group))) continue;
        const set = random.below(plan.sets);
        const again = begin + random.below(plan.sets - begin);
        const isAgain = random.happens(0.5);
        const isWithdrawn = set < begin;
        if (isWithdrawn) before.take(group, sets[set]);
        if (!isWithdrawn || isAgain) after.take(group, sets[isWithdrawn ? again : set]);
      }
      const shown = [...before.landed.keys(), ...after.landed.keys()];
      for (const signature of shown) this.#show(signature, plan.slot);
      if (version === 0) {
        ({ nonces } = after);
        for (const [signature, err] of after.landed) landed.set(signature, err);
        for (const signature of before.landed.keys())
          if (!landed.has(signature)) withdrawn.add(signature);
      }
      return sets;
    });
    return { versions, landed, nonces, withdrawn };
  }

  /** The slot's block is complete. */
  add({ slot, parent }: SlotPlan, contents: SlotContents, hash: Uint8Array): Block {
    const { landed, nonces } = contents;
    const before = this.#parentOf(parent);
    const block: Block = {
      slot,
      parent: before,
      height: (before?.height ?? -1) + 1,
      hash: Buffer.from(hash).toString("hex"),
      landed,
      nonces,
    };
    this.blocks.push(block);
    this.#addedMs = this.#nowMs();
    this.#bySlot.set(slot, block);
    this.#byHash.set(block.hash, block);
    for (const signature of landed.keys()) {
      const blocks = this.#withTransaction.get(signature) ?? [];
      this.#withTransaction.set(signature, [...blocks, block]);
    }
    const seen = Array.from({ length: lagBlocks + 1 }, (_, lag) =>
      this.noncesAt(this.confirmedAt(lag)),
    );
    this.#visibility.add(seen);
    return block;
  }

  blockOf(hash: string): Block | undefined {
    return this.#byHash.get(hash);
  }

  /** The block with the transaction on the chain that ends with `tip`. */
  find(signature: string, tip: Block | null): Block | undefined {
    return this.#withTransaction.get(signature)?.find((block) => isAncestor(block, tip));
  }

  /** Whether a leader has put it into the shreds of the slot, also if it was withdrawn. */
  wasShown(signature: string, slot: bigint): boolean {
    return this.#shown.get(signature)?.slots.has(slot) ?? false;
  }

  /** Whether the shreds of any slot contain it, in whatever version. */
  wasEverShown(signature: string): boolean {
    return this.#shown.has(signature);
  }

  /** When leaders put it into shreds; undefined: never. */
  showingsOf(signature: string): Pick<Showings, "firstMs" | "lastMs"> | undefined {
    return this.#shown.get(signature);
  }

  /** Whether the transaction can land in a block after `tip`. */
  isValid({ blockhash, nonce }: ChainTransaction, tip: Block | null): boolean {
    if (this.#isRecent(blockhash, tip)) return true;
    return new NonceLedger(this.noncesAt(tip), tip?.hash ?? "").isDurable(nonce, blockhash);
  }

  /** Whether the chain has confirmed that nothing can land the transaction any longer. */
  isOver({ blockhash, nonce }: ChainTransaction): boolean {
    const { confirmed } = this;
    const block = this.#byHash.get(blockhash);
    if (!confirmed) return false;
    if (block) return confirmed.height - block.height > lifetimeBlocks;
    return nonce !== null && confirmed.nonces.get(nonce.account)?.value !== blockhash;
  }

  noncesAt(block: Block | null): NonceStates {
    return block?.nonces ?? this.#firstNonces;
  }

  /** The newest confirmed block that a node has which lags by so many blocks. */
  confirmedAt(lag: number): Block | null {
    return ancestorOf(this.blocks.at(-1 - lag) ?? null, confirmedDepth);
  }

  /** Whether a node may have shown this value as confirmed at a time since `sinceMs`. */
  wasNonceVisible(account: string, value: string, sinceMs: number): boolean {
    return this.#visibility.wasVisible(account, value, sinceMs);
  }

  /** Whether a node may have shown another value than this one. */
  wasOtherNonceVisible(account: string, value: string, sinceMs: number): boolean {
    return this.#visibility.wasOtherVisible(account, value, sinceMs);
  }

  #isRecent(blockhash: string, tip: Block | null): boolean {
    const block = this.#byHash.get(blockhash);
    if (!block || !tip || tip.height - block.height >= lifetimeBlocks) return false;
    return isAncestor(block, tip);
  }

  #newBlock(parent: Block | null): BlockInProgress {
    return new BlockInProgress(new NonceLedger(this.noncesAt(parent), parent?.hash ?? ""), {
      isRecent: (blockhash) => this.#isRecent(blockhash, parent),
      isLanded: (signature) => this.find(signature, parent) !== undefined,
    });
  }

  #parentOf(slot: bigint): Block | null {
    // A shortened scenario may lack the parent.
    return this.#bySlot.get(slot) ?? this.blocks.findLast((block) => block.slot <= slot) ?? null;
  }

  /** Another fork may still need what has landed. */
  #isAlive({ transactions }: Group): boolean {
    const height = this.tip?.height ?? 0;
    const states = [this.noncesAt(this.tip), this.noncesAt(this.confirmed)];
    return transactions.every(({ blockhash, nonce }) => {
      const block = this.#byHash.get(blockhash);
      if (block) return height - block.height < lifetimeBlocks + 2 * confirmedDepth;
      return nonce && states.some((nonces) => nonces.get(nonce.account)?.value === blockhash);
    });
  }

  #show(signature: string, slot: bigint): void {
    const nowMs = this.#nowMs();
    const known = this.#shown.get(signature) ?? { slots: new Set(), firstMs: nowMs, lastMs: nowMs };
    known.slots.add(slot);
    known.lastMs = nowMs;
    this.#shown.set(signature, known);
  }
}

/** The chain as the parent of a new block ends it. */
interface ParentView {
  readonly isRecent: (blockhash: string) => boolean;
  readonly isLanded: (signature: string) => boolean;
}

/** A block while its leader fills it. */
class BlockInProgress {
  /** Errors by signature; null: the transaction succeeded. */
  readonly landed = new Map<string, unknown>();
  readonly #ledger: NonceLedger;
  readonly #parent: ParentView;

  constructor(ledger: NonceLedger, parent: ParentView) {
    this.#ledger = ledger;
    this.#parent = parent;
  }

  get nonces(): NonceStates {
    return this.#ledger.states;
  }

  /** Executes the transactions, if all of them can land here. */
  take({ transactions, isBundle }: Group, set: WireTransaction[] | undefined): void {
    if (!transactions.every((transaction) => this.#fits(transaction, isBundle))) return;
    for (const transaction of transactions) {
      const { signature, parsed, nonce, fails, blockhash } = transaction;
      const isDurable = this.#ledger.isDurable(nonce, blockhash);
      const isDone = nonce === null || (fails && !isDurable) || this.#ledger.use(nonce);
      set?.push(parsed);
      this.landed.set(signature, fails || !isDone ? executionError : null);
    }
  }

  #fits({ signature, blockhash, nonce, fails }: ChainTransaction, isBundle: boolean): boolean {
    if ((isBundle && fails) || this.landed.has(signature)) return false;
    if (this.#parent.isLanded(signature)) return false;
    return this.#parent.isRecent(blockhash) || this.#ledger.isDurable(nonce, blockhash);
  }
}

function takenShareOf({ transactions: [first] }: Group): number {
  return (first?.parsed.wire[luckAt] ?? 0) % 4 === 0 ? unluckyShare : takenShare;
}
