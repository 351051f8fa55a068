// Destination rows: one time series per destination, and one for all destinations above the limit.
//
// Computed for each scrape. Destinations of the configuration always have a series. Destinations of accounts
// have one up to a limit and keep it until they are removed: a destination that moved from its own series
// into the shared one would look like traffic.

import type { DestinationSnapshot } from "../../relay/data-plane/snapshot.ts";
import { RunningTotals } from "./running-totals.ts";

export interface DestinationCounts {
  readonly name: string;
  readonly tier: string;
  readonly sent: bigint;
  /** Counts by reason; zero counts may be absent. */
  readonly failed: readonly (readonly [reason: string, count: bigint])[];
  readonly icmp: bigint;
  readonly recoveredSent: bigint;
}

/** Label of the series that all destinations above the limit share. */
export const othersName = "others";

interface Columns {
  sent: bigint;
  icmp: bigint;
  recoveredSent: bigint;
  failed: [string, bigint][];
}

export class DestinationRows {
  #shown = new Set<string>();
  readonly #others = new RunningTotals();

  /** `fixed`: addresses of the configuration. `max`: series for destinations of accounts. */
  rows(
    destinations: readonly DestinationSnapshot[],
    fixed: ReadonlySet<string>,
    max: number,
  ): DestinationCounts[] {
    const ofAccounts = destinations.filter(({ address }) => !fixed.has(address));
    this.#choose(ofAccounts, max);
    const rows: DestinationCounts[] = [];
    for (const one of destinations) {
      if (fixed.has(one.address) || this.#shown.has(one.address)) rows.push(rowOf(one));
      else this.#note(one);
    }
    this.#others.finish();
    return [...rows, ...this.#otherRows()];
  }

  #choose(ofAccounts: readonly DestinationSnapshot[], max: number): void {
    const present = ofAccounts.map(({ address }) => address);
    const retained = present.filter((address) => this.#shown.has(address)).slice(0, max);
    const chosen = new Set(retained);
    for (const address of present) {
      if (chosen.size >= max) break;
      chosen.add(address);
    }
    this.#shown = chosen;
  }

  #note({ address, tier, sent, icmp, recoveredSent, failed }: DestinationSnapshot): void {
    const totals = this.#others;
    totals.note(address, `${tier} sent`, sent);
    // A count of 0 adds nothing, so its series begins with the first event.
    if (icmp > 0n) totals.note(address, `${tier} icmp`, icmp);
    if (recoveredSent > 0n) totals.note(address, `${tier} recovered`, recoveredSent);
    for (const [reason, count] of Object.entries(failed)) {
      if (count > 0n) totals.note(address, `${tier} failed ${reason}`, count);
    }
  }

  #otherRows(): DestinationCounts[] {
    const byTier = new Map<string, Columns>();
    for (const [name, count] of this.#others.totals) {
      const [tier = "", column = "", reason = ""] = name.split(" ");
      const row = byTier.get(tier) ?? { sent: 0n, icmp: 0n, recoveredSent: 0n, failed: [] };
      byTier.set(tier, row);
      if (column === "sent") row.sent = count;
      else if (column === "icmp") row.icmp = count;
      else if (column === "recovered") row.recoveredSent = count;
      else row.failed.push([reason, count]);
    }
    return Array.from(byTier, ([tier, row]) => ({ name: othersName, tier, ...row }));
  }
}

function rowOf(one: DestinationSnapshot): DestinationCounts {
  const { name, address, tier, sent, failed, icmp, recoveredSent } = one;
  return {
    // Destinations of one account share its name, so the address makes the label unique.
    name: name === address ? address : `${name} ${address}`,
    tier,
    sent,
    failed: Object.entries(failed).filter(([, count]) => count > 0n),
    icmp,
    recoveredSent,
  };
}
