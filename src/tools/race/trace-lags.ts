// One-way delays of block engines' trace packets in a race, by feed and region.
//
// Filled by race-live.ts. The delay contains the difference of the two clocks, so it may be negative. Nobody
// signs trace packets; the number of regions of a feed is bounded.

import { LagHistogram } from "../../core/log-linear-histogram.ts";
import type { RelayTrace } from "../../relay/data-plane/traces.ts";
import { regionsMax, traceDelayOf } from "../../relay/shredstream/trace-delays.ts";

export interface RegionLag {
  readonly region: string;
  readonly lag: LagHistogram;
}

export class TraceLags {
  /** Keys are the names of feeds, then of regions. */
  readonly #feeds = new Map<string, Map<string, LagHistogram>>();

  add(trace: RelayTrace): void {
    const found = traceDelayOf(trace);
    if (!found) return;
    const regions = this.#feeds.get(trace.source) ?? new Map<string, LagHistogram>();
    this.#feeds.set(trace.source, regions);
    if (!regions.has(found.region) && regions.size >= regionsMax) return;
    const lag = regions.get(found.region) ?? new LagHistogram();
    regions.set(found.region, lag);
    lag.record(found.delayNs);
  }

  of(feed: string): RegionLag[] {
    return [...(this.#feeds.get(feed) ?? [])].map(([region, lag]) => ({ region, lag }));
  }
}
