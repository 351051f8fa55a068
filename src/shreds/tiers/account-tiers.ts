// Account tiers: which tier has each account, and who is notified when that changes?
//
// The Tiers of the other modules, whichever node leads; composed in app/compose-shreds.ts. In a term of
// this node LeaderTiers answers, otherwise FollowerTiers does. TierLeadership alone switches between
// them. A switch notifies the listeners of what differs, once; the last known tiers hold until the
// next ones are read.

import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { FollowerTiers } from "./follower-tiers.ts";
import { LeaderTiers } from "./leader-tiers.ts";
import type {
  TierEvent,
  TierListener,
  TierNews,
  TierRules,
  TierSource,
  TierStore,
  Tiers,
  TierView,
} from "./types.ts";

interface AccountTiersOptions {
  readonly rules: TierRules;
  readonly store: TierStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** See LeaderTiersOptions. */
  readonly headMax?: number;
  readonly pageMax?: number;
}

export class AccountTiers implements Tiers {
  readonly #options: AccountTiersOptions;
  readonly #listeners = new Set<TierListener>();
  #follower: FollowerTiers;
  /** null: another node leads. */
  #leader: LeaderTiers | null = null;
  /** What is shown: the follower, the leader, or a former leader until the follower has read. */
  #source: TierSource;
  #lastMs = 0;

  constructor(options: AccountTiersOptions) {
    this.#options = options;
    this.#follower = this.#newFollower();
    this.#source = this.#follower;
  }

  view(accountId: string): TierView {
    return this.#source.view(accountId);
  }

  tierOf(accountId: string): string | null {
    return this.#source.tierOf(accountId);
  }

  /** Accounts by tier, 0 for tiers without any, and how many of them are in their grace period. */
  census(): { readonly tiers: ReadonlyMap<string, number>; readonly inGrace: number } {
    const tiers = new Map(this.#options.rules.tiers.map(({ name }): [string, number] => [name, 0]));
    let inGrace = 0;
    for (const [accountId, tier] of this.#source.tiers()) {
      tiers.set(tier, (tiers.get(tier) ?? 0) + 1);
      if (this.#source.view(accountId).graceEndsMs !== null) inGrace++;
    }
    return { tiers, inGrace };
  }

  onChange(listener: TierListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  history(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]> {
    if (this.#leader) return this.#leader.history(accountId, before, limit);
    return this.#options.store.events(accountId, before, limit);
  }

  nowMs(): number {
    const nowMs = this.#leader?.nowMs() ?? Number(this.#options.clock.nowNs() / 1_000_000n);
    this.#lastMs = Math.max(this.#lastMs, nowMs);
    return this.#lastMs;
  }

  /** Checkpoints of other nodes; null: some may have been missed. */
  hear(news: readonly TierNews[] | null): void {
    this.#follower.hear(news);
  }

  /** Reads what the leader persisted and shows it. Rejects as the store: what was shown still is. */
  async load(): Promise<void> {
    const follower = this.#follower;
    await follower.load();
    this.#show(follower);
  }

  /**
   * Brings the tiers up to date for a term of this node; they are shown from `lead` on. `onOver`: see
   * LeaderTiersOptions. Rejects as the store: nothing changed then.
   */
  async open(epoch: bigint, onOver: () => void): Promise<LeaderTiers> {
    const leader = new LeaderTiers({ ...this.#options, epoch, onOver });
    try {
      await leader.start();
    } catch (error) {
      leader.abandon();
      throw error;
    }
    return leader;
  }

  /** The term of `leader` begins, which `open` returned. */
  lead(leader: LeaderTiers): void {
    leader.onChange((accountId) => {
      if (this.#source === leader) this.#notify(accountId);
    });
    this.#leader = leader;
    this.#follower.close();
    this.#show(leader);
  }

  /** The term of this node is over. Its last tiers are shown until `load` succeeds. */
  follow(): void {
    this.#leader?.abandon();
    this.#lastMs = this.nowMs();
    this.#leader = null;
    this.#follower = this.#newFollower();
  }

  /** Settles when the last moment of this node's term is persisted, or could not be. */
  async close(): Promise<void> {
    this.#follower.close();
    await this.#leader?.close();
  }

  #newFollower(): FollowerTiers {
    const { rules, store, clock, log } = this.#options;
    const follower: FollowerTiers = new FollowerTiers({
      rules,
      store,
      clock,
      log,
      onChange: (accountId) => {
        if (this.#source === follower) this.#notify(accountId);
      },
    });
    return follower;
  }

  /** Notifies of what differs, once. */
  #show(source: TierSource): void {
    const before = new Map(this.#source.tiers());
    this.#source = source;
    const accountIds = new Set(before.keys());
    for (const [accountId] of source.tiers()) accountIds.add(accountId);
    for (const accountId of accountIds) {
      if (this.tierOf(accountId) !== (before.get(accountId) ?? null)) this.#notify(accountId);
    }
  }

  #notify(accountId: string): void {
    for (const listener of this.#listeners) {
      try {
        // The tier as it is now: a listener before this one may have changed it.
        listener(accountId, this.tierOf(accountId));
      } catch (error) {
        this.#options.log.error(`after a change of an account's tier: ${messageOf(error)}`);
      }
    }
  }
}
