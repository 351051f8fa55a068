// Ledger: the blocks of the current fork, with their contents and commitment.
//
// Called by the producer (begin, add, finish, abandon) and by chain.ts (reads). It has one fork:
// abandoned blocks are undone completely. Heights count blocks, not slots. A blockhash is valid for
// the 150 blocks after its own. Bounded: it retains the finished blocks of the last `historySlots`
// slots.

import { lifetimeSlots } from "../../core/solana-constants.ts";
import { AddressIndex, type IndexedSignature } from "./address-index.ts";
import type { ParentEnd } from "./block-shreds.ts";
import type { LandedTransaction } from "./executor.ts";
import type { Block, Commitment, ExecutedTransaction, SignatureStatus } from "./types.ts";
import type { UndoLog } from "./undo.ts";

/**
 * Number of blocks whose messages and blockhashes are retained: the valid ones, and the depth of
 * any fork.
 */
const rememberedBlocks = 300;
export const unrootedBlocksMax = 128;

/** Undoes the changes of a block other than accounts. */
interface BlockUndo {
  readonly accounts: UndoLog;
  readonly others: (() => void)[];
}

interface Record {
  readonly block: Block;
  readonly end: ParentEnd;
  readonly messageKeys: readonly string[];
  /** null once the block is rooted. */
  undo: BlockUndo | null;
}

export interface OpenBlock {
  readonly slot: bigint;
  readonly height: bigint;
  readonly leader: string;
  readonly parent: ParentEnd;
  readonly undo: BlockUndo;
  readonly transactions: ExecutedTransaction[];
  readonly messageKeys: string[];
}

interface LedgerOptions {
  readonly historySlots: number;
  /** A block is confirmed when the tip is this many slots ahead. */
  readonly confirmedDepth: number;
  /** A block is rooted when this many confirmed blocks follow. */
  readonly rootedDepth: number;
}

export class Ledger {
  readonly #options: LedgerOptions;
  readonly #history = new Map<bigint, Record>();
  /** The root and its descendants, oldest first. Never empty. */
  readonly #unsettled: Record[];
  /** The last blocks, oldest first: for blockhashes, duplicate messages and slot hashes. */
  readonly #remembered: Record[];
  readonly #heights = new Map<string, bigint>();
  readonly #messages = new Set<string>();
  readonly #statuses = new Map<string, { slot: bigint; transaction: ExecutedTransaction }>();
  readonly #index = new AddressIndex();
  readonly #firstSlot: bigint;
  #confirmed: Record;
  #open: OpenBlock | null = null;
  #transactions = 0n;

  constructor(root: Block, end: ParentEnd, options: LedgerOptions) {
    const record = { block: root, end, messageKeys: [], undo: null };
    this.#options = options;
    this.#firstSlot = root.slot;
    this.#unsettled = [record];
    this.#remembered = [record];
    this.#confirmed = record;
    this.#history.set(root.slot, record);
    this.#heights.set(root.blockhash, root.blockHeight);
  }

  get tip(): Block {
    return this.#tip.block;
  }

  get tipEnd(): ParentEnd {
    return this.#tip.end;
  }

  get open(): OpenBlock | null {
    return this.#open;
  }

  get transactionCount(): bigint {
    return this.#transactions;
  }

  get rootSlot(): bigint {
    return this.#root.block.slot;
  }

  /** Blocks that a fork can undo. */
  get abandonableCount(): number {
    return this.#unsettled.length - 1;
  }

  slot(commitment: Commitment): bigint {
    return commitment === "processed" && this.#open
      ? this.#open.slot
      : this.blockAt(commitment).slot;
  }

  height(commitment: Commitment): bigint {
    return commitment === "processed" && this.#open
      ? this.#open.height
      : this.blockAt(commitment).blockHeight;
  }

  /** Newest finished block. */
  blockAt(commitment: Commitment): Block {
    switch (commitment) {
      case "processed":
        return this.tip;
      case "confirmed":
        return this.#confirmed.block;
      case "finalized":
        return this.#root.block;
    }
  }

  /** Blocks after the newest block at the commitment, oldest first, including the open one. */
  undoLogsAfter(commitment: Commitment): UndoLog[] {
    if (commitment === "processed") return [];
    const { slot } = this.blockAt(commitment);
    const finished = this.#unsettled.filter(({ block }) => block.slot > slot);
    return [...finished.map(({ undo }) => undo), this.#open?.undo ?? null].flatMap((undo) =>
      undo ? [undo.accounts] : [],
    );
  }

  /** Whether a transaction with this blockhash could be part of the open, or the next, block. */
  isRecent(blockhash: string): boolean {
    const height = this.#heights.get(blockhash);
    if (height === undefined) return false;
    const next = this.#open?.height ?? this.tip.blockHeight + 1n;
    return next <= height + lifetimeSlots;
  }

  wasExecuted(messageKey: string): boolean {
    return this.#messages.has(messageKey);
  }

  /** Finished ancestors of the open block, newest first. */
  slotHashes(): { slot: bigint; hash: Uint8Array }[] {
    return this.#remembered
      .map(({ end }) => ({ slot: end.slot, hash: end.blockhash }))
      .toReversed();
  }

  firstKeptSlot(): bigint {
    const first = this.tip.slot - BigInt(this.#options.historySlots) + 1n;
    return first > this.#firstSlot ? first : this.#firstSlot;
  }

  block(slot: bigint): Block | null | undefined {
    if (slot < this.firstKeptSlot()) return undefined;
    return this.#history.get(slot)?.block ?? null;
  }

  transaction(signature: string): { block: Block; transaction: ExecutedTransaction } | null {
    const found = this.#statuses.get(signature);
    const record = found && this.#history.get(found.slot);
    return record ? { block: record.block, transaction: found.transaction } : null;
  }

  status(signature: string): SignatureStatus | null {
    const found = this.#statuses.get(signature);
    if (!found) return null;
    const { slot, transaction } = found;
    const { err } = transaction;
    if (slot <= this.rootSlot) {
      return { slot, confirmations: null, err, confirmationStatus: "finalized" };
    }
    const height = this.#history.get(slot)?.block.blockHeight ?? this.height("processed");
    return {
      slot,
      confirmations: this.height("processed") - height,
      err,
      confirmationStatus: slot <= this.#confirmed.block.slot ? "confirmed" : "processed",
    };
  }

  signaturesFor(address: string): IndexedSignature[] {
    return this.#index.of(address);
  }

  /** Begins a block on the tip. Returns the slots that this confirms and roots, ascending. */
  begin(slot: bigint, leader: string, undo: BlockUndo): { confirmed: bigint[]; rooted: bigint[] } {
    this.#open = {
      slot,
      height: this.tip.blockHeight + 1n,
      leader,
      parent: this.tipEnd,
      undo,
      transactions: [],
      messageKeys: [],
    };
    return { confirmed: this.#confirm(slot), rooted: this.#settle() };
  }

  add(landed: LandedTransaction, messageKey: string): ExecutedTransaction {
    const open = this.#opened();
    const transaction = { ...landed, index: open.transactions.length };
    open.transactions.push(transaction);
    open.messageKeys.push(messageKey);
    this.#messages.add(messageKey);
    this.#statuses.set(transaction.signature, { slot: open.slot, transaction });
    this.#index.add(transaction, open.slot);
    this.#transactions++;
    return transaction;
  }

  /** Undoes the contents of the open block, and returns them. */
  restart(): readonly ExecutedTransaction[] {
    const { transactions, messageKeys, undo } = this.#opened();
    const undone = transactions.splice(0);
    this.#removeContents(undone, messageKeys.splice(0));
    undo.accounts.rollBack();
    return undone;
  }

  finish(end: ParentEnd, blockhash: string, blockTime: bigint): Block {
    const open = this.#opened();
    const block: Block = {
      slot: open.slot,
      parentSlot: open.parent.slot,
      blockhash,
      previousBlockhash: this.tip.blockhash,
      blockHeight: open.height,
      blockTime,
      leader: open.leader,
      transactions: open.transactions,
    };
    const record = { block, end, messageKeys: open.messageKeys, undo: open.undo };
    this.#open = null;
    this.#unsettled.push(record);
    this.#remembered.push(record);
    this.#history.set(block.slot, record);
    this.#heights.set(blockhash, block.blockHeight);
    this.#forgetOld();
    return block;
  }

  /** Abandons the newest block and undoes its changes; null if it is the root. */
  abandonTip(): Block | null {
    if (this.#open || this.#unsettled.length < 2) return null;
    const record = this.#unsettled.pop();
    if (!record) return null;
    const { block, messageKeys, undo } = record;
    this.#remembered.pop();
    this.#history.delete(block.slot);
    this.#heights.delete(block.blockhash);
    this.#removeContents(block.transactions, messageKeys);
    undo?.accounts.rollBack();
    for (const takeBack of undo?.others.toReversed() ?? []) takeBack();
    if (this.#confirmed === record) this.#confirmed = this.#tip;
    return block;
  }

  #removeContents(
    transactions: readonly ExecutedTransaction[],
    messageKeys: readonly string[],
  ): void {
    for (const key of messageKeys) this.#messages.delete(key);
    for (const transaction of transactions.toReversed()) {
      this.#statuses.delete(transaction.signature);
      this.#index.removeNewest(transaction);
    }
    this.#transactions -= BigInt(transactions.length);
  }

  get #tip(): Record {
    return this.#unsettled.at(-1) ?? this.#confirmed;
  }

  get #root(): Record {
    return this.#unsettled[0] ?? this.#confirmed;
  }

  #opened(): OpenBlock {
    if (!this.#open) throw new RangeError("ledger: expected an open block, got none");
    return this.#open;
  }

  #confirm(tipSlot: bigint): bigint[] {
    const last = tipSlot - BigInt(this.#options.confirmedDepth);
    const confirmed = this.#unsettled.filter(
      ({ block: { slot } }) => slot <= last && slot > this.#confirmed.block.slot,
    );
    this.#confirmed = confirmed.at(-1) ?? this.#confirmed;
    return confirmed.map(({ block }) => block.slot);
  }

  #settle(): bigint[] {
    const rooted: bigint[] = [];
    while (this.#unsettled.indexOf(this.#confirmed) > this.#options.rootedDepth) {
      this.#unsettled.shift();
      this.#root.undo = null;
      rooted.push(this.rootSlot);
    }
    return rooted;
  }

  #forgetOld(): void {
    while (this.#remembered.length > rememberedBlocks) {
      const old = this.#remembered.shift();
      if (!old) break;
      this.#heights.delete(old.block.blockhash);
      for (const key of old.messageKeys) this.#messages.delete(key);
    }
    const first = this.firstKeptSlot();
    for (const [slot, { block }] of this.#history) {
      if (slot >= first || slot >= this.rootSlot) break;
      this.#history.delete(slot);
      for (const transaction of block.transactions) {
        this.#statuses.delete(transaction.signature);
        this.#index.removeOldest(transaction);
      }
    }
  }
}
