// A TierStore in memory with configurable delays and failures. It outlives its callers.

import { ShredwayError } from "../../../src/core/errors.ts";
import type {
  CountedTip,
  TierCheckpoint,
  TierEvent,
  TierState,
  TierStore,
} from "../../../src/shreds/tiers/types.ts";

export interface Saved {
  readonly evaluatedMs: number;
  readonly countedOrder: bigint;
  readonly tiers: TierCheckpoint["tiers"] | null;
  readonly states: ReadonlyMap<string, TierState>;
  /** Events by account, ascending by number. */
  readonly events: ReadonlyMap<string, readonly TierEvent[]>;
}

export interface Faults {
  reads: boolean;
  writes: boolean;
  /** The commit succeeds, but its caller gets an error. */
  news: boolean;
}

export function applied(saved: Saved | null, checkpoint: TierCheckpoint): Saved {
  const states = new Map(saved?.states);
  for (const state of checkpoint.states) states.set(state.accountId, state);
  const events = new Map(saved?.events);
  for (const event of checkpoint.events) {
    const before = events.get(event.accountId) ?? [];
    if (before.some(({ number }) => number === event.number)) continue;
    events.set(event.accountId, [...before, event]);
  }
  const { evaluatedMs, countedOrder, tiers } = checkpoint;
  return { evaluatedMs, countedOrder, tiers, states, events };
}

function isBehind(tip: CountedTip, place: { registeredMs: number; order: bigint }): boolean {
  if (tip.registeredMs !== place.registeredMs) return tip.registeredMs > place.registeredMs;
  return tip.order > place.order;
}

/** Methods that a single leader never calls. */
export const notShared: Pick<TierStore, "takeOver" | "epoch" | "statesChangedAfter" | "onNews"> = {
  takeOver: () => Promise.resolve(1n),
  epoch: () => Promise.resolve(1n),
  statesChangedAfter: () => Promise.reject(new Error("expected nobody to ask")),
  onNews: () => () => {},
};

export class MemoryTierStore {
  readonly persisted: CountedTip[] = [];
  readonly faults: Faults = { reads: false, writes: false, news: false };
  saved: Saved | null = null;
  readonly history: Saved[] = [];
  checkpoints = 0;
  /** Number of expiring tips in each read. */
  readonly pages: number[] = [];
  onCheckpoint: (saved: Saved) => void = () => {};

  keep(tip: CountedTip): void {
    this.persisted.push(tip);
  }

  /** Restores the database of `count` checkpoints ago. */
  lose(count: number): void {
    this.history.length = Math.max(0, this.history.length - count);
    this.saved = this.history.at(-1) ?? null;
  }

  /**
   * `pause`: awaited before and after each operation; a caller that is killed in a pause never returns.
   */
  connect(pause: () => Promise<void> = () => Promise.resolve()): TierStore {
    return {
      ...notShared,
      load: async () => {
        await pause();
        this.#fail("reads");
        const { saved } = this;
        return saved && { ...saved, states: [...saved.states.values()] };
      },
      checkpoint: async (checkpoint) => {
        const copy = {
          ...checkpoint,
          states: [...checkpoint.states],
          events: [...checkpoint.events],
        };
        await pause();
        this.#fail("writes");
        this.saved = applied(this.saved, copy);
        this.history.push(this.saved);
        this.checkpoints++;
        this.onCheckpoint(this.saved);
        await pause();
        this.#fail("news");
        return true;
      },
      countedAfter: (order, limit) =>
        this.#read(pause, () =>
          this.persisted
            .filter((tip) => tip.order > order)
            .toSorted((a, b) => Number(a.order - b.order))
            .slice(0, limit),
        ),
      leavingAfter: (behind, untilMs, limit) =>
        this.#read(pause, () => {
          const found = this.persisted
            .filter((tip) => isBehind(tip, behind) && tip.registeredMs <= untilMs)
            .toSorted((a, b) => (isBehind(a, b) ? 1 : -1))
            .slice(0, limit);
          this.pages.push(found.length);
          return found;
        }),
      events: async (accountId, before, limit) => {
        await pause();
        this.#fail("reads");
        const events = this.saved?.events.get(accountId) ?? [];
        return events
          .filter(({ number }) => before === null || number < before)
          .toReversed()
          .slice(0, limit);
      },
    };
  }

  async #read(pause: () => Promise<void>, look: () => CountedTip[]): Promise<CountedTip[]> {
    await pause();
    this.#fail("reads");
    const found = look();
    await pause();
    return found;
  }

  #fail(fault: keyof Faults): void {
    if (this.faults[fault]) throw new ShredwayError("store_failed", `made-up failure of ${fault}`);
  }
}
