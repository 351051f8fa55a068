// Routes and store of the model around a pipeline under test.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import type {
  BundleRecord,
  OutboundTransaction,
  Route,
  RouteCapabilities,
  RouteSnapshot,
  SubmissionRecord,
  SubmissionStore,
} from "../../../src/gateway/submission/types.ts";
import type { ManualClock } from "../../support/clocks/manual-clock.ts";
import type { ModelChain } from "./model.ts";

export function capabilitiesOf(some: Partial<RouteCapabilities> = {}): RouteCapabilities {
  return {
    name: "swqos-1",
    kind: "swqos",
    modes: ["transaction"],
    transactionBytesMax: 1232,
    mevSafe: false,
    minimumTipLamports: 0n,
    leaders: null,
    ...some,
  };
}

export function emptySnapshot({ name, kind }: RouteCapabilities): RouteSnapshot {
  return {
    name,
    kind,
    health: "up",
    lastFailure: "",
    lastFailureNs: null,
    queued: 0,
    inFlight: 0,
    sendP50Us: null,
    sendP99Us: null,
    offered: 0n,
    turnedAway: 0n,
    sent: 0n,
    acknowledged: 0n,
    refused: 0n,
    failed: 0n,
    dropped: 0n,
  };
}

export class ModelRoute implements Route {
  readonly capabilities: RouteCapabilities;
  readonly #clock: ManualClock;
  readonly #random: SeededRandom;
  readonly #chain: ModelChain;
  /** Called for every offer, including refused ones. */
  onOffer: (outbound: OutboundTransaction) => void = () => {};
  /** Called for every sent transaction. */
  onLeave: (outbound: OutboundTransaction) => void = () => {};
  isUp = true;
  /** Every transaction is delivered. */
  isGood = false;
  /** Share of final refusals. */
  refuseShare = 0.04;

  constructor(
    capabilities: RouteCapabilities,
    parts: { clock: ManualClock; random: SeededRandom; chain: ModelChain },
  ) {
    this.capabilities = capabilities;
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#chain = parts.chain;
  }

  offer(outbound: OutboundTransaction): boolean {
    this.onOffer(outbound);
    if (!this.isUp || (!this.isGood && this.#random.happens(0.05))) return false;
    const outcomeShare = this.isGood ? 1 : this.#random.share();
    const longestMs = this.#random.happens(0.1) ? 4_000 : 600;
    const delayMs = this.#random.below(4) === 0 ? 0 : this.#random.below(longestMs);
    if (delayMs === 0)
      this.#leave(outbound, outcomeShare); // during the offer
    else this.#clock.after(delayMs, () => this.#leave(outbound, outcomeShare));
    return true;
  }

  snapshot(): RouteSnapshot {
    return emptySnapshot(this.capabilities);
  }

  async close(): Promise<void> {}

  #leave(outbound: OutboundTransaction, outcomeShare: number): void {
    const atNs = this.#clock.nowNs();
    if (outbound.deadlineNs < atNs || outcomeShare < 0.05) {
      outbound.report({ kind: "dropped", atNs, reason: "deadline" });
      return;
    }
    this.onLeave(outbound);
    outbound.report({ kind: "sent", atNs, bytes: 200 });
    const answer = (event: Parameters<OutboundTransaction["report"]>[0]) =>
      this.#clock.after(this.#random.below(300), () =>
        outbound.report({ ...event, atNs: this.#clock.nowNs() }),
      );
    if (outcomeShare < 0.05 + this.refuseShare) {
      answer({ kind: "refused", atNs, reason: "never", isFinal: true });
    } else if (outcomeShare < 0.15 + this.refuseShare) {
      answer({ kind: "refused", atNs, reason: "busy", isFinal: false });
    } else if (outcomeShare < 0.25 + this.refuseShare) {
      if (this.#random.happens(0.5)) this.#arrive(outbound);
      answer({ kind: "failed", atNs, reason: "time_out" });
    } else {
      if (this.isGood || this.#random.happens(0.8)) this.#arrive(outbound);
      if (this.#random.happens(0.9)) answer({ kind: "acknowledged", atNs });
    }
  }

  #arrive({ transactions, mode, revertProtection }: OutboundTransaction): void {
    this.#chain.arrive(transactions, mode === "bundle" || revertProtection);
  }
}

/** The disk and the faults of writing to it. */
export class ModelStore {
  readonly records = new Map<string, SubmissionRecord>();
  readonly bundles = new Map<string, BundleRecord>();
  readonly violations: string[] = [];
  readonly #clock: ManualClock;
  readonly #random: SeededRandom;
  failShare = 0.03;
  /** The shortest time of a write. */
  writeMs = 0;
  putCount = 0;
  /** Number of records and of bundles of each commit. */
  readonly commits: [number, number][] = [];

  constructor(clock: ManualClock, random: SeededRandom) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Fills the disk of the next process. */
  copyTo(other: ModelStore): void {
    for (const [key, record] of this.records) other.records.set(key, record);
    for (const [key, bundle] of this.bundles) other.bundles.set(key, bundle);
  }

  /** The store of one process; uncommitted writes are lost when it dies. */
  of(isAlive: () => boolean): SubmissionStore {
    const writing = new Set<string>();
    const keyOf = ({ accountId, signature }: SubmissionRecord) => `${accountId} ${signature}`;
    const put = async (
      records: readonly SubmissionRecord[],
      bundles: readonly BundleRecord[] = [],
    ) => {
      const written = structuredClone(records);
      const keys = written.map(keyOf);
      for (const key of keys) {
        if (writing.has(key)) this.violations.push(`${key}: two writes at once`);
        writing.add(key);
      }
      await this.#clock.sleep(this.writeMs + this.#random.below(30));
      if (!isAlive()) return new Promise<void>(() => {});
      const isFailed = this.#random.happens(this.failShare);
      if (!isFailed) {
        this.commits.push([written.length, bundles.length]);
        for (const record of written) this.#commit(keyOf(record), record);
        for (const one of bundles) this.bundles.set(`${one.accountId} ${one.bundleId}`, one);
      }
      await this.#clock.sleep(this.#random.below(5));
      for (const key of keys) writing.delete(key);
      if (isFailed) throw new Error("the disk is full");
    };
    const all = () => structuredClone([...this.records.values()]);
    const add = async (
      records: readonly SubmissionRecord[],
      bundles: readonly BundleRecord[] = [],
    ) => {
      if (records.some((record) => this.records.has(keyOf(record)))) {
        await this.#clock.sleep(this.#random.below(30));
        return isAlive() ? false : new Promise<boolean>(() => {});
      }
      await put(records, bundles);
      return true;
    };
    return {
      put,
      add,
      open: async () => all().filter(({ state }) => state === "open"),
      openNodes: async () => [],
      adopt: async () => [],
      find: async (accountId, signatures) =>
        all().filter((one) => one.accountId === accountId && signatures.includes(one.signature)),
      findBundles: async (accountId, ids) =>
        ids.flatMap((id) => this.bundles.get(`${accountId} ${id}`) ?? []),
      forgetEndedBefore: async (ns) => {
        let count = 0;
        for (const [key, { endedNs }] of this.records) {
          if (endedNs !== null && endedNs < ns && this.records.delete(key)) count++;
        }
        for (const [key, { acceptedNs }] of this.bundles) {
          if (acceptedNs < ns) this.bundles.delete(key);
        }
        return count;
      },
    };
  }

  #commit(key: string, record: SubmissionRecord): void {
    this.putCount++;
    const before = this.records.get(key);
    const isOver = before && before.state !== "open" && before.state !== "rejected";
    if (isOver && record.state !== before.state) {
      this.violations.push(`${key}: ${before.state} became ${record.state}`);
    }
    if (record.state !== "open" && record.wire)
      this.violations.push(`${key}: bytes of an ended one`);
    if (record.events.length > 64) this.violations.push(`${key}: ${record.events.length} events`);
    this.records.set(key, record);
  }
}
