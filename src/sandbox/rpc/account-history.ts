// Account history: what an account was at the newest confirmed, or finalized, slot.
//
// Owned by the endpoint, asked by everything that shows accounts. The VM keeps one state, that of
// the tip, but clients rely on commitments: @solana/web3.js takes a durable nonce that has moved on
// at "confirmed" for the end of a transaction that is only processed. So every write is noted with
// its slot until it is rooted. Exact for accounts that were empty, or plain wallets, when they were
// first seen; one that held data before the endpoint opened shows its data of now until then.

import { u64Max } from "../../core/primitives.ts";
import type {
  Account,
  Block,
  ChainApi,
  ChainEvent,
  Commitment,
  ExecutedTransaction,
} from "../chain/types.ts";
import { systemProgramId } from "./programs.ts";
import { isWritable, wireOf, writableKeys } from "./transaction-view.ts";

interface Version {
  /** Of the block that wrote it. */
  readonly slot: bigint;
  readonly account: Account | null;
}

/** Before every slot. */
const baseSlot = -1n;
/** Accounts with data, whose last rooted version is kept as what the next write changes. */
const keptMax = 20_000;

function isPlain(account: Account | null): boolean {
  return !account || (account.data.length === 0 && account.owner === systemProgramId);
}

/** What an account was before its first noted write: a wallet with what it had then, or nothing. */
function baseOf(lamports: bigint, after: Account | null): Account | null {
  if (lamports === 0n) return null;
  if (after) return { ...after, lamports };
  return {
    lamports,
    data: new Uint8Array(0),
    owner: systemProgramId,
    executable: false,
    rentEpoch: u64Max,
  };
}

export class AccountHistory {
  readonly #chain: ChainApi;
  readonly #leave: () => void;
  /** Versions ascending by slot, never none; least recently written accounts first. */
  readonly #versions = new Map<string, Version[]>();
  /** Accounts with versions that are not rooted. */
  readonly #unsettled = new Set<string>();

  constructor(chain: ChainApi) {
    this.#chain = chain;
    this.#leave = chain.subscribe((event) => this.#hear(event));
  }

  /** Accounts with noted versions. */
  get size(): number {
    return this.#versions.size;
  }

  close(): void {
    this.#leave();
    this.#versions.clear();
    this.#unsettled.clear();
  }

  at(address: string, commitment: Commitment): Account | null {
    const noted = commitment === "processed" ? undefined : this.#notedAt(address, commitment);
    return noted ? noted.account : this.#chain.account(address);
  }

  /** Accounts that the program owned, by address. */
  ownedBy(program: string, commitment: Commitment): ReadonlyMap<string, Account> {
    const now = this.#chain.programAccounts(program);
    if (commitment === "processed" || this.#unsettled.size === 0) return now;
    const accounts = new Map(now);
    for (const address of this.#unsettled) {
      const noted = this.#notedAt(address, commitment);
      if (!noted) continue;
      if (noted.account?.owner === program) accounts.set(address, noted.account);
      else accounts.delete(address);
    }
    return accounts;
  }

  #notedAt(address: string, commitment: Commitment): Version | undefined {
    if (!this.#unsettled.has(address)) return undefined;
    const slot = this.#chain.slot(commitment);
    return this.#versions.get(address)?.findLast((version) => version.slot <= slot);
  }

  #hear(event: ChainEvent): void {
    if (event.kind === "executed") this.#note(event.slot, event.transaction);
    else if (event.kind === "abandoned") this.#forget(event.block);
    else if (event.kind === "rooted") this.#settle(event.slot);
  }

  #note(slot: bigint, transaction: ExecutedTransaction): void {
    const wire = wireOf(transaction);
    for (const [index, address] of transaction.accountKeys.entries()) {
      if (!isWritable(wire, index)) continue;
      const account = this.#chain.account(address);
      const lamports = transaction.preBalances[index] ?? 0n;
      const versions = this.#versions.get(address) ?? [
        { slot: baseSlot, account: baseOf(lamports, account) },
      ];
      if (versions.at(-1)?.slot === slot) versions.pop();
      versions.push({ slot, account });
      this.#versions.delete(address);
      this.#versions.set(address, versions);
      this.#unsettled.add(address);
    }
  }

  #forget(block: Block): void {
    for (const address of new Set(block.transactions.flatMap(writableKeys))) {
      const versions = this.#versions.get(address);
      const kept = versions?.findLastIndex(({ slot }) => slot < block.slot) ?? -1;
      versions?.splice(kept + 1);
      if (versions?.length === 1) this.#settled(address, versions);
    }
  }

  #settle(root: bigint): void {
    const block = this.#chain.block(root);
    for (const address of new Set(block?.transactions.flatMap(writableKeys))) {
      const versions = this.#versions.get(address);
      const newest = versions?.findLastIndex(({ slot }) => slot <= root) ?? -1;
      versions?.splice(0, newest);
      if (versions?.length === 1) this.#settled(address, versions);
    }
    this.#bound();
  }

  #settled(address: string, [version]: readonly Version[]): void {
    this.#unsettled.delete(address);
    // What a wallet had before its next write stands in that transaction's balances.
    if (!version || isPlain(version.account)) this.#versions.delete(address);
  }

  #bound(): void {
    for (const address of this.#versions.keys()) {
      if (this.#versions.size <= keptMax) return;
      if (!this.#unsettled.has(address)) this.#versions.delete(address);
    }
  }
}
