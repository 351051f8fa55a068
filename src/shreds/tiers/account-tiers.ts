// Account tiers: the tier of each account, and notifications of changes.
//
// The tiers for the other modules, on a leader or a follower; created in app/compose-shreds.ts.
// LeaderTiers answers in a term of this node, FollowerTiers otherwise. Only TierLeadership switches
// between them. A switch notifies the listeners of each difference once; the last known tiers stay valid
// until the next ones are read.

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
  /**
   * The visible tiers: of the follower, of the leader, or of a former leader until the follower has
   * read.
   */
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

  /**
   * Accounts by tier, 0 for tiers without any, and the number of accounts in their grace period.
   */
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
  receive(news: readonly TierNews[] | null): void {
    this.#follower.receive(news);
  }

  /**
   * Reads the leader's checkpoints and makes them visible. Rejects like the store; the previous tiers
   * then stay visible.
   */
  async load(): Promise<void> {
    const follower = this.#follower;
    await follower.load();
    this.#show(follower);
  }

  /**
   * Brings the tiers up to date for a term of this node; they are visible from `lead` on. `onOver`: see
   * LeaderTiersOptions. Rejects like the store; then nothing changed.
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

  /** Starts the term of `leader`, which `open` returned. */
  lead(leader: LeaderTiers): void {
    leader.onChange((accountId) => {
      if (this.#source === leader) this.#notify(accountId);
    });
    this.#leader = leader;
    this.#follower.close();
    this.#show(leader);
  }

  /** Ends the term of this node. Its last tiers stay visible until `load` succeeds. */
  follow(): void {
    this.#leader?.abandon();
    this.#lastMs = this.nowMs();
    this.#leader = null;
    this.#follower = this.#newFollower();
  }

  /** Settles when the last state of this node's term is persisted, or could not be. */
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

  /** Notifies listeners of each difference once. */
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
        // The current tier, because an earlier listener may have changed it.
        listener(accountId, this.tierOf(accountId));
      } catch (error) {
        this.#options.log.error(`tiers: a listener failed: ${messageOf(error)}`);
      }
    }
  }
}
