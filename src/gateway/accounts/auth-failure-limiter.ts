// Limits failed API-key checks by client address, so that keys cannot be guessed.
//
// Called by callers.ts. An address with too many failures is blocked until its window ends. Keys
// that were used from that address before are still accepted, so that one client cannot lock out
// others behind the same address. Callers pass the time; memory is bounded.

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
  /** Pairs of key id and address that authenticated before. */
  readonly #used = new Map<string, true>();
  /** The previous pair; most calls repeat it. */
  #last = { keyId: "", address: "" };

  /** Seconds until `group` may try again; 0: it is not blocked. */
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
    // Windows have equal lengths, so the map is in the order of their ends.
    for (const [other, { endsNs }] of this.#windows) {
      if (endsNs > nowNs) break;
      this.#windows.delete(other);
    }
    this.#windows.set(group, { failures: 1, endsNs: nowNs + windowNs });
    forgetOldest(this.#windows);
  }

  /** False: no address has failed, so callers need not determine addresses. */
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
