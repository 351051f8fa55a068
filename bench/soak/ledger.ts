// Ledger of the transactions and registrations that the service acknowledged, until their ends are known.

import type { Registration, TransactionStatus } from "../../src/client/index.ts";

interface Acknowledged {
  readonly atMs: number;
  lastLookMs: number;
}

/** The end of a submission; until then it is "open" or "pending". */
const openStates: readonly string[] = ["open", "pending"];
const lookEveryMs = 2000;
const looksMax = 256;

export class Ledger {
  acknowledged = 0;
  /** Ended entries by state. */
  readonly ends = new Map<string, number>();
  /** Acknowledged entries that the service does not know, with the number of their observations. */
  readonly #unknown = new Map<string, number>();
  readonly #open = new Map<string, Acknowledged>();

  add(signatures: readonly string[]): void {
    const atMs = performance.now();
    for (const signature of signatures) {
      this.acknowledged++;
      this.#open.set(signature, { atMs, lastLookMs: atMs });
    }
  }

  get open(): number {
    return this.#open.size;
  }

  /** Age of the oldest entry without an end, in seconds. */
  get oldestSeconds(): number {
    const [first] = this.#open.values();
    return first ? (performance.now() - first.atMs) / 1000 : 0;
  }

  get unknown(): readonly string[] {
    return [...this.#unknown].filter(([, times]) => times > 1).map(([signature]) => signature);
  }

  openSignatures(): string[] {
    return [...this.#open.keys()];
  }

  isOpen(signature: string): boolean {
    return this.#open.has(signature);
  }

  /** The entries whose turn it is to be looked up. */
  due(): string[] {
    const nowMs = performance.now();
    const found: string[] = [];
    for (const [signature, entry] of this.#open) {
      if (nowMs - entry.lastLookMs < lookEveryMs) continue;
      entry.lastLookMs = nowMs;
      found.push(signature);
      if (found.length === looksMax) break;
    }
    return found;
  }

  /** null: the service does not know the signature. */
  note(signature: string, entry: Pick<TransactionStatus | Registration, "state"> | null): void {
    if (entry === null) {
      this.#unknown.set(signature, (this.#unknown.get(signature) ?? 0) + 1);
      return;
    }
    this.#unknown.delete(signature);
    if (openStates.includes(entry.state)) return;
    if (!this.#open.delete(signature)) return;
    this.ends.set(entry.state, (this.ends.get(entry.state) ?? 0) + 1);
  }
}
