// Shred table of a race (`--csv`): one line per judged shred.
//
// Columns: slot, type, fec_set, index, first_ns (since the start of the race), first (feed
// names), and for each feed its delay in nanoseconds after the first arrival, or empty if the
// shred never arrived.

import type { ShredwayError } from "../../core/errors.ts";
import { SessionFile } from "../terminal/session-file.ts";
import { type SlotArrivals, setLeaves } from "./slot-arrivals.ts";

export class ShredTable {
  readonly #file: SessionFile;
  readonly #names: readonly string[];

  /** Throws ShredwayError "system". */
  constructor(path: string, names: readonly string[]) {
    this.#names = names;
    this.#file = new SessionFile(path);
    const lags = names.map((name) => `${name}_ns`);
    this.#write(`slot,type,fec_set,index,first_ns,first,${lags.join(",")}\n`);
    if (this.failure) throw this.failure;
  }

  /** Why the file is incomplete; null: it is not. */
  get failure(): ShredwayError | null {
    return this.#file.failure;
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

  /** Never throws. May be called repeatedly. */
  close(): void {
    this.#file.close();
  }

  #write(text: string): void {
    this.#file.write(Buffer.from(text));
  }
}
