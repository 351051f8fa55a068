// Registration places: is there room for one more pending registration on this node?
//
// Held by pending-registrations.ts for the life of the process; landing-confirmation.ts and
// counted-on-acceptance.ts take and give back. Counts only: who has them is their business.

export interface PlaceLimits {
  readonly pendingMax: number;
  readonly pendingPerAccountMax: number;
}

export class PendingCapacity {
  readonly #limits: PlaceLimits;
  /** Pending ones and reserved places, by account. */
  readonly #places = new Map<string, number>();
  #taken = 0;

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  /** A place for one more of the account, which has to be released. False: none is left. */
  reserve(accountId: string): boolean {
    const { pendingMax, pendingPerAccountMax } = this.#limits;
    const own = this.#places.get(accountId) ?? 0;
    if (this.#taken >= pendingMax || own >= pendingPerAccountMax) return false;
    this.take(accountId);
    return true;
  }

  /** The same, whether there is room or not. */
  take(accountId: string): void {
    this.#taken++;
    this.#places.set(accountId, (this.#places.get(accountId) ?? 0) + 1);
  }

  release(accountId: string): void {
    this.#taken--;
    const left = (this.#places.get(accountId) ?? 1) - 1;
    if (left > 0) this.#places.set(accountId, left);
    else this.#places.delete(accountId);
  }
}
