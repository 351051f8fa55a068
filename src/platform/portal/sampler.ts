// Sampler: the relay's numbers of now, of a second ago and of a minute ago, for everybody who watches.
//
// Driven by live-feed.ts, once a second while somebody watches. One reading serves all feeds; when
// nobody watches nothing is read and nothing is kept.

import { type RelayReport, reportBetween } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";

/** Whole readings are kept so far apart. */
const stepNs = 5_000_000_000n;
const minuteNs = 60_000_000_000n;

export interface Sample {
  readonly now: RelaySnapshot;
  /** Since the reading before: all rates are 0 with the first one. */
  readonly report: RelayReport;
  /** About a minute ago, or the first one since somebody watches. */
  readonly minuteAgo: RelaySnapshot;
}

export class Sampler {
  readonly #read: (() => RelaySnapshot) | null;
  /** Oldest first. */
  #kept: RelaySnapshot[] = [];
  #last: RelaySnapshot | null = null;

  /** null: there is no relay. */
  constructor(read: (() => RelaySnapshot) | null) {
    this.#read = read;
  }

  take(): Sample | null {
    const now = this.#read?.();
    if (!now) return null;
    const report = reportBetween(this.#last ?? now, now);
    this.#last = now;
    const { takenAtNs } = now;
    const newest = this.#kept.at(-1);
    if (!newest || takenAtNs - newest.takenAtNs >= stepNs) this.#kept.push(now);
    while ((this.#kept[1]?.takenAtNs ?? takenAtNs) <= takenAtNs - minuteNs) this.#kept.shift();
    return { now, report, minuteAgo: this.#kept[0] ?? now };
  }

  forget(): void {
    this.#kept = [];
    this.#last = null;
  }
}
