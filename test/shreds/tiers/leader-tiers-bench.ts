// Harness of the leader's tiers: a store in memory and a clock that the test moves.

import { createLogger } from "../../../src/core/log.ts";
import { LeaderTiers, type LeaderTiersOptions } from "../../../src/shreds/tiers/leader-tiers.ts";
import type { CountedTip, TierRules } from "../../../src/shreds/tiers/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { MemoryTierStore } from "./memory-tier-store.ts";
import { RestartableClock } from "./restartable-clock.ts";

export const hour = 3_600_000;
export const day = 24 * hour;
export const rules: TierRules = {
  tiers: [
    { name: "tier-1", thresholdLamports: 200n },
    { name: "tier-2", thresholdLamports: 500n },
  ],
  windowMs: day,
  graceMs: day,
};

/** The leader's tiers over a store in memory, with their log lines and notifications. */
export class Bench {
  readonly manual = new ManualClock();
  life = new RestartableClock(this.manual);
  readonly store = new MemoryTierStore();
  readonly notifications: [string, string | null][] = [];
  readonly lines: string[] = [];
  accounting: LeaderTiers = this.open();

  open(options: Partial<LeaderTiersOptions> = {}): LeaderTiers {
    const log = createLogger({
      stream: { write: (line: string) => void this.lines.push(line) },
    });
    const store = this.store.connect();
    this.accounting = new LeaderTiers({
      rules,
      store,
      clock: this.life,
      log,
      epoch: 1n,
      ...options,
    });
    this.accounting.onChange((accountId, tier) => this.notifications.push([accountId, tier]));
    return this.accounting;
  }

  async started(options: Partial<LeaderTiersOptions> = {}): Promise<this> {
    await this.open(options).start();
    await this.manual.advance(0);
    return this;
  }

  /** The process is killed, and starts again after `downMs`. */
  async restart(downMs = 0, options: Partial<LeaderTiersOptions> & { setMs?: number } = {}) {
    this.life.end();
    await this.manual.advance(downMs);
    this.life = new RestartableClock(this.manual, options.setMs);
    this.notifications.length = 0;
    await this.started(options);
  }

  keep(lamports: bigint, changes: Partial<CountedTip> = {}): CountedTip {
    const nowMs = this.accounting.nowMs();
    const order = this.accounting.takeOrder();
    const times = { registeredMs: nowMs, countedMs: nowMs };
    const tip = { order, accountId: "a", lamports, ...times, ...changes };
    this.store.keep(tip);
    return tip;
  }

  count(lamports: bigint, changes: Partial<CountedTip> = {}): CountedTip {
    const tip = this.keep(lamports, changes);
    this.accounting.settleOrder(tip.order, tip);
    return tip;
  }

  get wallMs(): number {
    return Number(this.life.nowNs() / 1_000_000n);
  }

  get kinds(): (readonly [string, number])[] {
    return (this.store.saved?.events.get("a") ?? []).map(({ kind, atMs }) => [kind, atMs] as const);
  }
}
