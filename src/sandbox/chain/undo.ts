// Undo: accounts as they were before something may have written to them.
//
// Called by the chain, one log per block (for forks) and one per bundle or simulation (for all or
// nothing). Only the first state of each account counts. Dropped when the block is rooted; until then it
// also tells what accounts were at an older commitment.

import type { AccountHandle, Svm } from "./svm.ts";

interface Before {
  readonly key: Uint8Array;
  readonly handle: AccountHandle | null;
}

export class UndoLog {
  readonly #svm: Svm;
  readonly #before = new Map<string, Before>();

  constructor(svm: Svm) {
    this.#svm = svm;
  }

  /** To be called before `key` may be written to. */
  remember(key: Uint8Array): void {
    const name = Buffer.from(key).toString("latin1");
    if (this.#before.has(name)) return;
    // A key that is a view would keep its whole transaction in memory.
    this.#before.set(name, { key: key.slice(), handle: this.#svm.handle(key) });
  }

  /** `key` as it was; undefined when nothing could write to it. */
  before(key: Uint8Array): AccountHandle | null | undefined {
    return this.#before.get(Buffer.from(key).toString("latin1"))?.handle;
  }

  keys(): Uint8Array[] {
    return [...this.#before.values()].map(({ key }) => key);
  }

  /** Puts everything back. The log is empty afterwards. */
  rollBack(): void {
    const programs: Before[] = [];
    for (const before of this.#before.values()) {
      if (before.handle?.executable()) programs.push(before);
      else this.#svm.restore(before.key, before.handle);
    }
    // Putting back a program loads its code, which lies in another account.
    for (const { key, handle } of programs) this.#svm.restore(key, handle);
    this.#before.clear();
  }

  /** The effects stay; `outer` can undo them from now on. */
  mergeInto(outer: UndoLog): void {
    for (const [name, before] of this.#before) {
      if (!outer.#before.has(name)) outer.#before.set(name, before);
    }
    this.#before.clear();
  }
}
