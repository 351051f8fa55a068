// Traffic check: finds configurations under which the relay drops most of what arrives. Pure.
//
// Called by relay-service.ts every few seconds with the verdicts so far. leaders/schedule-check.ts finds
// a leader schedule that does not fit.

import type { RelaySnapshot } from "./data-plane/snapshot.ts";

/** Fewer packets are not significant. */
const packetsLeast = 32n;

type Verdicts = RelaySnapshot["verdicts"];

export class TrafficCheck {
  #before: Verdicts | null = null;
  #problem: string | null = null;

  /** The problem in the traffic before the last update; null: none, or too little traffic since. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Returns a problem that did not exist at the last update. */
  update({ verdicts }: Pick<RelaySnapshot, "verdicts">, shredVersion: number): string | null {
    const before = this.#before;
    const since = (verdict: keyof Verdicts): bigint =>
      verdicts[verdict] - (before?.[verdict] ?? 0n);
    const packets = totalOf(verdicts) - (before ? totalOf(before) : 0n);
    if (packets > 0n && packets < packetsLeast) return null; // the next update sees more
    const known = this.#problem;
    this.#before = verdicts;
    this.#problem = packets === 0n ? null : problemOf(packets, since, shredVersion);
    return known === null ? this.#problem : null;
  }
}

function totalOf(verdicts: Verdicts): bigint {
  return Object.values(verdicts).reduce((total, count) => total + count, 0n);
}

function problemOf(
  packets: bigint,
  since: (verdict: keyof Verdicts) => bigint,
  shredVersion: number,
): string | null {
  const strangers = since("unknown_source");
  const ofSources = packets - strangers;
  if (ofSources === 0n) {
    return (
      `ALL PACKETS ARE DROPPED: the last ${packets} came from addresses that relay.sources does not contain. ` +
      "Add the address from which the source sends (shredway sources add), or ignore this if they are noise"
    );
  }
  const others = since("wrong_version");
  if (ofSources < packetsLeast || others * 2n <= ofSources) return null;
  return (
    `MOST SHREDS ARE DROPPED: ${others} of the last ${ofSources} packets have another shred version than ` +
    `relay.shredVersion ${shredVersion}. Set the version of the cluster (shredVersion of getClusterNodes), or ` +
    "remove the source of the other cluster"
  );
}
