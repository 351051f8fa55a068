// The checks of the relay at every step: what may leave, what must leave, and what the counters say.
//
// It shares no code with the relay. It knows the authentic shreds from the cluster, the arrivals from the
// sources, and who may get what from the caller. docs/simulation.md lists the invariants.

import type { VerdictName } from "../../src/relay/data-plane/names.ts";
import type { RelaySnapshot } from "../../src/relay/data-plane/snapshot.ts";
import type { AuthenticShred, Cluster } from "./cluster.ts";
import type { Sent } from "./network.ts";

/** Tiers are numbers here: 0 is the narrowest. A source of tier n serves tiers n and wider. */
export interface Entitlement {
  /** The widest tier that it may have now; -1: it may get nothing. */
  readonly may: number;
  /** The widest tier that it has for certain; -1: nothing has to leave to it. */
  readonly must: number;
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
  readonly snapshot: RelaySnapshot;
  /** The newest slot that a leader has produced; undefined: none. */
  readonly newestSlot: bigint | undefined;
  /** The wall clock was set, or the service started, a short time ago. */
  readonly isUnsettled: boolean;
}

/** What the world knows about a shred in this life of the relay. */
interface KnownShred {
  /** Bits of the tiers for which a source has delivered it. */
  tiers: number;
  readonly firstMs: number;
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

function verdictsOf(snapshot: RelaySnapshot, name: string): Partial<Record<VerdictName, bigint>> {
  return snapshot.sources.find((source) => source.name === name)?.verdicts ?? {};
}

export class RelayChecks {
  readonly #cluster: Cluster;
  readonly #keyOf: (address: string) => string;
  readonly #shreds = new Map<string, KnownShred>();
  /** Names of shreds by destination. */
  readonly #served = new Map<string, Set<string>>();
  /** When the entitlement of a destination last changed. */
  readonly #changes = new Map<string, { text: string; sinceMs: number }>();
  #verdicts: Counts = new Map();
  #destinations: Counts = new Map();
  #received = 0n;
  readonly #arrived: number[] = [];
  readonly #quietSinceMs: number[] = [];

  /** `keyOf`: the identity in `Sent` of an address that the relay writes. */
  constructor(cluster: Cluster, keyOf: (address: string) => string) {
    this.#cluster = cluster;
    this.#keyOf = keyOf;
  }

  /** Throws Violation. */
  check(facts: StepFacts): void {
    for (const [address, entitlement] of facts.entitlements) this.#note(address, entitlement, facts);
    for (const address of this.#changes.keys())
      if (!facts.entitlements.has(address)) this.#note(address, { may: -1, must: -1 }, facts);
    const arrived = facts.arrivals.map((arrival) => this.#learn(arrival, facts));
    const sentNow = this.#checkSent(facts);
    const refused = this.#checkVerdicts(facts, arrived);
    this.#checkMissing(facts, arrived, sentNow, refused);
    this.#checkSentCounts(facts);
    this.#forget(facts.newestSlot);
  }

  #note(address: string, { may, must }: Entitlement, { nowMs }: StepFacts): void {
    const text = `${may} ${must}`;
    if (this.#changes.get(address)?.text !== text)
      this.#changes.set(address, { text, sinceMs: nowMs });
  }

  /** Returns the authentic shred that arrived; undefined: the packet was forged. */
  #learn({ source, packet }: CheckedArrival, { nowMs, sources }: StepFacts) {
    this.#arrived[source] = (this.#arrived[source] ?? 0) + 1;
    this.#quietSinceMs[source] = nowMs;
    const shred = this.#cluster.find(packet);
    const content = shred ?? this.#cluster.findSigned(packet);
    const tier = sources[source]?.tier ?? -1;
    if (!content || tier < 0) return shred;
    const known = this.#shreds.get(content.name) ?? { tiers: 0, firstMs: nowMs };
    known.tiers |= (0xff << tier) & 0xff;
    this.#shreds.set(content.name, known);
    return shred;
  }

  #checkSent({ sent, entitlements, nowMs }: StepFacts): ReadonlyMap<string, ReadonlySet<string>> {
    const sentNow = new Map<string, Set<string>>();
    for (const { to, packet } of sent) {
      const shred = this.#cluster.find(packet);
      const where = Buffer.from(to, "latin1").toString("hex");
      if (!shred) throw new Violation("no forged shred leaves", `a forged packet left to ${where}`);
      const may = entitlements.get(to)?.may ?? -1;
      if (may < 0)
        throw new Violation("nothing leaves without entitlement", `${shred.name} left to ${where}`);
      const known = this.#shreds.get(shred.name);
      if (!known || (known.tiers & (1 << may)) === 0)
        throw new Violation(
          "no shred of a tier that the destination lacks",
          `${shred.name} left to ${where}, whose tier is ${may}`,
        );
      const served = this.#served.get(to) ?? new Set<string>();
      this.#served.set(to, served);
      const changedMs = this.#changes.get(to)?.sinceMs ?? nowMs;
      if (served.has(shred.name) && known.firstMs > changedMs)
        throw new Violation("no destination gets a shred twice", `${shred.name} to ${where}`);
      served.add(shred.name);
      const now = sentNow.get(to) ?? new Set<string>();
      sentNow.set(to, now.add(shred.name));
    }
    return sentNow;
  }

  /** Returns by source how many authentic arrivals may have been refused or still wait. */
  #checkVerdicts(
    facts: StepFacts,
    arrived: readonly (AuthenticShred | undefined)[],
  ): readonly number[] {
    const { snapshot, sources, arrivals } = facts;
    const received = snapshot.received - this.#received;
    this.#received = snapshot.received;
    if (received !== BigInt(arrivals.length))
      throw new Violation(
        "every packet is counted",
        `${arrivals.length} arrived, and ${received} were counted as received`,
      );
    const next: Counts = new Map();
    const allowances = sources.map(({ name }, source) => {
      let sum = 0n;
      let refused = 0n;
      const own = arrivals.flatMap((arrival, i) => (arrival.source === source ? [arrived[i]] : []));
      const forged = own.filter((shred) => shred === undefined).length;
      let unexplained = 0n;
      for (const [verdict, count] of Object.entries(verdictsOf(snapshot, name))) {
        const key = `${name} ${verdict}`;
        next.set(key, count);
        sum += count;
        const added = count - (this.#verdicts.get(key) ?? 0n);
        if (added < 0n) throw new Violation("counters never fall", `${key} by ${-added}`);
        const known = verdict as VerdictName;
        if (added === 0n || sentVerdicts.has(known)) continue;
        refused += added;
        const isNamed =
          reasonsForAuthentic.has(known) ||
          (reasonsOfSlots.has(known) && (facts.isUnsettled || this.#isFar(own, facts)));
        if (!isNamed) unexplained += added;
      }
      if (unexplained > BigInt(forged))
        throw new Violation(
          "an authentic shred is refused for a true reason only",
          `${name}: ${unexplained} refusals, but only ${forged} forged packets: ` +
            this.#differences(next, name),
        );
      return Number(refused) + this.#checkPending(facts, source, sum);
    });
    this.#verdicts = next;
    return allowances;
  }

  #isFar(shreds: readonly (AuthenticShred | undefined)[], { newestSlot }: StepFacts): boolean {
    return shreds.some((shred) => {
      if (!shred || newestSlot === undefined) return true;
      return newestSlot - shred.place.slot > presentSlots;
    });
  }

  #differences(next: Counts, name: string): string {
    return [...next]
      .filter(([key, count]) => key.startsWith(`${name} `) && count > (this.#verdicts.get(key) ?? 0n))
      .map(([key, count]) => `${key} +${count - (this.#verdicts.get(key) ?? 0n)}`)
      .join(", ");
  }

  /** Each packet has one verdict, except for a short time while it waits for a check. */
  #checkPending({ nowMs, sources }: StepFacts, source: number, verdicts: bigint): number {
    const waiting = (this.#arrived[source] ?? 0) - Number(verdicts);
    const quietMs = nowMs - (this.#quietSinceMs[source] ?? 0);
    if (waiting < 0 || (waiting > 0 && quietMs > pendingMs))
      throw new Violation(
        "every packet has one verdict",
        `${sources[source]?.name}: ${waiting} packets more than verdicts after ${quietMs} ms`,
      );
    return waiting;
  }

  #checkMissing(
    { arrivals, entitlements, sources, snapshot, nowMs }: StepFacts,
    arrived: readonly (AuthenticShred | undefined)[],
    sentNow: ReadonlyMap<string, ReadonlySet<string>>,
    allowances: readonly number[],
  ): void {
    const missing = sources.map(() => new Map<string, string>());
    for (const [address, { must }] of entitlements) {
      if (must < 0) continue;
      const changedMs = this.#changes.get(address)?.sinceMs ?? nowMs;
      let failures = this.#failuresOf(snapshot, address);
      for (const [i, shred] of arrived.entries()) {
        const source = arrivals[i]?.source ?? 0;
        const tier = sources[source]?.tier ?? -1;
        if (!shred || tier < 0 || tier > must) continue;
        const { name } = shred;
        if (this.#served.get(address)?.has(name) || sentNow.get(address)?.has(name)) continue;
        if ((this.#shreds.get(name)?.firstMs ?? nowMs) <= changedMs) continue;
        if (failures-- > 0n) continue;
        missing[source]?.set(name, Buffer.from(address, "latin1").toString("hex"));
      }
    }
    for (const [source, names] of missing.entries()) {
      if (names.size <= (allowances[source] ?? 0)) continue;
      const [[name, address] = ["", ""]] = names;
      throw new Violation(
        "every authentic shred leaves, or a reason is counted",
        `${names.size} shreds of ${sources[source]?.name} did not leave, ` +
          `${allowances[source]} were counted: ${name} to ${address}`,
      );
    }
  }

  /** Failed datagrams that no missing shred has explained yet. */
  #failuresOf(snapshot: RelaySnapshot, address: string): bigint {
    const row = snapshot.destinations.find((each) => this.#keyOf(each.address) === address);
    if (!row) return 0n;
    const failed = Object.values(row.failed).reduce((sum, count) => sum + count, 0n);
    return failed - (this.#destinations.get(`failed ${address}`) ?? 0n);
  }

  /** A destination that stayed in the table has as many counted datagrams as have left. */
  #checkSentCounts({ snapshot, sent }: StepFacts): void {
    const left = new Map<string, bigint>();
    for (const { to } of sent) left.set(to, (left.get(to) ?? 0n) + 1n);
    const next: Counts = new Map();
    for (const row of snapshot.destinations) {
      const address = this.#keyOf(row.address);
      const before = this.#destinations.get(`sent ${address}`);
      const failed = Object.values(row.failed).reduce((sum, count) => sum + count, 0n);
      next.set(`sent ${address}`, row.sent);
      next.set(`failed ${address}`, failed);
      const counted = row.sent - (before ?? 0n);
      if (counted === (left.get(address) ?? 0n)) continue;
      throw new Violation(
        "counters match what left",
        `${row.address}: ${left.get(address) ?? 0n} datagrams left, ${counted} were counted`,
      );
    }
    this.#destinations = next;
  }

  #forget(newestSlot: bigint | undefined): void {
    if (newestSlot === undefined || this.#shreds.size < 100_000) return;
    for (const name of this.#shreds.keys()) {
      if (newestSlot - BigInt(name.split(" ")[0] ?? 0) < 200n) break;
      this.#shreds.delete(name);
      for (const served of this.#served.values()) served.delete(name);
    }
  }
}
