// Shred table of a race (`--csv`): one line per judged shred.
//
// Columns: slot, type, fec_set, index, first_ns (since the start of the race), first (feed
// names), and for each feed its delay in nanoseconds after the first arrival, or empty if the
// shred never arrived.

import { closeSync, openSync, writeSync } from "node:fs";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { type SlotArrivals, setLeaves } from "./slot-arrivals.ts";

export class ShredTable {
  readonly #file: number;
  readonly #path: string;
  readonly #names: readonly string[];
  #isOpen = true;

  /** Throws ShredwayError "system". */
  constructor(path: string, names: readonly string[]) {
    this.#path = path;
    this.#names = names;
    this.#file = this.#system(() => openSync(path, "w"));
    const lags = names.map((name) => `${name}_ns`);
    this.#write(`slot,type,fec_set,index,first_ns,first,${lags.join(",")}\n`);
  }

  add({ slot, sets, feeds }: SlotArrivals): void {
    const lines: string[] = [];
    for (const [number, { times }] of sets) {
      for (let leaf = 0; leaf < setLeaves; leaf++) {
        const row = times.subarray(leaf * feeds, (leaf + 1) * feeds);
        const first = row.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
        if (!Number.isFinite(first)) continue;
        const lags = Array.from(row, (time) => (Number.isFinite(time) ? String(time - first) : ""));
        const winners = this.#names.filter((_, feed) => row[feed] === first).join("+");
        const type = leaf < 32 ? "data" : "code";
        const index = number * 32 + (leaf % 32);
        lines.push(`${slot},${type},${number * 32},${index},${first},${winners},${lags.join(",")}`);
      }
    }
    if (lines.length > 0) this.#write(`${lines.join("\n")}\n`);
  }

  /** May be called repeatedly. */
  close(): void {
    if (this.#isOpen) closeSync(this.#file);
    this.#isOpen = false;
  }

  #write(text: string): void {
    this.#system(() => writeSync(this.#file, text));
  }

  #system<T>(call: () => T): T {
    try {
      return call();
    } catch (cause) {
      const message = `cannot write ${this.#path}: ${messageOf(cause)}`;
      throw new ShredwayError("system", message, { cause });
    }
  }
}
