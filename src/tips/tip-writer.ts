// Tip writer: writes the state of the tip statistics to the store for the next start.
//
// Called by tip-statistics.ts. It collects changes and writes them once a second, one write at a time; a
// failed write is repeated. A failing store is logged and delays nothing: the statistics continue in
// memory, and the oldest pending changes stay up to the limit.

import type { Clock, Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { RareWarning } from "../core/rare-warning.ts";
import { quartersMax } from "./tip-history.ts";
import type { LandedTip, LandedTipStore, TipQuarter, TipSnapshot } from "./tip-types.ts";

interface TipWriterDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly store: LandedTipStore;
  /** Called when entries of the history were stored. */
  readonly onQuartersStored: () => void;
}

/**
 * A kill of the process loses no tip: until this write, the submission is open, or its end was stored
 * together with its tip.
 */
const writeMs = 1000;
const tipsPerWrite = 4096;
/** A minute at a thousand per second. Changes above the limit are lost at a restart. */
const tipsWaitingMax = 65_536;
const warnEveryMs = 10_000;

export class TipWriter {
  readonly #dependencies: TipWriterDependencies;
  readonly #warning: RareWarning;
  /** Applied after the removals, because a withdrawn tip may have been observed again. */
  readonly #added = new Map<string, LandedTip>();
  readonly #removed = new Set<string>();
  #snapshot: { readonly snapshot: TipSnapshot; readonly quarter: number } | null = null;
  /** Ascending. */
  #quarters: TipQuarter[] = [];
  #forgetBeforeMs: number | null = null;
  #timer: Timer | null = null;
  #writing: Promise<void> | null = null;
  #isClosed = false;

  constructor(dependencies: TipWriterDependencies) {
    this.#dependencies = dependencies;
    this.#warning = new RareWarning(dependencies, warnEveryMs);
  }

  add(tip: LandedTip): void {
    if (this.#added.size < tipsWaitingMax) this.#added.set(tip.signature, tip);
    this.#wake();
  }

  remove(signature: string): void {
    this.#added.delete(signature);
    if (this.#removed.size < tipsWaitingMax) this.#removed.add(signature);
    this.#wake();
  }

  /** Tips before `beforeMs` are deleted. `quarter`: number of the quarter hour since 1970. */
  refreshed(snapshot: TipSnapshot | null, quarter: number, beforeMs: number): void {
    if (snapshot) this.#snapshot = { snapshot, quarter };
    this.#forgetBeforeMs = beforeMs;
    this.#wake();
  }

  addQuarter(tips: TipQuarter): void {
    this.#quarters = [...this.#quarters, tips].slice(-quartersMax);
    this.#wake();
  }

  /** At most one line in ten seconds. */
  warn(what: string, error: unknown): void {
    this.#warning.give(() => `tip statistics: ${what} failed: ${messageOf(error)}`);
  }

  /** Settles when all pending changes are stored, or the store failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = null;
    await this.#writing;
    let isPersisted = true;
    while (isPersisted && this.#isWaiting) isPersisted = await this.#write();
  }

  get #isWaiting(): boolean {
    const count = this.#added.size + this.#removed.size;
    const isRefreshed = this.#snapshot !== null || this.#forgetBeforeMs !== null;
    return count > 0 || isRefreshed || this.#quarters.length > 0;
  }

  #wake(): void {
    if (this.#timer || this.#writing || this.#isClosed) return;
    this.#timer = this.#dependencies.clock.after(writeMs, () => {
      this.#timer = null;
      this.#writing = this.#writeAll();
    });
  }

  async #writeAll(): Promise<void> {
    const waiting = this.#added.size + this.#removed.size;
    let isPersisted = true;
    for (let written = 0; isPersisted && written <= waiting; written += tipsPerWrite) {
      isPersisted = await this.#write();
    }
    this.#writing = null;
    if (this.#isWaiting) this.#wake();
  }

  /** One slice of pending changes. False: the store failed, and all of them are pending again. */
  async #write(): Promise<boolean> {
    const { store } = this.#dependencies;
    const added = firstOf(this.#added.values(), tipsPerWrite);
    const removed = firstOf(this.#removed, tipsPerWrite);
    const snapshot = this.#snapshot;
    const forgetBeforeMs = this.#forgetBeforeMs;
    for (const { signature } of added) this.#added.delete(signature);
    for (const signature of removed) this.#removed.delete(signature);
    this.#snapshot = null;
    this.#forgetBeforeMs = null;
    let areTipsPersisted = false;
    try {
      if (added.length + removed.length > 0) await store.write(added, removed);
      areTipsPersisted = true;
      if (snapshot) await store.keepSnapshot(snapshot.snapshot, snapshot.quarter);
      if (forgetBeforeMs !== null) await store.forgetBefore(forgetBeforeMs);
      await this.#writeQuarters();
      return true;
    } catch (error) {
      if (!areTipsPersisted) this.#takeBack(added, removed);
      this.#snapshot ??= snapshot;
      this.#forgetBeforeMs ??= forgetBeforeMs;
      this.warn("the database", error);
      return false;
    }
  }

  async #writeQuarters(): Promise<void> {
    const { store, onQuartersStored } = this.#dependencies;
    const isWaiting = this.#quarters.length > 0;
    for (;;) {
      const [first] = this.#quarters;
      if (!first) break;
      await store.keepQuarter(first);
      this.#quarters = this.#quarters.filter((one) => one !== first);
    }
    if (isWaiting) onQuartersStored();
  }

  #takeBack(added: readonly LandedTip[], removed: readonly string[]): void {
    for (const tip of added) {
      const { signature } = tip;
      // Removed meanwhile: that is the last state. Added again: that is the first observation now.
      if (this.#removed.has(signature) || this.#added.has(signature)) continue;
      this.#added.set(signature, tip);
    }
    for (const signature of removed) this.#removed.add(signature);
  }
}

function firstOf<T>(values: Iterable<T>, max: number): T[] {
  const first: T[] = [];
  for (const value of values) {
    if (first.length === max) break;
    first.push(value);
  }
  return first;
}
