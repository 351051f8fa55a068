// Sampler: the relay's current counters, with those of a second ago and of a minute ago.
//
// Called by live-feed.ts once a second while a feed is open. One reading serves all feeds.
// Without feeds nothing is read or stored.

import { type RelayReport, reportBetween } from "../../relay/data-plane/report.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";

/** Minimum time between two stored snapshots. */
const stepNs = 5_000_000_000n;
const minuteNs = 60_000_000_000n;

export interface Sample {
  readonly now: RelaySnapshot;
  /** Change since the previous reading; all rates of the first report are 0. */
  readonly report: RelayReport;
  /** About a minute old; the first snapshot in the first minute. */
  readonly minuteAgo: RelaySnapshot;
}

export class Sampler {
  readonly #read: (() => RelaySnapshot) | null;
  /** Oldest first. */
  #snapshots: RelaySnapshot[] = [];
  #last: RelaySnapshot | null = null;

  /** `read` is null in a process without a relay. */
  constructor(read: (() => RelaySnapshot) | null) {
    this.#read = read;
  }

  take(): Sample | null {
    const now = this.#read?.();
    if (!now) return null;
    const report = reportBetween(this.#last ?? now, now);
    this.#last = now;
    const { takenAtNs } = now;
    const newest = this.#snapshots.at(-1);
    if (!newest || takenAtNs - newest.takenAtNs >= stepNs) this.#snapshots.push(now);
    while ((this.#snapshots[1]?.takenAtNs ?? takenAtNs) <= takenAtNs - minuteNs)
      this.#snapshots.shift();
    return { now, report, minuteAgo: this.#snapshots[0] ?? now };
  }

  forget(): void {
    this.#snapshots = [];
    this.#last = null;
  }
}
