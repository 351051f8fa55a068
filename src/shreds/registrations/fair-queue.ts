// Fair queue: whose turn is it, when many wait and one account has most of them?
//
// Held by landing-confirmation.ts: one account after the other, each account's own in their order, so that
// no account's registrations wait behind the masses of another one.

export class FairQueue<T extends { readonly accountId: string }> {
  readonly #byAccount = new Map<string, Set<T>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Nothing when it waits already. */
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

  /** The next one, taken out; undefined: none waits. */
  take(): T | undefined {
    for (const [accountId, own] of this.#byAccount) {
      // Behind all the others, if more of it wait.
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
