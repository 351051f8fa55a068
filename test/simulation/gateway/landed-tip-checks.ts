// The checks of the tip statistics: each tip that landed in the last 15 minutes counts once, also after a crash,
// and each quarter hour begins with a snapshot.

import type { TipSnapshot } from "../../../src/tips/tip-types.ts";
import { Violation } from "../relay-checks.ts";
import type { AccountRecord } from "./account-record.ts";
import type { Chain } from "./chain.ts";

/** The window of the statistics, and the time between two snapshots. */
const windowMs = 15 * 60_000;
/** After a restart, the age of a tip follows the wall clock, which may have been set several times. */
const marginMs = 120_000;
/** A snapshot is published so long after the quarter hour at most. */
const lateMs = 15_000;

export interface ShownTips {
  /** Tips in the window. */
  readonly counted: number;
  readonly snapshot: TipSnapshot;
  readonly wallMs: number;
}

interface LandedTipChecksOptions {
  /** All records, by signature. */
  readonly submissions: () => Iterable<readonly AccountRecord[]>;
  readonly chain: Chain;
  readonly nowMs: () => number;
}

export class LandedTipChecks {
  readonly #options: LandedTipChecksOptions;
  #steadySinceMs = 0;

  constructor(options: LandedTipChecksOptions) {
    this.#options = options;
  }

  /** The service runs again, or the clock was set. */
  unsettle(): void {
    this.#steadySinceMs = this.#options.nowMs();
  }

  /** Throws Violation. */
  check({ counted, snapshot, wallMs }: ShownTips): void {
    const nowMs = this.#options.nowMs();
    this.#checkCount("in the window", counted, nowMs);
    const afterMs = wallMs % windowMs;
    const refreshedMs = nowMs - afterMs;
    const isDue = afterMs > lateMs && refreshedMs - this.#steadySinceMs > lateMs;
    if (!isDue) return;
    if (snapshot.isStale) this.#checkCount("in a stale snapshot", 0, refreshedMs);
    else if (snapshot.timeMs < wallMs - afterMs)
      throw new Violation(
        "the statistics of tips follow the quarter hours",
        `a snapshot of ${Math.round((wallMs - snapshot.timeMs) / 1000)} s ago`,
      );
    // Before the next quarter hour, only the early first snapshot is later.
    else if (snapshot.timeMs === wallMs - afterMs)
      this.#checkCount("in a snapshot", snapshot.count, refreshedMs);
  }

  #checkCount(where: string, counted: number, atMs: number): void {
    const { least, most } = this.#countAt(atMs);
    if (counted < least || counted > most)
      throw new Violation(
        "a landed tip counts once",
        `${least} to ${most} tips landed, ${counted} were counted ${where}`,
      );
  }

  /** Between how many tips the window has at that time, which may be past. */
  #countAt(atMs: number): { readonly least: number; readonly most: number } {
    const { submissions, chain } = this.#options;
    const beginMs = atMs - windowMs;
    const paying = [...submissions()].filter(([first]) => (first?.transaction.tip ?? 0) > 0);
    // A block that the service has not seen counts when the node confirms it.
    const mayCount = ({ transaction, firstEnd, endedMs }: AccountRecord): boolean => {
      const shown = chain.showingsOf(transaction.signature);
      if (!shown || shown.firstMs > atMs) return false;
      return firstEnd === null || Math.max(shown.lastMs, endedMs) > beginMs - marginMs;
    };
    const mustCount = ({ transaction, reported, endedMs }: AccountRecord): boolean => {
      const shown = chain.showingsOf(transaction.signature);
      return reported === "landed" && endedMs <= atMs && (shown?.firstMs ?? 0) > beginMs + marginMs;
    };
    return {
      least: paying.filter((owners) => owners.some(mustCount)).length,
      most: paying.filter((owners) => owners.some(mayCount)).length,
    };
  }
}
