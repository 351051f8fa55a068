// Fair queue: a round-robin queue over accounts, first-in first-out within each account.
//
// landing-confirmation.ts uses it so that an account with many registrations does not delay the
// registrations of other accounts.

export class FairQueue<T extends { readonly accountId: string }> {
  readonly #byAccount = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Does nothing if the item is already queued. */
  add(item: T): void {
    let own = this.#byAccount.get(item.accountId);
    if (!own) {
      own = new Set();
      this.#byAccount.set(item.accountId, own);
    }
    if (own.has(item)) return;
    own.add(item);
    this.#size++;
  }

  delete(item: T): boolean {
    const own = this.#byAccount.get(item.accountId);
    if (!own?.delete(item)) return false;
    this.#size--;
    if (own.size === 0) this.#byAccount.delete(item.accountId);
    return true;
  }

  /** Removes and returns the next item; undefined: the queue is empty. */
  take(): T | undefined {
    for (const [accountId, own] of this.#byAccount) {
      // Re-inserting an account moves it behind all others.
      this.#byAccount.delete(accountId);
      for (const item of own) {
        own.delete(item);
        this.#size--;
        if (own.size > 0) this.#byAccount.set(accountId, own);
        return item;
      }
    }
    return undefined;
  }
}
