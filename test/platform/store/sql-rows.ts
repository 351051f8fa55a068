// The rows of several nodes in a real database, each node with its own driver. Notifications are
// delivered inside this process, in commit order.

import { base58 } from "@scure/base";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { SqlRegistrationStore } from "../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import type { CountedTip } from "../../../src/shreds/tiers/types.ts";
import type { Rows, Stores } from "../../shreds/tiers/simulation.ts";

const codec = {
  encode: (bytes: Uint8Array) => base58.encode(bytes),
  decode: (text: string) => base58.decode(text),
};
const tables = ["registrations", "tier_clock", "tier_states", "tier_events"];

export class SqlRows implements Rows {
  readonly #drivers: readonly SqlDriver[];
  #next = 0;
  #underWay = 0;

  static async empty(drivers: readonly SqlDriver[]): Promise<SqlRows> {
    const statements = tables.map((table) => ({ sql: `DELETE FROM ${table}`, params: [] }));
    await drivers[0]?.transaction(statements, "survives-kill");
    return new SqlRows(drivers);
  }

  private constructor(drivers: readonly SqlDriver[]) {
    this.#drivers = drivers;
  }

  connect(driver: Parameters<Rows["connect"]>[0], notify: Parameters<Rows["connect"]>[1]): Stores {
    const own = this.#drivers[this.#next++ % this.#drivers.length];
    if (!own) throw new Error("expected a driver");
    const linked: SqlDriver = {
      query: (...question) => this.#do(() => own.query(...question)),
      transaction: (statements, durability, news) =>
        this.#do(async () => {
          const end = await own.transaction(statements, durability, news);
          if (end.isCommitted && news && news.length > 0) notify(news);
          return end;
        }),
      onForeignChange: (listener) => driver.onForeignChange(listener),
      tryLock: () => Promise.reject(new Error("expected nobody to ask")),
      close: () => Promise.resolve(),
    };
    return {
      tiers: new SqlTierStore(linked),
      registrations: new SqlRegistrationStore(linked, codec),
    };
  }

  async counted(): Promise<CountedTip[]> {
    const [driver] = this.#drivers;
    return driver ? new SqlTierStore(driver).countedAfter(0n, 100_000) : [];
  }

  async idle(): Promise<void> {
    while (this.#underWay > 0) await new Promise((resolve) => setImmediate(resolve));
  }

  async #do<T>(work: () => Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      return await work();
    } finally {
      this.#underWay--;
    }
  }
}
