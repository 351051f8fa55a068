// Follower's tiers: the tier of each account while another node leads.
//
// Owned by account-tiers.ts. All states of the leader's checkpoints are in memory. A tier changes as
// soon as the leader's notification arrives, before any read; sums and grace periods are read
// afterwards. If the store is unreachable, the last states stay valid.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type {
  TierChanges,
  TierListener,
  TierNews,
  TierRules,
  TierSource,
  TierState,
  TierStore,
  TierView,
} from "./types.ts";

const retryMs = 1000;

interface FollowerTiersOptions {
  readonly rules: TierRules;
  readonly store: Pick<TierStore, "statesChangedAfter">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called in the turn of the change. */
  readonly onChange: TierListener;
}

function emptyState(accountId: string): TierState {
  return { accountId, tier: null, graceSinceMs: null, sumLamports: 0n, eventCount: 0n };
}

export class FollowerTiers implements TierSource {
  readonly #options: FollowerTiersOptions;
  /** The relay does not know the tiers of another configuration. */
  readonly #known: ReadonlySet<string>;
  #states = new Map<string, TierState>();
  #epoch = 0n;
  /** The states include everything up to this checkpoint; null: nothing was read. */
  #checkpoint: bigint | null = null;
  /** The last notification per account during a read, which may not contain them. */
  readonly #notifications = new Map<string, TierNews>();
  #reading: Promise<void> | null = null;
  #isStale = false;
  #isFailing = false;
  #retry: Timer | null = null;
  #isClosed = false;

  constructor(options: FollowerTiersOptions) {
    this.#options = options;
    this.#known = new Set(options.rules.tiers.map(({ name }) => name));
  }

  /** Reads everything, including changes reported meanwhile. Rejects like the store. */
  async load(): Promise<void> {
    this.#reading = this.#read().finally(() => {
      this.#reading = null;
    });
    await this.#reading;
    if (this.#isStale) this.#readOn();
  }

  /** Notifications of checkpoints; null: some may have been missed. */
  receive(news: readonly TierNews[] | null): void {
    if (this.#isClosed) return;
    for (const one of news ?? []) {
      this.#notifications.set(one.accountId, one);
      if (this.#checkpoint !== null) this.#apply(one);
    }
    this.#isStale = true;
    if (this.#checkpoint !== null) this.#readOn();
  }

  close(): void {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#retry = null;
  }

  view(accountId: string): TierView {
    const { graceSinceMs, sumLamports } = this.#states.get(accountId) ?? emptyState(accountId);
    const graceEndsMs = graceSinceMs === null ? null : graceSinceMs + this.#options.rules.graceMs;
    return { tier: this.tierOf(accountId), sumLamports, graceSinceMs, graceEndsMs };
  }

  tierOf(accountId: string): string | null {
    return this.#tierIn(this.#states, accountId);
  }

  *tiers(): Iterable<readonly [accountId: string, tier: string]> {
    for (const accountId of this.#states.keys()) {
      const tier = this.tierOf(accountId);
      if (tier !== null) yield [accountId, tier];
    }
  }

  #tierIn(states: ReadonlyMap<string, TierState>, accountId: string): string | null {
    const tier = states.get(accountId)?.tier ?? null;
    return tier !== null && this.#known.has(tier) ? tier : null;
  }

  #apply({ accountId, tier, eventCount }: TierNews): void {
    const state = this.#states.get(accountId) ?? emptyState(accountId);
    if (eventCount <= state.eventCount) return;
    // Whether a downgrade started a grace period is read; an upgrade starts none.
    this.#put({ ...state, tier, eventCount, graceSinceMs: null });
  }

  #put(state: TierState): void {
    const { accountId } = state;
    const before = this.tierOf(accountId);
    this.#states.set(accountId, state);
    const tier = this.tierOf(accountId);
    if (tier !== before) this.#options.onChange(accountId, tier);
  }

  #readOn(): void {
    if (this.#reading || this.#retry || this.#isClosed) return;
    this.#reading = this.#readUntilFresh().finally(() => {
      this.#reading = null;
      if (this.#isStale && !this.#retry) this.#readOn();
    });
  }

  /** Never rejects. */
  async #readUntilFresh(): Promise<void> {
    const { log, clock } = this.#options;
    try {
      while (this.#isStale && !this.#isClosed) await this.#read();
      if (this.#isFailing) log.info("tiers: checkpoints of the leader are readable again");
      this.#isFailing = false;
    } catch (error) {
      this.#isStale = true;
      if (!this.#isFailing)
        log.warn(
          `tiers: checkpoints of the leader cannot be read; the last known tiers stay valid: ${messageOf(error)}`,
        );
      this.#isFailing = true;
      if (this.#isClosed) return;
      this.#retry = clock.after(retryMs, () => {
        this.#retry = null;
        this.#readOn();
      });
    }
  }

  async #read(): Promise<void> {
    const { store } = this.#options;
    this.#isStale = false;
    this.#notifications.clear();
    const known = this.#checkpoint;
    const changes = await store.statesChangedAfter(known);
    const isNext = known !== null && changes.epoch === this.#epoch && changes.checkpoint >= known;
    if (isNext) {
      this.#checkpoint = changes.checkpoint;
      // Notifications since the read are newer than its result.
      for (const state of changes.states) {
        const count = this.#states.get(state.accountId)?.eventCount ?? 0n;
        if (state.eventCount >= count) this.#put(state);
      }
    } else {
      // Another leader continued from the persisted state, which may be older than earlier
      // notifications.
      this.#replace(known === null ? changes : await store.statesChangedAfter(null));
    }
  }

  #replace({ epoch, checkpoint, states }: TierChanges): void {
    const before = this.#states;
    this.#states = new Map(states.map((state) => [state.accountId, state]));
    this.#epoch = epoch;
    this.#checkpoint = checkpoint;
    for (const news of this.#notifications.values()) {
      const state = this.#states.get(news.accountId) ?? emptyState(news.accountId);
      if (news.eventCount <= state.eventCount) continue;
      const { tier, eventCount } = news;
      this.#states.set(news.accountId, { ...state, tier, eventCount, graceSinceMs: null });
    }
    for (const accountId of new Set([...before.keys(), ...this.#states.keys()])) {
      const tier = this.tierOf(accountId);
      if (tier !== this.#tierIn(before, accountId)) this.#options.onChange(accountId, tier);
    }
  }
}
