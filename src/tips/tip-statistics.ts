// Tip statistics: the tips of the last 15 minutes that landed through this service, on any node.
//
// The submission pipeline reports to it (LandedTips), the gateway reads it (TipFloor). A tip counts from
// its first observation until its block is abandoned or its transaction fails. The window uses monotonic
// time, so it stays correct when the wall clock is set. Refreshes follow wall time: 00, 15, 30 and 45 of
// every hour. The first snapshot is published early, soon after the first landed tip. It is not stored, and
// does not count for the average, which is the same on all nodes. A failing store never causes an error
// here.

import type { Clock, Timer } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { OtherTips } from "./other-tips.ts";
import { quarterMs, TipHistory } from "./tip-history.ts";
import type { LandedTip, LandedTipStore, TipFloor, TipSnapshot } from "./tip-types.ts";
import { TipWindow, tipLamportsMax, type WindowPercentiles } from "./tip-window.ts";
import { TipWriter } from "./tip-writer.ts";

interface TipStatisticsDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly store: LandedTipStore;
  /** Other nodes store theirs there too. */
  readonly isShared?: boolean;
}

const windowMs = 15 * 60_000;
const refreshMs = quarterMs;
/** Delay until a change of the wall clock is noticed. */
const wakeMs = 10_000;
/** A clock that moves back and forth across a quarter hour causes one refresh. */
const refreshMinMs = 60_000;
/** A refresh blocks the event loop for at most this time at once. */
const stepNs = 4_000_000n;
/**
 * Each median moves the average by a fifth of the difference, so the last nine contribute 87 %, as in a
 * simple average of nine. Block engines publish such an average without its factor.
 */
const emaDivisor = 5n;
const tipsPerRead = 2000;
/** From the first tip to the early snapshot: tips of failed transactions are withdrawn before. */
const earlyMs = 10_000;

/** Whether a quarter hour began, or the first tips landed before one. */
type Refresh = "on time" | "early";

function noTips(timeMs: number): TipSnapshot {
  return {
    timeMs,
    percentiles: { p25: 0n, p50: 0n, p75: 0n, p95: 0n, p99: 0n },
    emaP50: 0n,
    count: 0,
    windowStartMs: timeMs - windowMs,
    isStale: true,
  };
}

/** Rounded to the nearest lamport. */
function averageOf(before: bigint, median: bigint): bigint {
  return (before * (emaDivisor - 1n) + median + emaDivisor / 2n) / emaDivisor;
}

export class TipStatistics implements TipFloor {
  /** The refreshes of the last seven days. */
  readonly history: TipHistory;
  readonly #clock: Clock;
  readonly #store: LandedTipStore;
  readonly #isShared: boolean;
  readonly #writer: TipWriter;
  /** Monotonic milliseconds. */
  readonly #openedMs: number;
  readonly #others: OtherTips | null;
  readonly #window = new TipWindow({ windowMs });
  readonly #listeners = new Set<(snapshot: TipSnapshot) => void>();
  #snapshot: TipSnapshot;
  /** Median average of the last quarter hour; null: there was none with tips. */
  #average: bigint | null = null;
  /** Number of the current quarter hour of wall time. */
  #quarter: number;
  /** Monotonic milliseconds. */
  #refreshedMs = Number.NEGATIVE_INFINITY;
  #refreshedQuarter = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;
  #stepTimer: Timer | null = null;
  #earlyTimer: Timer | null = null;
  #isRefreshing = false;
  #isClosed = false;

  private constructor(dependencies: TipStatisticsDependencies) {
    this.#clock = dependencies.clock;
    this.#store = dependencies.store;
    this.#isShared = dependencies.isShared === true;
    this.#writer = new TipWriter({
      ...dependencies,
      // Other nodes may have stored quarter hours, and a stored one may come from a clock that was ahead.
      onQuartersStored: () => {
        if (!this.#isClosed) void this.#loadHistory();
      },
    });
    this.#openedMs = this.#nowMs;
    this.history = new TipHistory(() => this.#wallMs);
    const others = {
      store: dependencies.store,
      nowMs: () => this.#wallMs,
      // A tip that this node withdrew is still in the store for a short time.
      add: (tip: LandedTip) => {
        if (!this.#window.knows(tip.signature)) this.#restoreTip(tip);
      },
      failed: (error: unknown) => this.#writer.warn("the database", error),
    };
    this.#others = this.#isShared ? new OtherTips(others, windowMs) : null;
    this.#snapshot = noTips(this.#wallMs);
    this.#quarter = this.#quarterNow;
  }

  /** Starts with the data of the store. Never rejects: without an answer, it starts empty. */
  static async open(dependencies: TipStatisticsDependencies): Promise<TipStatistics> {
    const statistics = new TipStatistics(dependencies);
    await statistics.#restore();
    await statistics.#loadHistory();
    statistics.#turn();
    return statistics;
  }

  get snapshot(): TipSnapshot {
    return this.#snapshot;
  }

  /** Number of tips in the window now. */
  get size(): number {
    this.#window.expire(this.#nowMs);
    return this.#window.size;
  }

  onRefresh(listener: (snapshot: TipSnapshot) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  // ---- of the pipeline's LandedTips ----

  observed(signature: string, lamports: bigint, atNs: bigint): void {
    if (lamports <= 0n) return;
    const nowNs = this.#clock.nowNs();
    const seenNs = atNs < nowNs ? atNs : nowNs;
    const nowMs = this.#nowMs;
    const ageMs = Number(nowNs - seenNs) / 1e6;
    if (!this.#window.add(signature, lamports, nowMs - ageMs, nowMs)) return;
    this.#expectEarly();
    this.#writer.add({
      signature,
      lamports: lamports > tipLamportsMax ? tipLamportsMax : lamports,
      landedMs: Number(seenNs / 1_000_000n),
    });
  }

  landed(signature: string, lamports: bigint, atNs: bigint): void {
    this.observed(signature, lamports, atNs);
    this.#window.settle(signature);
  }

  retracted(signature: string): void {
    if (this.#window.remove(signature)) this.#writer.remove(signature);
  }

  /** Settles when everything is stored, or the store failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#stepTimer?.cancel();
    this.#earlyTimer?.cancel();
    this.#listeners.clear();
    await this.#others?.close();
    await this.#writer.close();
  }

  get #nowMs(): number {
    return Number(this.#clock.monotonicNs()) / 1e6;
  }

  get #wallMs(): number {
    return Number(this.#clock.nowNs() / 1_000_000n);
  }

  get #quarterNow(): number {
    return Math.floor(this.#wallMs / refreshMs);
  }

  async #restore(): Promise<void> {
    const store = this.#store;
    try {
      const last = await store.lastSnapshot();
      if (last) {
        this.#snapshot = last;
        this.#average = last.emaP50;
        this.#quarter = Math.floor(last.timeMs / refreshMs);
      }
      const sinceMs = this.#wallMs - windowMs;
      let behind: LandedTip | null = null;
      for (;;) {
        const tips: LandedTip[] = await store.since(sinceMs, behind, tipsPerRead);
        for (const tip of tips) this.#restoreTip(tip);
        behind = tips.at(-1) ?? null;
        if (tips.length < tipsPerRead) return;
      }
    } catch (error) {
      this.#writer.warn("the database", error);
    }
  }

  async #loadHistory(): Promise<void> {
    try {
      await this.history.load(this.#store);
    } catch (error) {
      this.#writer.warn("the database", error);
    }
  }

  #restoreTip({ signature, lamports, landedMs }: LandedTip): void {
    const ageMs = this.#wallMs - landedMs;
    // The clock was set back since, so its age is unknown, or it is older than a window.
    if (ageMs < -windowMs) return;
    const nowMs = this.#nowMs;
    this.#window.add(signature, lamports, nowMs - Math.max(0, ageMs), nowMs);
    this.#expectEarly();
  }

  /** Before the first snapshot, zeros would invite clients to tip nothing until the quarter hour. */
  #expectEarly(): void {
    if (this.#snapshot.count > 0 || this.#isClosed) return;
    this.#earlyTimer ??= this.#clock.after(earlyMs, () => {
      this.#earlyTimer = null;
      if (this.#snapshot.count === 0 && this.size > 0) this.#refresh("early");
    });
  }

  /**
   * Refreshes once after a new quarter hour began, even if several passed; never for a past one.
   */
  #turn(): void {
    const quarter = this.#quarterNow;
    const isLater = quarter > this.#quarter;
    this.#quarter = quarter;
    const isAnother = quarter !== this.#refreshedQuarter;
    const isLong = this.#nowMs - this.#refreshedMs >= refreshMinMs;
    if (isLater && (isAnother || isLong)) this.#refresh("on time");
    const leftMs = (quarter + 1) * refreshMs - this.#wallMs;
    this.#others?.turn(quarter, leftMs);
    const nextMs = Math.min(leftMs, this.#others?.dueMs(quarter, leftMs) ?? leftMs);
    this.#timer = this.#clock.after(Math.min(Math.max(1, nextMs), wakeMs), () => this.#turn());
  }

  #refresh(kind: Refresh): void {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    if (kind === "on time") {
      this.#refreshedMs = this.#nowMs;
      this.#refreshedQuarter = this.#quarterNow;
    }
    const timeMs = kind === "on time" ? this.#refreshTimeMs : this.#wallMs;
    this.#step(this.#window.percentiles(this.#nowMs), timeMs, kind);
  }

  /** The start of the quarter hour, which all nodes report alike; the wall time if the refresh is late. */
  get #refreshTimeMs(): number {
    const wallMs = this.#wallMs;
    const lateMs = wallMs % refreshMs;
    return lateMs <= wakeMs ? wallMs - lateMs : wallMs;
  }

  /** A million tips take 50 ms or more, so other work runs in between. */
  #step(steps: Generator<void, WindowPercentiles | null>, timeMs: number, kind: Refresh): void {
    const endNs = this.#clock.monotonicNs() + stepNs;
    do {
      const { done, value } = steps.next();
      if (done) {
        this.#isRefreshing = false;
        this.#publish(value, timeMs, kind);
        return;
      }
    } while (this.#clock.monotonicNs() < endNs);
    if (this.#isClosed) return;
    this.#stepTimer = this.#clock.after(0, () => this.#step(steps, timeMs, kind));
  }

  #publish(found: WindowPercentiles | null, timeMs: number, kind: Refresh): void {
    const last = this.#snapshot;
    if (found) {
      const { count, percentiles } = found;
      const { p50 } = percentiles;
      const emaP50 = this.#average === null ? p50 : averageOf(this.#average, p50);
      if (kind === "on time") this.#average = emaP50;
      const windowStartMs = timeMs - windowMs;
      this.#snapshot = { timeMs, percentiles, emaP50, count, windowStartMs, isStale: false };
    } else {
      this.#snapshot = last.count === 0 ? noTips(timeMs) : { ...last, isStale: true };
    }
    if (kind === "on time") this.#persist(found, timeMs);
    for (const listener of this.#listeners) {
      try {
        listener(this.#snapshot);
      } catch (error) {
        this.#writer.warn("a listener", error);
      }
    }
  }

  #persist(found: WindowPercentiles | null, timeMs: number): void {
    const quarter = Math.floor(timeMs / refreshMs);
    const stored = this.#snapshot.count > 0 ? this.#snapshot : null;
    this.#writer.refreshed(stored, quarter, timeMs - windowMs);
    // A process that did not observe the whole window cannot say that no tip landed in it.
    if (!found && this.#nowMs - this.#openedMs < windowMs) return;
    const { count, percentiles } = found ?? { count: 0, percentiles: null };
    const tips = { quarter, timeMs, count, percentiles };
    this.history.add(tips);
    this.#writer.addQuarter(tips);
    if (!this.history.isLoaded) void this.#loadHistory();
  }
}
