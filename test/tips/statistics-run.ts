// Tip statistics on a clock that is advanced, set, and continued by the next process.

import type { Timer } from "../../src/core/clock.ts";
import { TipStatistics } from "../../src/tips/tip-statistics.ts";
import type { TipSnapshot } from "../../src/tips/tip-types.ts";
import { MemoryStore } from "../shreds/registrations/memory-store.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

export const minuteMs = 60_000;
/** 2026-01-01T00:00:00Z, a quarter hour. */
export const startMs = 1_767_225_600_000;

/** Its wall time can be set; timers and monotonic time do not change. */
class SettableClock extends ManualClock {
  aheadMs = 0;
  /** Monotonic nanoseconds that each read of the clock takes. */
  lookNs = 0n;
  /** Number of zero waits, in which other work runs. */
  turns = 0;
  #looksNs = 0n;

  override nowNs(): bigint {
    return super.nowNs() + BigInt(this.aheadMs) * 1_000_000n;
  }

  override after(delayMs: number, action: () => void): Timer {
    if (delayMs === 0) this.turns++;
    return super.after(delayMs, action);
  }

  override monotonicNs(): bigint {
    this.#looksNs += this.lookNs;
    return super.monotonicNs() + this.#looksNs;
  }
}

export class Run {
  readonly clock = new SettableClock();
  readonly store = new MemoryStore();
  readonly warnings: string[] = [];
  readonly notifications: TipSnapshot[] = [];
  #statistics: TipStatistics | undefined;

  static async open(afterMs = 0): Promise<Run> {
    const run = new Run();
    await run.clock.advance(afterMs);
    await run.restart();
    return run;
  }

  /** The previous process is killed and writes nothing more. */
  async restart(): Promise<void> {
    const log = { warn: (text: unknown) => void this.warnings.push(String(text)) };
    const { clock, store } = this;
    this.#statistics = await TipStatistics.open({ clock, log, store });
    this.#statistics.onRefresh((snapshot) => this.notifications.push(snapshot));
  }

  get statistics(): TipStatistics {
    if (!this.#statistics) throw new Error("expected open statistics");
    return this.#statistics;
  }

  get snapshot(): TipSnapshot {
    return this.statistics.snapshot;
  }

  seen(signature: string, lamports: bigint, agoMs = 0): void {
    this.statistics.observed(signature, lamports, this.clock.nowNs() - BigInt(agoMs) * 1_000_000n);
  }

  landed(signature: string, lamports: bigint): void {
    this.statistics.landed(signature, lamports, this.clock.nowNs());
  }
}

export function of(value: bigint) {
  return { p25: value, p50: value, p75: value, p95: value, p99: value };
}
