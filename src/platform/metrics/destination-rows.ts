// Which destinations have series of their own, and what are the others together?
//
// Asked for each scrape. Fixed destinations always have their own; those of accounts up to a limit, and
// who has one keeps it while he is there: a series that moved between the two would look like traffic.

import type { DestinationSnapshot } from "../../relay/data-plane/snapshot.ts";
import { RunningTotals } from "./running-totals.ts";

export interface DestinationCounts {
  readonly name: string;
  readonly tier: string;
  readonly sent: bigint;
  /** By reason; those that are 0 may be left out. */
  readonly failed: readonly (readonly [reason: string, count: bigint])[];
  readonly icmp: bigint;
  readonly recoveredSent: bigint;
}

/** Label of all destinations without series of their own. */
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

  /** `fixed`: addresses of the configuration's; `max`: how many others have their own. */
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
    const kept = present.filter((address) => this.#shown.has(address)).slice(0, max);
    const chosen = new Set(kept);
    for (const address of present) {
      if (chosen.size >= max) break;
      chosen.add(address);
    }
    this.#shown = chosen;
  }

  #note({ address, tier, sent, icmp, recoveredSent, failed }: DestinationSnapshot): void {
    const totals = this.#others;
    totals.note(address, `${tier} sent`, sent);
    // What is 0 adds nothing, now or later.
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
    // Two destinations of one account share its name.
    name: name === address ? address : `${name} ${address}`,
    tier,
    sent,
    failed: Object.entries(failed).filter(([, count]) => count > 0n),
    icmp,
    recoveredSent,
  };
}
