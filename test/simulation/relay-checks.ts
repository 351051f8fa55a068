// The checks of the relay at every step: what may leave, what must leave, and what the counters say.
//
// It shares no code with the relay. It knows the authentic shreds from the cluster, the arrivals from the
// sources, and who may get what from the caller. docs/simulation.md lists the invariants.

import { type VerdictName, verdictNames } from "../../src/relay/data-plane/names.ts";
import type { RelaySnapshot } from "../../src/relay/data-plane/snapshot.ts";
import type { AuthenticShred, Cluster } from "./cluster.ts";
import type { Sent } from "./network.ts";

/** Tiers are numbers here: 0 is the narrowest. A source of tier n serves tiers n and wider. */
export interface Entitlement {
  /** The widest tier that it may have now; -1: it may get nothing. */
  readonly may: number;
  /** The widest tier that it has for certain; -1: nothing has to leave to it. */
  readonly must: number;
  /** When the last tip of its customer was counted: its tier may have changed between `must` and `may`. */
  readonly tipMs?: number;
}

export interface CheckedArrival {
  /** Index of the source. */
  readonly source: number;
  readonly packet: Uint8Array;
}

export interface CheckedSource {
  readonly name: string;
  /** -1: for own use. */
  readonly tier: number;
}

export interface StepFacts {
  readonly nowMs: number;
  readonly arrivals: readonly CheckedArrival[];
  readonly sent: readonly Sent[];
  readonly sources: readonly CheckedSource[];
  readonly entitlements: ReadonlyMap<string, Entitlement>;
  /** Reads the counters. It takes longer than everything else, so it is called when it can decide. */
  readonly snapshot: () => RelaySnapshot;
  /** The newest slot that a leader has produced; undefined: none. */
  readonly newestSlot: bigint | undefined;
  /** The wall clock was set, or the service started, a short time ago. */
  readonly isUnsettled: boolean;
}

/** An authentic shred in this life of the relay. */
interface KnownShred {
  readonly shred: AuthenticShred;
  /** Bits of the tiers for which a source has delivered it. */
  tiers: number;
  readonly firstMs: number;
  /** Bits of the destinations that have it. */
  served: number;
  /** Bits of the destinations to which it was either sent in vain, or refused. */
  uncertain: number;
}

const sentVerdicts: ReadonlySet<VerdictName> = new Set([
  "first",
  "new_tier",
  "equivocation",
  "first_forwardable",
  "own_use",
  "duplicate",
]);
/** An authentic shred of a present slot is refused for these reasons only. */
const reasonsForAuthentic: ReadonlySet<VerdictName> = new Set([
  "source_over_budget",
  "equivocation_excess",
]);
/** Also one of a slot far away, or after a change of the clock. */
const reasonsOfSlots: ReadonlySet<VerdictName> = new Set(["slot_behind", "slot_ahead"]);
const presentSlots = 16n;
/** Shreds that wait for a check get their verdict within this time. */
const pendingMs = 200;

export class Violation extends Error {
  readonly invariant: string;

  constructor(invariant: string, text: string) {
    super(`${invariant}: ${text}`);
    this.invariant = invariant;
  }
}

type Counts = Map<string, bigint>;

/** Everything since the last reading of the counters. */
interface Window {
  steps: number;
  /** Packets by source. */
  readonly arrived: number[];
  readonly forged: number[];
  /** Whether a source has delivered shreds of slots far away. */
  readonly isFar: boolean[];
  /** Datagrams by destination. */
  readonly left: Map<string, number>;
}

/** The content of a packet. */
interface Learned {
  readonly source: number;
  /** The content of a source that is forwarded; undefined: neither an authentic shred, nor one with another signature. */
  readonly known: KnownShred | undefined;
  readonly isAuthentic: boolean;
}

/** A shred that should have left. */
interface Missing {
  readonly source: number;
  readonly address: string;
  readonly known: KnownShred;
  /** False: it arrived with a forged signature, so that it may leave, and need not. */
  readonly isAuthentic: boolean;
}

const windowSteps = 25;
/** Destinations are bits of an integer of V8. */
const bitsMax = 30;

function newWindow(): Window {
  return { steps: 0, arrived: [], forged: [], isFar: [], left: new Map() };
}

/** A shred that a destination lacks, and the sources that delivered it for this destination. */
interface MissingShred {
  readonly known: KnownShred;
  readonly address: string;
  readonly sources: Set<number>;
  /** The sources that delivered it, over all destinations that lack it. */
  readonly allSources: Set<number>;
}

function shredsOf(missing: readonly Missing[]): MissingShred[] {
  const shreds = new Map<string, MissingShred>();
  const sourcesOf = new Map<KnownShred, Set<number>>();
  for (const { known, source, address } of missing) {
    const allSources = sourcesOf.get(known) ?? new Set();
    sourcesOf.set(known, allSources);
    allSources.add(source);
    const key = `${known.shred.name} ${address}`;
    const shred = shreds.get(key) ?? { known, address, sources: new Set(), allSources };
    shreds.set(key, shred);
    shred.sources.add(source);
  }
  return [...shreds.values()];
}

function sumOf(counts: Readonly<Record<string, bigint>>): bigint {
  return Object.values(counts).reduce((sum, count) => sum + count, 0n);
}

function hexOf(address: string): string {
  return Buffer.from(address, "latin1").toString("hex");
}

export class RelayChecks {
  readonly #cluster: Cluster;
  readonly #keyOf: (address: string) => string;
  readonly #shreds = new Map<AuthenticShred, KnownShred>();
  /** The bit of each destination. */
  readonly #bits = new Map<string, number>();
  /** When the entitlement of a destination last changed. */
  readonly #changes = new Map<string, Entitlement & { readonly sinceMs: number }>();
  #counts: Counts = new Map();
  /** When the counters were last read. */
  #readMs = 0;
  /** The counters of each source when they were last read, by its name. */
  readonly #verdicts = new Map<string, Readonly<Record<VerdictName, bigint>>>();
  #window = newWindow();
  /** Since the begin of this life, by source. */
  readonly #arrived: number[] = [];
  readonly #quietSinceMs: number[] = [];

  /** `keyOf`: the identity in `Sent` of an address that the relay writes. */
  constructor(cluster: Cluster, keyOf: (address: string) => string) {
    this.#cluster = cluster;
    this.#keyOf = keyOf;
  }

  /** Throws Violation. */
  check(facts: StepFacts): void {
    const hasChanged = this.#noteEntitlements(facts);
    const forgedBefore = this.#forgedCount();
    const arrived = facts.arrivals.map((arrival) => this.#learn(arrival, facts));
    this.#checkSent(facts);
    const missing = this.#findMissing(facts, arrived);
    this.#window.steps++;
    const isDue =
      hasChanged ||
      missing.length > 0 ||
      this.#forgedCount() > forgedBefore ||
      this.#window.steps >= windowSteps;
    if (isDue) this.#checkCounters(facts, missing);
    this.#forget(facts.newestSlot);
  }

  #forgedCount(): number {
    return this.#window.forged.reduce((sum, count) => sum + count, 0);
  }

  /** Returns whether any has changed. */
  #noteEntitlements({ entitlements, nowMs }: StepFacts): boolean {
    let hasChanged = false;
    const note = (address: string, { may, must, tipMs = 0 }: Entitlement): void => {
      const before = this.#changes.get(address);
      if (before?.may === may && before.must === must && tipMs <= before.sinceMs) return;
      this.#changes.set(address, { may, must, sinceMs: nowMs });
      hasChanged = true;
    };
    for (const [address, entitlement] of entitlements) note(address, entitlement);
    for (const address of this.#changes.keys())
      if (!entitlements.has(address)) note(address, { may: -1, must: -1 });
    return hasChanged;
  }

  #learn({ source, packet }: CheckedArrival, { nowMs, sources, newestSlot }: StepFacts): Learned {
    const { arrived, forged, isFar } = this.#window;
    arrived[source] = (arrived[source] ?? 0) + 1;
    this.#arrived[source] = (this.#arrived[source] ?? 0) + 1;
    this.#quietSinceMs[source] = nowMs;
    const shred = this.#cluster.find(packet);
    if (!shred) forged[source] = (forged[source] ?? 0) + 1;
    else if (newestSlot === undefined || newestSlot - shred.place.slot > presentSlots)
      isFar[source] = true;
    const content = shred ?? this.#cluster.findSigned(packet);
    const tier = sources[source]?.tier ?? -1;
    const isAuthentic = shred !== undefined;
    if (!content || tier < 0) return { source, known: undefined, isAuthentic };
    let known = this.#shreds.get(content);
    if (!known) {
      known = { shred: content, tiers: 0, firstMs: nowMs, served: 0, uncertain: 0 };
      this.#shreds.set(content, known);
    }
    known.tiers |= (0xff << tier) & 0xff;
    return { source, known, isAuthentic };
  }

  #checkSent({ sent, entitlements, nowMs }: StepFacts): void {
    const { left } = this.#window;
    for (const { to, packet } of sent) {
      const shred = this.#cluster.find(packet);
      left.set(to, (left.get(to) ?? 0) + 1);
      if (!shred)
        throw new Violation(
          "no forged shred leaves",
          `${this.#cluster.describe(packet)} left to ${hexOf(to)}`,
        );
      const { name } = shred;
      const { may, must } = entitlements.get(to) ?? { may: -1, must: -1 };
      if (may < 0)
        throw new Violation("nothing leaves without entitlement", `${name} left to ${hexOf(to)}`);
      const known = this.#shreds.get(shred);
      if (!known || (known.tiers & (1 << may)) === 0)
        throw new Violation(
          "no shred of a tier that the destination lacks",
          `${name} left to ${hexOf(to)}, whose tier is ${may}`,
        );
      const bit = this.#bitOf(to);
      const changedMs = this.#changes.get(to)?.sinceMs ?? nowMs;
      // Between two tiers, the service may change from one to the other at any time.
      const isCertain = may === must && known.firstMs > changedMs;
      if ((known.served & bit) !== 0 && isCertain)
        throw new Violation("no destination gets a shred twice", `${name} to ${hexOf(to)}`);
      known.served |= bit;
    }
  }

  #findMissing(
    { entitlements, sources, nowMs }: StepFacts,
    arrived: readonly Learned[],
  ): Missing[] {
    const missing: Missing[] = [];
    if (arrived.length === 0) return missing;
    for (const [address, { must }] of entitlements) {
      if (must < 0) continue;
      const changedMs = this.#changes.get(address)?.sinceMs ?? nowMs;
      const bit = this.#bitOf(address);
      for (const { source, known, isAuthentic } of arrived) {
        if (!known || ((known.served | known.uncertain) & bit) !== 0) continue;
        if (known.firstMs <= changedMs || (sources[source]?.tier ?? -1) > must) continue;
        missing.push({ source, address, known, isAuthentic });
      }
    }
    return missing;
  }

  #checkCounters(facts: StepFacts, missing: readonly Missing[]): void {
    const snapshot = facts.snapshot();
    const before = this.#counts;
    this.#counts = new Map();
    this.#checkReceived(snapshot, before);
    const { sources } = facts;
    const excuses = sources.map((_, source) => this.#checkVerdicts(facts, snapshot, source));
    const failures = this.#checkDestinations(snapshot, before);
    for (const { address, known } of missing)
      if ((failures.get(address) ?? 0n) !== 0n) known.uncertain |= this.#bitOf(address);
    const authentic = missing.filter(({ isAuthentic }) => isAuthentic);
    this.#explain(
      authentic,
      sources.map(({ name }, source) => ({ name, refused: excuses[source] ?? 0 })),
      failures,
    );
    this.#readMs = facts.nowMs;
    this.#window = newWindow();
  }

  /**
   * A missing shred was refused from each source that delivered it, or its datagram failed. Throws Violation if
   * refusals and failures together do not explain all of them. `failures`: those that explain nothing yet.
   */
  #explain(
    missing: readonly Missing[],
    sources: readonly { readonly name: string; readonly refused: number }[],
    failures: Map<string, bigint>,
  ): void {
    const mayHaveFailed = (address: string): boolean => (failures.get(address) ?? 0n) > 0n;
    const left = sources.map(({ refused }) => refused);
    const refused = new Map<KnownShred, Set<number>>();
    // One refusal explains it at all destinations.
    const refuse = ({ known, sources: from }: MissingShred): boolean => {
      const before = refused.get(known) ?? new Set();
      const further = [...from].filter((source) => !before.has(source));
      if (!further.every((source) => (left[source] ?? 0) > 0)) return false;
      for (const source of further) left[source] = (left[source] ?? 0) - 1;
      refused.set(known, new Set([...before, ...further]));
      return true;
    };
    // Where nothing has failed, only refusals explain it. A shred of one source needs the fewest: a refusal that
    // explains one of several sources at one destination may not explain it at the next.
    const shreds = shredsOf(missing).toSorted(
      (a, b) =>
        Number(mayHaveFailed(a.address)) - Number(mayHaveFailed(b.address)) ||
        a.allSources.size - b.allSources.size ||
        a.sources.size - b.sources.size,
    );
    for (const shred of shreds) {
      if (refuse(shred)) continue;
      const { known, address, sources: from } = shred;
      if (!mayHaveFailed(address)) {
        const names = [...from].map((source) => {
          const { name = "", refused: count = 0 } = sources[source] ?? {};
          return `${name} (${count} refused)`;
        });
        throw new Violation(
          "every authentic shred leaves, or a reason is counted",
          `${known.shred.name} to ${hexOf(address)}, from ${names.join(", ")}; ${shreds.length} are missing`,
        );
      }
      failures.set(address, (failures.get(address) ?? 0n) - 1n);
      const isCertain = [...from].every((source) => sources[source]?.refused === 0);
      if (isCertain) known.served |= this.#bitOf(address); // it is not sent again
    }
  }

  #checkReceived({ received }: RelaySnapshot, before: Counts): void {
    this.#counts.set("received", received);
    const counted = received - (before.get("received") ?? 0n);
    const arrived = this.#window.arrived.reduce((sum, count) => sum + count, 0);
    if (counted === BigInt(arrived)) return;
    throw new Violation(
      "every packet is counted",
      `${arrived} arrived, and ${counted} were counted as received`,
    );
  }

  /** Returns how many authentic arrivals of the source may have been refused, or still wait. */
  #checkVerdicts(facts: StepFacts, snapshot: RelaySnapshot, source: number): number {
    const name = facts.sources[source]?.name ?? "";
    const row = snapshot.sources.find((each) => each.name === name);
    const verdictsBefore = this.#verdicts.get(name);
    if (row) this.#verdicts.set(name, row.verdicts);
    else this.#verdicts.delete(name);
    const mayBeOut = facts.isUnsettled || this.#window.isFar[source] === true;
    let sum = 0n;
    let refused = 0n;
    let unexplained = 0n;
    const texts: string[] = [];
    for (const verdict of verdictNames) {
      const count = row?.verdicts[verdict] ?? 0n;
      const added = count - (verdictsBefore?.[verdict] ?? 0n);
      sum += count;
      if (added < 0n) throw new Violation("counters never fall", `${name} ${verdict} by ${-added}`);
      if (added === 0n || sentVerdicts.has(verdict)) continue;
      refused += added;
      texts.push(`${verdict} +${added}`);
      const isTrue = reasonsForAuthentic.has(verdict) || (mayBeOut && reasonsOfSlots.has(verdict));
      if (!isTrue) unexplained += added;
    }
    const forged = this.#window.forged[source] ?? 0;
    if (unexplained > BigInt(forged))
      throw new Violation(
        "an authentic shred is refused for a true reason only",
        `${name}: ${texts.join(", ")}, but ${forged} forged packets`,
      );
    return Number(refused) + this.#checkPending(facts, source, Number(sum));
  }

  /** Each packet has one verdict, except for a short time while it waits for a check. */
  #checkPending({ nowMs, sources }: StepFacts, source: number, verdicts: number): number {
    const waiting = (this.#arrived[source] ?? 0) - verdicts;
    const quietMs = nowMs - (this.#quietSinceMs[source] ?? 0);
    if (waiting < 0 || (waiting > 0 && quietMs > pendingMs))
      throw new Violation(
        "every packet has one verdict",
        `${sources[source]?.name}: ${waiting} packets more than verdicts after ${quietMs} ms`,
      );
    return waiting;
  }

  /** Returns the failed datagrams by destination. Those that have left must be counted as sent. */
  #checkDestinations(snapshot: RelaySnapshot, before: Counts): Map<string, bigint> {
    const failures = new Map<string, bigint>();
    for (const row of snapshot.destinations) {
      const address = this.#keyOf(row.address);
      const left = BigInt(this.#window.left.get(address) ?? 0);
      const failed = sumOf(row.failed);
      this.#counts.set(`sent ${address}`, row.sent);
      this.#counts.set(`failed ${address}`, failed);
      const sentBefore = before.get(`sent ${address}`) ?? 0n;
      // A destination that lost its tier and got one again in this window has a new row. What left before
      // is in the old one.
      if (row.sent < sentBefore && row.sent <= left && this.#hasChanged(address)) {
        failures.set(address, failed);
        continue;
      }
      failures.set(address, failed - (before.get(`failed ${address}`) ?? 0n));
      const counted = row.sent - sentBefore;
      if (counted === left) continue;
      throw new Violation(
        "counters match what left",
        `${row.address}: ${left} datagrams left, ${counted} were counted`,
      );
    }
    return failures;
  }

  /** Whether the entitlement of the destination has changed since the counters were last read. */
  #hasChanged(address: string): boolean {
    return (this.#changes.get(address)?.sinceMs ?? 0) > this.#readMs;
  }

  #bitOf(address: string): number {
    const known = this.#bits.get(address);
    if (known !== undefined) return known;
    if (this.#bits.size >= bitsMax)
      throw new RangeError(`expected at most ${bitsMax} destinations`);
    const bit = 1 << this.#bits.size;
    this.#bits.set(address, bit);
    return bit;
  }

  #forget(newestSlot: bigint | undefined): void {
    if (newestSlot === undefined || this.#shreds.size < 100_000) return;
    for (const shred of this.#shreds.keys()) {
      if (newestSlot - shred.place.slot < 200n) break;
      this.#shreds.delete(shred);
    }
  }
}
