// Follower's tiers: which tier has an account while another node leads?
//
// Held by account-tiers.ts. All states are in memory, as the leader's checkpoints have them: a change of
// tier holds as soon as the leader's news arrive, before anything is read; sums and graces are read
// behind it. A store that is away changes nothing: the last states hold.

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

const againMs = 1000;

interface FollowerTiersOptions {
  readonly rules: TierRules;
  readonly store: Pick<TierStore, "statesChangedAfter">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called in the turn in which it changed. */
  readonly onChange: TierListener;
}

function emptyState(accountId: string): TierState {
  return { accountId, tier: null, graceSinceMs: null, sumLamports: 0n, eventCount: 0n };
}

export class FollowerTiers implements TierSource {
  readonly #options: FollowerTiersOptions;
  /** The relay knows nothing of another configuration's tiers. */
  readonly #known: ReadonlySet<string>;
  #states = new Map<string, TierState>();
  #epoch = 0n;
  /** Everything up to this checkpoint is in the states; null: nothing was read. */
  #checkpoint: bigint | null = null;
  /** News during a read, which may have been too early to see them; the last of each account. */
  readonly #heard = new Map<string, TierNews>();
  #reading: Promise<void> | null = null;
  #isStale = false;
  #isFailing = false;
  #retry: Timer | null = null;
  #isClosed = false;

  constructor(options: FollowerTiersOptions) {
    this.#options = options;
    this.#known = new Set(options.rules.tiers.map(({ name }) => name));
  }

  /** Reads everything. Rejects as the store. News that come meanwhile are in it. */
  async load(): Promise<void> {
    this.#reading = this.#read().finally(() => {
      this.#reading = null;
    });
    await this.#reading;
    if (this.#isStale) this.#readOn();
  }

  /** News of checkpoints; null: some may have been missed. */
  hear(news: readonly TierNews[] | null): void {
    if (this.#isClosed) return;
    for (const one of news ?? []) {
      this.#heard.set(one.accountId, one);
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
    // Whether a grace begins at a fall is read; none has begun at a rise.
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
      if (this.#isFailing) log.info("tiers: the store tells again what another node keeps");
      this.#isFailing = false;
    } catch (error) {
      this.#isStale = true;
      if (!this.#isFailing) log.warn(`tiers: the last known ones hold: ${messageOf(error)}`);
      this.#isFailing = true;
      if (this.#isClosed) return;
      this.#retry = clock.after(againMs, () => {
        this.#retry = null;
        this.#readOn();
      });
    }
  }

  async #read(): Promise<void> {
    const { store } = this.#options;
    this.#isStale = false;
    this.#heard.clear();
    const known = this.#checkpoint;
    const changes = await store.statesChangedAfter(known);
    const isNext = known !== null && changes.epoch === this.#epoch && changes.checkpoint >= known;
    if (isNext) {
      this.#checkpoint = changes.checkpoint;
      // News since the read are newer than what it saw.
      for (const state of changes.states) {
        const count = this.#states.get(state.accountId)?.eventCount ?? 0n;
        if (state.eventCount >= count) this.#put(state);
      }
    } else {
      // Another leader went on from what is persisted, which may be less than the news said before.
      this.#replace(known === null ? changes : await store.statesChangedAfter(null));
    }
  }

  #replace({ epoch, checkpoint, states }: TierChanges): void {
    const before = this.#states;
    this.#states = new Map(states.map((state) => [state.accountId, state]));
    this.#epoch = epoch;
    this.#checkpoint = checkpoint;
    for (const news of this.#heard.values()) {
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
