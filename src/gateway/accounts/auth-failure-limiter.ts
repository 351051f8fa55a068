// Wrong keys, counted by address: so that keys cannot be guessed.
//
// Called by caller.ts. An address that showed too many wrong keys is refused for the rest of its
// minute whatever it shows, except keys that it has used before: others behind the same address
// must not be locked out by one who guesses. Rule: time is handed in, memory is bounded.

const windowNs = 60_000_000_000n;
const failuresMax = 30;
const addressesMax = 10_000;

interface Window {
  failures: number;
  endsNs: bigint;
}

function forgetOldest(map: Map<string, unknown>): void {
  if (map.size <= addressesMax) return;
  const oldest = map.keys().next();
  if (!oldest.done) map.delete(oldest.value);
}

export class AuthFailureLimiter {
  readonly #windows = new Map<string, Window>();
  /** Keys (by id) and where they were used. */
  readonly #used = new Map<string, true>();
  /** The same caller again is the common case. */
  #last = { keyId: "", address: "" };

  /** Seconds until `group` may try again; 0: now. */
  blockedSeconds(group: string, nowNs: bigint): number {
    const window = this.#windows.get(group);
    if (!window || window.failures < failuresMax || window.endsNs <= nowNs) return 0;
    return Math.ceil(Number(window.endsNs - nowNs) / 1e9);
  }

  failed(group: string, nowNs: bigint): void {
    const window = this.#windows.get(group);
    if (window && window.endsNs > nowNs) {
      window.failures++;
      return;
    }
    // In the order of their ends, for all are of one length.
    for (const [other, { endsNs }] of this.#windows) {
      if (endsNs > nowNs) break;
      this.#windows.delete(other);
    }
    this.#windows.set(group, { failures: 1, endsNs: nowNs + windowNs });
    forgetOldest(this.#windows);
  }

  /** Somebody is being counted: only then it is worth to look at addresses. */
  get isWatching(): boolean {
    return this.#windows.size > 0;
  }

  used(keyId: string, address: string): void {
    if (keyId === this.#last.keyId && address === this.#last.address) return;
    this.#last = { keyId, address };
    const pair = `${keyId} ${address}`;
    if (this.#used.has(pair)) return;
    this.#used.set(pair, true);
    forgetOldest(this.#used);
  }

  wasUsed(keyId: string, address: string): boolean {
    return this.#used.has(`${keyId} ${address}`);
  }
}
