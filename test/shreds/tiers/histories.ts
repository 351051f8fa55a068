// Random histories of the tier engine over many lives of its process, compared with the model.
//
// A history is a list of steps. It knows the time at which each stored tip must take effect. It asks the
// model for the expected tiers and for each expected checkpoint.

import assert from "node:assert/strict";
import fc from "fast-check";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { LeaderTiers } from "../../../src/shreds/tiers/leader-tiers.ts";
import type { CountedTip, TierRules, TierStore } from "../../../src/shreds/tiers/types.ts";
import { silent } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import type { Faults, Saved } from "./memory-tier-store.ts";
import { RestartableClock } from "./restartable-clock.ts";
import { emptyState, type ModelTip, modelOf } from "./tier-model.ts";

export type Step =
  | {
      readonly kind: "tip";
      readonly accountId: string;
      readonly lamports: bigint;
      /** Between its registration and its counting. */
      readonly ageMs: number;
      readonly end: "settled" | "settled later" | "not kept" | "not kept, later";
    }
  | { readonly kind: "settle"; readonly place: number }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "set"; readonly ms: number }
  | { readonly kind: "fault"; readonly fault: keyof Faults; readonly isOn: boolean }
  | {
      readonly kind: "end";
      readonly how: "close" | "kill";
      readonly downMs: number;
      readonly setMs: number;
      readonly lost: number;
    };

/** The database of a history. */
export interface HistoryStore {
  readonly faults: Faults;
  onCheckpoint: (saved: Saved) => void;
  keep(tip: CountedTip): void | Promise<void>;
  lose(count: number): void;
  connect(pause: () => Promise<void>): TierStore;
  saved: Saved | null;
  /** Settles when no operation is in progress. */
  idle?(): Promise<void>;
}

export interface Setting {
  readonly tierCount: number;
  readonly graceMs: number;
  readonly headMax: number;
  readonly pageMax: number;
  readonly pauseMax: number;
  readonly seed: number;
}

export const windowMs = 10_000;
const accountIds = ["a", "b", "c"];
const times = [0, 0, 1, 499, 500, 1000, 4999, 5000, 9999, 10_000, 10_001];

const tipStep = fc.record({
  kind: fc.constant("tip" as const),
  accountId: fc.constantFrom(...accountIds),
  lamports: fc.constantFrom(1n, 5n, 10n, 20n, 35n),
  ageMs: fc.constantFrom(0, 0, 0, 0, ...times),
  end: fc.constantFrom(
    "settled" as const,
    "settled" as const,
    "settled" as const,
    "settled later" as const,
    "not kept" as const,
    "not kept, later" as const,
  ),
});
const endStep = fc.record({
  kind: fc.constant("end" as const),
  how: fc.constantFrom("close" as const, "kill" as const, "kill" as const),
  downMs: fc.constantFrom(...times, 30_000, 100_000),
  setMs: fc.constantFrom(0, 0, 0, -20_000, -500, 500, 60_000),
  lost: fc.constantFrom(0, 0, 0, 1, 2, 5),
});
const otherStep = fc.oneof(
  fc.record({ kind: fc.constant("settle" as const), place: fc.nat(5) }),
  fc.record({ kind: fc.constant("set" as const), ms: fc.constantFrom(-5000, -1, 1, 500, 15_000) }),
  fc.record({
    kind: fc.constant("fault" as const),
    fault: fc.constantFrom("reads" as const, "writes" as const, "news" as const),
    isOn: fc.boolean(),
  }),
);
const waitStep = fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(...times) });

export function stepsOf(maxLength: number): fc.Arbitrary<Step[]> {
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 8, arbitrary: tipStep },
    { weight: 5, arbitrary: waitStep },
    { weight: 3, arbitrary: otherStep },
    { weight: 1, arbitrary: endStep },
  );
  return fc.array(step, { maxLength, size: "max" });
}

export const settings: fc.Arbitrary<Setting> = fc.record({
  tierCount: fc.constantFrom(1, 2, 3, 5),
  graceMs: fc.constantFrom(1, 500, 9999, 10_000, 10_001, 25_000),
  headMax: fc.constantFrom(1, 2, 3, 5, 1000),
  pageMax: fc.constantFrom(1, 2, 3, 1000),
  pauseMax: fc.constantFrom(0, 0, 3, 700),
  seed: fc.nat(),
});

interface Waiting {
  readonly order: bigint;
  readonly tip: CountedTip | null;
}

export class History {
  readonly rules: TierRules;
  readonly #setting: Setting;
  readonly #store: HistoryStore;
  readonly #random: SeededRandom;
  readonly #clock = new ManualClock();
  #life = new RestartableClock(this.#clock);
  #book: LeaderTiers;
  readonly #persisted: CountedTip[] = [];
  /** Stored tips that have taken effect, by order number. */
  #effective = new Map<bigint, ModelTip>();
  /** Order numbers that were issued in this life and not settled. */
  #waiting: Waiting[] = [];
  /** Settled before their turn. */
  readonly #early = new Map<bigint, CountedTip | null>();
  #nextOrder = 1n;
  #told = new Map<string, string | null>();
  /** Until then the engine may lag, by the monotonic clock. */
  #unsureUntilNs = 0n;
  #wrong: Error | undefined;
  /** Maximum delay of the store. */
  #pauseMs: number;
  /** For a test that verifies that a history happened. */
  readonly seen = { views: 0, checkpoints: 0, lives: 0 };

  constructor(setting: Setting, store: HistoryStore) {
    this.#setting = setting;
    this.#pauseMs = setting.pauseMax;
    this.#store = store;
    this.#random = new SeededRandom(setting.seed);
    const tiers = Array.from({ length: setting.tierCount }, (_, i) => ({
      name: `tier-${i + 1}`,
      thresholdLamports: BigInt(10 + 20 * i),
    }));
    this.rules = { tiers, windowMs, graceMs: setting.graceMs };
    this.#book = this.#open();
    store.onCheckpoint = (saved) => {
      try {
        this.#compareSaved(saved);
      } catch (error) {
        // The engine would treat it as a failure of the store.
        this.#wrong ??= error instanceof Error ? error : new Error(String(error));
      }
    };
  }

  async run(steps: readonly Step[]): Promise<void> {
    await this.#start();
    for (const step of steps) {
      await this.#take(step);
      await this.#quiet();
      this.#compareAccounting();
    }
    Object.assign(this.#store.faults, { reads: false, writes: false, news: false });
    for (const { order, tip } of this.#waiting.splice(0)) this.#settle(order, tip);
    this.#pauseMs = 0;
    // Long enough for all retries.
    await this.#pass(6000);
    this.#compareViews();
    await this.#during(this.#book.close());
    const { saved } = this.#store;
    if (!saved) throw new Error("expected a checkpoint, got none");
    this.#compareSaved(saved);
    assert.equal(this.#life.pending, 0, "timers left behind");
    if (this.#wrong) throw this.#wrong;
  }

  async #take(step: Step): Promise<void> {
    if (step.kind === "tip") await this.#tip(step);
    if (step.kind === "wait") await this.#pass(step.ms);
    if (step.kind === "set") {
      this.#noteFault(5100); // the engine reads the clock regularly
      this.#life.set(step.ms);
    }
    if (step.kind === "end") await this.#end(step);
    if (step.kind === "fault") {
      this.#noteFault();
      this.#store.faults[step.fault] = step.isOn;
    }
    if (step.kind === "settle") {
      const [waiting] = this.#waiting.splice(step.place % Math.max(1, this.#waiting.length), 1);
      if (waiting) this.#settle(waiting.order, waiting.tip);
    }
  }

  async #tip({ accountId, lamports, ageMs, end }: Extract<Step, { kind: "tip" }>): Promise<void> {
    const order = this.#book.takeOrder();
    assert.ok(
      this.#persisted.every((tip) => tip.order !== order),
      "an order came twice",
    );
    const countedMs = this.#book.nowMs();
    const registeredMs = countedMs - ageMs;
    const isKept = end === "settled" || end === "settled later";
    const tip = isKept ? { order, accountId, lamports, registeredMs, countedMs } : null;
    if (tip) {
      this.#persisted.push(tip);
      await this.#store.keep(tip);
    }
    if (end === "settled" || end === "not kept") this.#settle(order, tip);
    else this.#waiting.push({ order, tip });
  }

  #settle(order: bigint, tip: CountedTip | null): void {
    this.#early.set(order, tip);
    const effectiveMs = this.#book.nowMs();
    for (;;) {
      const next = this.#early.get(this.#nextOrder);
      if (next === undefined) break;
      if (next) this.#effective.set(next.order, { ...next, effectiveMs });
      this.#early.delete(this.#nextOrder);
      this.#nextOrder++;
    }
    this.#book.settleOrder(order, tip);
    // In the same turn.
    this.#compareAccounting();
  }

  async #end({ how, downMs, setMs, lost }: Extract<Step, { kind: "end" }>): Promise<void> {
    if (how === "close") await this.#during(this.#book.close());
    await this.#store.idle?.();
    this.#life.end();
    Object.assign(this.#store.faults, { reads: false, writes: false, news: false });
    this.#store.lose(lost);
    await this.#clock.advance(downMs);
    this.#life = new RestartableClock(this.#clock, setMs);
    this.#book = this.#open();
    await this.#start();
  }

  async #start(): Promise<void> {
    this.#replay();
    this.#told = new Map();
    await this.#during(this.#startAndCompare());
    this.#noteFault();
    this.seen.lives++;
    const newestMs = Math.max(0, ...this.#persisted.map(({ countedMs }) => countedMs));
    const floorMs = Math.max(newestMs, this.#store.saved?.evaluatedMs ?? 0);
    assert.ok(this.#book.nowMs() >= floorMs, "the book's clock went back");
    this.#waiting = [];
    this.#early.clear();
  }

  async #startAndCompare(): Promise<void> {
    await this.#book.start();
    assert.equal(this.#told.size, 0, "a listener was notified before start ended");
    for (const id of accountIds) this.#told.set(id, this.#book.tierOf(id));
  }

  /**
   * Tips after the checkpoint take effect when they were counted, or as soon after as the order allows.
   */
  #replay(): void {
    const { saved } = this.#store;
    let atMs = saved?.evaluatedMs ?? 0;
    let last = saved?.countedOrder ?? 0n;
    const persisted = this.#persisted.toSorted((a, b) => Number(a.order - b.order));
    for (const tip of persisted) {
      if (tip.order <= (saved?.countedOrder ?? 0n)) continue;
      atMs = Math.max(atMs, tip.countedMs);
      this.#effective.set(tip.order, { ...tip, effectiveMs: atMs });
      last = tip.order;
    }
    this.#nextOrder = last + 1n;
  }

  #open(): LeaderTiers {
    const life = this.#life;
    const { headMax, pageMax } = this.#setting;
    const pause = () =>
      this.#pauseMs === 0 ? Promise.resolve() : life.sleep(this.#random.below(this.#pauseMs));
    const store = this.#store.connect(pause);
    const { rules } = this;
    const parts = { rules, store, clock: life, log: silent, epoch: 1n };
    const accounting = new LeaderTiers({ ...parts, headMax, pageMax });
    accounting.onChange((accountId, tier) => this.#told.set(accountId, tier));
    return accounting;
  }

  async #during(promise: Promise<void>): Promise<void> {
    const end = { isReached: false };
    const done = promise.finally(() => {
      end.isReached = true;
    });
    for (let i = 0; !end.isReached; i++) {
      await this.#quiet();
      await this.#clock.advance(end.isReached ? 0 : Math.min(i, 50));
    }
    await done;
  }

  async #pass(ms: number): Promise<void> {
    if (this.#store.faults.reads) this.#noteFault();
    await this.#clock.advance(ms);
    await this.#quiet();
    if (this.#store.faults.reads) this.#noteFault();
  }

  async #quiet(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      await this.#store.idle?.();
      await this.#clock.advance(0);
    }
    if (this.#wrong) throw this.#wrong;
  }

  #noteFault(ms = 1100): void {
    const untilNs = this.#clock.monotonicNs() + BigInt(ms) * 1_000_000n;
    if (untilNs > this.#unsureUntilNs) this.#unsureUntilNs = untilNs;
  }

  #compareAccounting(): void {
    for (const accountId of accountIds) {
      assert.equal(this.#told.get(accountId), this.#book.tierOf(accountId), "not told");
    }
    const isSure = this.#clock.monotonicNs() > this.#unsureUntilNs;
    const isKnown = isSure && !this.#store.faults.reads;
    if (isKnown && this.#setting.pauseMax === 0 && !this.#store.idle) this.#compareViews();
  }

  #compareViews(): void {
    this.seen.views++;
    const tips = [...this.#effective.values()];
    const model = modelOf(this.rules, tips, this.#book.nowMs());
    for (const accountId of accountIds) {
      const { tier, graceSinceMs, sumLamports } =
        model.get(accountId)?.state ?? emptyState(accountId);
      assert.deepEqual(
        { accountId, ...this.#book.view(accountId) },
        {
          accountId,
          tier,
          graceSinceMs,
          sumLamports,
          graceEndsMs: graceSinceMs === null ? null : graceSinceMs + this.rules.graceMs,
        },
      );
    }
  }

  #compareSaved(saved: Saved): void {
    this.seen.checkpoints++;
    const { countedOrder, evaluatedMs } = saved;
    const tips = [...this.#effective.values()].filter(({ order }) => order <= countedOrder);
    for (const { effectiveMs } of tips) assert.ok(effectiveMs <= evaluatedMs, "counted too early");
    const model = modelOf(this.rules, tips, evaluatedMs);
    for (const accountId of accountIds) {
      const expected = model.get(accountId);
      const state = saved.states.get(accountId) ?? emptyState(accountId);
      assert.deepEqual(state, expected?.state ?? emptyState(accountId));
      assert.deepEqual(saved.events.get(accountId) ?? [], expected?.events ?? []);
    }
  }
}
