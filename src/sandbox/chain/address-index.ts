// Which transactions named an address: a list per address, grown at one end, forgotten at the other.
//
// Called by the ledger: blocks are added at the tip, abandoned from the tip and forgotten from the
// oldest. Holds no more than the blocks that the ledger keeps.

import type { ExecutedTransaction } from "./types.ts";

export interface IndexedSignature {
  readonly signature: string;
  readonly slot: bigint;
}

interface List {
  items: IndexedSignature[];
  /** Of the oldest item that still counts. */
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

  /** Takes back the newest transaction that was added. */
  removeNewest(transaction: ExecutedTransaction): void {
    for (const address of transaction.accountKeys) {
      const list = this.#lists.get(address);
      if (!list) continue;
      list.items.pop();
      if (list.first >= list.items.length) this.#lists.delete(address);
    }
  }

  /** Forgets the oldest transaction that is still known. */
  removeOldest(transaction: ExecutedTransaction): void {
    for (const address of transaction.accountKeys) {
      const list = this.#lists.get(address);
      if (!list) continue;
      list.first++;
      if (list.first >= list.items.length) {
        this.#lists.delete(address);
      } else if (list.first > 1024 && list.first * 2 > list.items.length) {
        list.items = list.items.slice(list.first); // pays for itself: half the items go
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
