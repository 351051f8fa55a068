// Counted tips in a real database, and that database under a random history of the tier engine.

import { ShredwayError } from "../../../src/core/errors.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import type { CountedTip, TierStore } from "../../../src/shreds/tiers/types.ts";
import type { HistoryStore } from "../../shreds/tiers/histories.ts";
import { type Faults, notShared, type Saved } from "../../shreds/tiers/memory-tier-store.ts";

const insert = `INSERT INTO registrations (signature, account_id, lamports, slot, registered_ms,
    lifetime, state, settled_ms, counted_lamports, counted_order)
  VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9)`;

function bytesOf(order: bigint): Uint8Array {
  const bytes = new Uint8Array(64);
  new DataView(bytes.buffer).setBigUint64(0, order);
  return bytes;
}

export async function keepTip(
  driver: SqlDriver,
  { order, accountId, lamports, registeredMs, countedMs }: CountedTip,
  state = "counted",
): Promise<void> {
  const isCounted = state === "counted";
  const settled = state === "pending" ? null : BigInt(countedMs);
  const counted = isCounted ? [lamports, order] : [null, null];
  const known = [accountId, lamports + 1n, BigInt(registeredMs), new Uint8Array(32), state];
  const params = [bytesOf(order), ...known, settled, ...counted];
  await driver.transaction([{ sql: insert, params }], "survives-kill");
}

const tables = ["registrations", "tier_clock", "tier_states", "tier_events"];

export class SqlHistoryStore implements HistoryStore {
  readonly faults: Faults = { reads: false, writes: false, news: false };
  saved: Saved | null = null;
  onCheckpoint: (saved: Saved) => void = () => {};
  readonly #driver: SqlDriver;
  #underWay = 0;

  static async empty(driver: SqlDriver): Promise<SqlHistoryStore> {
    const statements = tables.map((table) => ({ sql: `DELETE FROM ${table}`, params: [] }));
    await driver.transaction(statements, "survives-kill");
    await new SqlTierStore(driver).takeOver(); // epoch 1
    return new SqlHistoryStore(driver);
  }

  private constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  keep(tip: CountedTip): Promise<void> {
    return keepTip(this.#driver, tip);
  }

  /** A database does not restore an earlier state. */
  lose(): void {}

  connect(): TierStore {
    const store = new SqlTierStore(this.#driver);
    return {
      ...notShared,
      load: () => this.#do("reads", () => store.load()),
      checkpoint: (checkpoint, epoch) =>
        this.#do("writes", async () => {
          if (!(await store.checkpoint(checkpoint, epoch))) return false;
          this.saved = await this.#look(store);
          this.onCheckpoint(this.saved);
          if (this.faults.news) throw new ShredwayError("store_failed", "made-up failure of news");
          return true;
        }),
      countedAfter: (...question) => this.#do("reads", () => store.countedAfter(...question)),
      leavingAfter: (...question) => this.#do("reads", () => store.leavingAfter(...question)),
      events: (...question) => this.#do("reads", () => store.events(...question)),
    };
  }

  async idle(): Promise<void> {
    while (this.#underWay > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  async #do<T>(fault: keyof Faults, work: () => Promise<T>): Promise<T> {
    if (this.faults[fault]) throw new ShredwayError("store_failed", `made-up failure of ${fault}`);
    this.#underWay++;
    try {
      return await work();
    } finally {
      this.#underWay--;
    }
  }

  async #look(store: TierStore): Promise<Saved> {
    const loaded = await store.load();
    if (!loaded) throw new Error("expected a checkpoint, got none");
    const events = new Map<string, Awaited<ReturnType<TierStore["events"]>>>();
    for (const id of ["a", "b", "c"])
      events.set(id, (await store.events(id, null, 1000)).toReversed());
    const states = new Map(loaded.states.map((state) => [state.accountId, state] as const));
    return { ...loaded, states, events };
  }
}
