// The chain of the simulated cluster: which transactions leaders put into their blocks, forks, and what is
// confirmed. The checks compare the reports of the gateway with it.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { WireTransaction } from "../../../src/sandbox/chain/wire.ts";
import type { SlotPlan, VersionContents } from "../cluster.ts";
import type { SentTransaction } from "./transactions.ts";

/** A transaction lands in the descendants of its block, at most so many blocks later. */
export const lifetimeBlocks = 20;
/** A block with so many descendants is confirmed. Forks of the scenario never reach that far back. */
export const confirmedDepth = 4;
export const finalizedDepth = 12;
/** A leader puts a transaction that it has into its block with this probability. */
const takenShare = 0.8;
/** The same for every fourth transaction, which is in few blocks therefore. */
const unluckyShare = 0.15;
/** A byte of the signature. */
const luckAt = 5;

export interface Block {
  readonly slot: bigint;
  readonly parent: Block | null;
  readonly height: number;
  /** In hex. */
  readonly hash: string;
  /** Errors by signature; null: the transaction succeeded. */
  readonly landed: ReadonlyMap<string, unknown>;
}

interface Group {
  readonly transactions: readonly SentTransaction[];
  /** All of them or none, and none that fails. */
  readonly isBundle: boolean;
}

/** The transactions in the shreds of one slot. */
export interface SlotContents {
  /** Transactions by version of the block, then by FEC set. */
  readonly versions: readonly VersionContents[];
  /** The errors of those that remain in the first version, by signature. */
  readonly landed: ReadonlyMap<string, unknown>;
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
  /** Slots whose shreds contain the transaction, in whatever version. */
  readonly #shown = new Map<string, Set<bigint>>();
  #pending: Group[] = [];

  get tip(): Block | null {
    return this.blocks.at(-1) ?? null;
  }

  get confirmed(): Block | null {
    return ancestorOf(this.tip, confirmedDepth);
  }

  /** A leader has it. */
  arrive(transactions: readonly SentTransaction[], isBundle: boolean): void {
    const isKnown = this.#pending.some(
      (group) =>
        group.isBundle === isBundle &&
        group.transactions.length === transactions.length &&
        group.transactions.every((one, i) => one === transactions[i]),
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
    const versions = Array.from({ length: plan.versions }, (_, version) => {
      const sets = Array.from({ length: plan.sets }, (): WireTransaction[] => []);
      const before = new Set<string>();
      const after = new Map<string, unknown>();
      for (const group of this.#pending) {
        if (!random.happens(takenShareOf(group))) continue;
        const set = random.below(plan.sets);
        const again = begin + random.below(plan.sets - begin);
        const isAgain = random.happens(0.5);
        if (!this.#fits(group, parent, after)) continue;
        const isWithdrawn = set < begin;
        if (isWithdrawn) put(group, sets[set], before);
        if (isWithdrawn && !isAgain) continue;
        const place = isWithdrawn ? again : set;
        for (const transaction of group.transactions) {
          sets[place]?.push(transaction.parsed);
          after.set(transaction.signature, errorOf(transaction));
        }
      }
      for (const signature of [...before, ...after.keys()]) this.#show(signature, plan.slot);
      if (version === 0) {
        for (const [signature, err] of after) landed.set(signature, err);
        for (const signature of before) if (!after.has(signature)) withdrawn.add(signature);
      }
      return sets;
    });
    return { versions, landed, withdrawn };
  }

  /** The slot's block is complete. */
  add({ slot, parent }: SlotPlan, landed: ReadonlyMap<string, unknown>, hash: Uint8Array): Block {
    const before = this.#parentOf(parent);
    const block: Block = {
      slot,
      parent: before,
      height: (before?.height ?? -1) + 1,
      hash: Buffer.from(hash).toString("hex"),
      landed,
    };
    this.blocks.push(block);
    this.#bySlot.set(slot, block);
    this.#byHash.set(block.hash, block);
    for (const signature of landed.keys()) {
      const blocks = this.#withTransaction.get(signature) ?? [];
      this.#withTransaction.set(signature, [...blocks, block]);
    }
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
    return this.#shown.get(signature)?.has(slot) ?? false;
  }

  /** Whether a transaction with this blockhash can land in a block after `tip`. */
  isValid(blockhash: string, tip: Block | null): boolean {
    const block = this.#byHash.get(blockhash);
    if (!block || !tip || tip.height - block.height >= lifetimeBlocks) return false;
    return isAncestor(block, tip);
  }

  #parentOf(slot: bigint): Block | null {
    // A shortened scenario may lack the parent.
    return this.#bySlot.get(slot) ?? this.blocks.findLast((block) => block.slot <= slot) ?? null;
  }

  /** Another fork may still need what has landed. */
  #isAlive({ transactions }: Group): boolean {
    const height = this.tip?.height ?? 0;
    return transactions.every(({ blockhash }) => {
      const block = this.#byHash.get(blockhash);
      return block && height - block.height < lifetimeBlocks + 2 * confirmedDepth;
    });
  }

  #fits(
    { transactions, isBundle }: Group,
    parent: Block | null,
    block: ReadonlyMap<string, unknown>,
  ): boolean {
    return transactions.every(
      ({ signature, blockhash, fails }) =>
        !(isBundle && fails) &&
        !block.has(signature) &&
        this.isValid(blockhash, parent) &&
        !this.find(signature, parent),
    );
  }

  #show(signature: string, slot: bigint): void {
    const slots = this.#shown.get(signature) ?? new Set();
    this.#shown.set(signature, slots.add(slot));
  }
}

function put(
  { transactions }: Group,
  set: WireTransaction[] | undefined,
  signatures: Set<string>,
): void {
  for (const { parsed, signature } of transactions) {
    set?.push(parsed);
    signatures.add(signature);
  }
}

function takenShareOf({ transactions: [first] }: Group): number {
  return (first?.wire[luckAt] ?? 0) % 4 === 0 ? unluckyShare : takenShare;
}

function errorOf({ fails }: SentTransaction): unknown {
  return fails ? { InstructionError: [0, { Custom: 1 }] } : null;
}
