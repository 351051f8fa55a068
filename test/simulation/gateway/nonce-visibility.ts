// When nodes may have shown which value of a nonce account as confirmed.
//
// Nodes lag, and the service knows a value up to two seconds longer. The checks therefore accept each value that
// a node has shown shortly before.

import type { NonceStates } from "./nonce-accounts.ts";

export class NonceVisibility {
  readonly #nowMs: () => number;
  /** The last time at which a node may have shown the value, by account and value. */
  readonly #untilMs = new Map<string, Map<string, number>>();
  #present: readonly NonceStates[];

  /** `first`: the accounts before the first block. */
  constructor(nowMs: () => number, first: NonceStates) {
    this.#nowMs = nowMs;
    this.#present = [first];
  }

  /** A block was added. `states`: of the confirmed blocks that nodes have now. */
  add(states: readonly NonceStates[]): void {
    const nowMs = this.#nowMs();
    for (const nonces of new Set(this.#present)) {
      for (const [account, { value }] of nonces) {
        const values = this.#untilMs.get(account) ?? new Map<string, number>();
        this.#untilMs.set(account, values.set(value, nowMs));
      }
    }
    this.#present = states;
  }

  wasVisible(account: string, value: string, sinceMs: number): boolean {
    return this.#values(account, sinceMs).has(value);
  }

  wasOtherVisible(account: string, value: string, sinceMs: number): boolean {
    const values = this.#values(account, sinceMs);
    values.delete(value);
    return values.size > 0;
  }

  #values(account: string, sinceMs: number): Set<string> {
    const before = [...(this.#untilMs.get(account) ?? [])].filter(([, atMs]) => atMs >= sinceMs);
    const present = this.#present.flatMap((nonces) => nonces.get(account)?.value ?? []);
    return new Set([...before.map(([value]) => value), ...present]);
  }
}
