// Address index: the transactions that mention an address.
//
// Called by the ledger: it adds blocks at the tip, removes abandoned blocks from the tip and
// expired blocks from the oldest. It covers only the blocks that the ledger retains.

import type { ExecutedTransaction } from "./types.ts";

export interface IndexedSignature {
  readonly signature: string;
  readonly slot: bigint;
}

interface List {
  items: IndexedSignature[];
  /** Index of the oldest item that is still valid. */
  first: number;
}

export class AddressIndex {
  readonly #lists = new Map<string, List>();

  add(transaction: ExecutedTransaction, slot: bigint): void {
    const item = { signature: transaction.signature, slot };
    for (const address of transaction.accountKeys) {
      const list = this.#lists.get(address);
      if (list) list.items.push(item);
      else this.#lists.set(address, { items: [item], first: 0 });
    }
  }

  /** Removes the newest transaction. */
  removeNewest(transaction: ExecutedTransaction): void {
    for (const address of transaction.accountKeys) {
      const list = this.#lists.get(address);
      if (!list) continue;
      list.items.pop();
      if (list.first >= list.items.length) this.#lists.delete(address);
    }
  }

  /** Removes the oldest transaction. */
  removeOldest(transaction: ExecutedTransaction): void {
    for (const address of transaction.accountKeys) {
      const list = this.#lists.get(address);
      if (!list) continue;
      list.first++;
      if (list.first >= list.items.length) {
        this.#lists.delete(address);
      } else if (list.first > 1024 && list.first * 2 > list.items.length) {
        list.items = list.items.slice(list.first); // amortized: half of the items are removed
        list.first = 0;
      }
    }
  }

  /** Newest first. */
  of(address: string): IndexedSignature[] {
    const list = this.#lists.get(address);
    return list ? list.items.slice(list.first).toReversed() : [];
  }
}
