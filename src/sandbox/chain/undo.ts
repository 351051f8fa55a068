// Undo log: the state of accounts before they were changed.
//
// Called by the chain, with one log per block (for forks) and one per bundle or simulation (for
// atomic execution). Only the first state of each account is stored. A log is dropped when its
// block is rooted; until then it also gives accounts at an older commitment.

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

  /** Call this before a possible change of `key`. */
  remember(key: Uint8Array): void {
    const name = Buffer.from(key).toString("latin1");
    if (this.#before.has(name)) return;
    // A key that is a view would keep its whole transaction in memory.
    this.#before.set(name, { key: key.slice(), handle: this.#svm.handle(key) });
  }

  /** The former state of `key`; undefined: it was not changed. */
  before(key: Uint8Array): AccountHandle | null | undefined {
    return this.#before.get(Buffer.from(key).toString("latin1"))?.handle;
  }

  keys(): Uint8Array[] {
    return [...this.#before.values()].map(({ key }) => key);
  }

  /** Restores all accounts. The log is empty afterwards. */
  rollBack(): void {
    const programs: Before[] = [];
    for (const before of this.#before.values()) {
      if (before.handle?.executable()) programs.push(before);
      else this.#svm.restore(before.key, before.handle);
    }
    // Restoring a program loads its code from another account, so programs come last.
    for (const { key, handle } of programs) this.#svm.restore(key, handle);
    this.#before.clear();
  }

  /** Keeps the effects; `outer` can now undo them. */
  mergeInto(outer: UndoLog): void {
    for (const [name, before] of this.#before) {
      if (!outer.#before.has(name)) outer.#before.set(name, before);
    }
    this.#before.clear();
  }
}
