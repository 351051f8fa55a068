// A database that is exchanged under those who use it: order, holding back, news and locks.

import { afterEach, describe, expect, it } from "vitest";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { MovableDriver } from "../../../src/platform/store/movable-driver.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { Files, silent } from "./files.ts";

const files = new Files();
afterEach(() => files.clean());

async function newDatabase(): Promise<SqlDriver> {
  const driver = await files.driver();
  const sql = "CREATE TABLE things (id bigint PRIMARY KEY, number bigint NOT NULL)";
  await driver.transaction([{ sql, params: [] }], "durable");
  return driver;
}

const add = (id: bigint) => [
  { sql: "INSERT INTO things (id, number) VALUES ($1, 0)", params: [id] },
];
const put = (number: bigint) => [
  {
    sql: `INSERT INTO things (id, number) VALUES (1, $1)
      ON CONFLICT (id) DO UPDATE SET number = things.number * 10 + excluded.number`,
    params: [number],
  },
];
const all = async (driver: SqlDriver): Promise<unknown> =>
  (await driver.query("SELECT id, number FROM things ORDER BY id", [])).map((row) =>
    row.map(String),
  );

describe("MovableDriver", () => {
  it("holds changes back in their order, and lets them go on at the other database", async () => {
    const [one, other] = [await newDatabase(), await newDatabase()];
    const movable = new MovableDriver(one, { clock: new ManualClock(), log: silent });
    const before = movable.transaction(add(7n), "durable");
    const hold = await movable.hold(1000, () => {});
    expect(await all(one)).toEqual([["7", "0"]]); // what was under way had ended
    await before;
    const changes = [1n, 2n, 3n, 4n].map((number) => movable.transaction(put(number), "durable"));
    expect(await all(movable)).toEqual([["7", "0"]]);
    expect(hold.exchange(other)).toBe(true);
    changes.push(movable.transaction(put(5n), "durable"));
    await Promise.all(changes);
    expect(await all(movable)).toEqual([["1", "12345"]]);
    expect(await all(one)).toEqual([["7", "0"]]);
    expect(hold.exchange(one)).toBe(false);
    expect(hold.isOver).toBe(true);
  });

  it("waits for what is under way, and for nothing that came later", async () => {
    const one = await newDatabase();
    const gates: (() => void)[] = [];
    const slow: SqlDriver = {
      query: (...args) => one.query(...args),
      transaction: async (...args) => {
        await new Promise<void>((resolve) => gates.push(resolve));
        return one.transaction(...args);
      },
      onForeignChange: (listener) => one.onForeignChange(listener),
      tryLock: (...args) => one.tryLock(...args),
      close: () => one.close(),
    };
    const movable = new MovableDriver(slow, { clock: new ManualClock(), log: silent });
    const order: string[] = [];
    const tell = (what: string) => () => void order.push(what);
    const first = movable.transaction(add(1n), "durable").then(tell("first"));
    const holding = movable.hold(1000, () => {});
    const held = holding.then(tell("held"));
    const later = movable.transaction(add(2n), "durable").then(tell("later"));
    await new Promise((resolve) => setImmediate(resolve));
    expect([order, gates.length]).toEqual([[], 1]);
    gates[0]?.();
    await Promise.all([first, held]);
    expect(order).toEqual(["first", "held"]);
    const hold = await holding;
    hold.release();
    gates[1]?.();
    await later;
  });

  it("goes on as before when it is released, and refuses after a while", async () => {
    const one = await newDatabase();
    const clock = new ManualClock();
    const movable = new MovableDriver(one, { clock, log: silent });
    const hold = await movable.hold(1000, () => {});
    const first = movable.transaction(put(1n), "durable");
    hold.release();
    hold.release();
    await first;
    const told: string[] = [];
    const second = await movable.hold(1000, () => told.push("over"));
    const late = movable.transaction(put(2n), "durable");
    late.catch(() => told.push("refused"));
    await clock.advance(999);
    expect(second.isOver).toBe(false);
    await clock.advance(1);
    await expect(late).rejects.toMatchObject({ reason: "store_failed" });
    expect(told).toEqual(["over", "refused"]);
    expect(second.isOver).toBe(true);
    expect(second.exchange(await newDatabase())).toBe(false);
    await movable.transaction(put(3n), "durable");
    expect(await all(one)).toEqual([["1", "13"]]);
    await expect(movable.hold(1, () => {})).resolves.toMatchObject({ isOver: false });
  });

  it("hands on results and failures, also of what waited", async () => {
    const one = await newDatabase();
    const movable = new MovableDriver(one, { clock: new ManualClock(), log: silent });
    const hold = await movable.hold(1000, () => {});
    const must = { ...add(1n)[0], mustChange: true };
    const nothing = { sql: "DELETE FROM things WHERE id = 9", params: [], mustChange: true };
    const good = movable.transaction(add(1n), "durable");
    const twice = movable.transaction(add(1n), "durable");
    const taken = movable.transaction([nothing], "durable");
    hold.release();
    expect(must.mustChange).toBe(true);
    expect(await good).toEqual({ isCommitted: true, changes: [1] });
    await expect(twice).rejects.toMatchObject({ reason: "store_failed" });
    expect(await taken).toEqual({ isCommitted: false, changes: [] });
  });

  it("passes news of both on, and that anything may have changed between them", async () => {
    const told: string[] = [];
    const newsFrom: ((news: readonly string[] | null) => void)[] = [];
    const stub = (driver: SqlDriver): SqlDriver => ({
      query: (...args) => driver.query(...args),
      transaction: (...args) => driver.transaction(...args),
      tryLock: (...args) => driver.tryLock(...args),
      close: () => driver.close(),
      onForeignChange: (listener) => {
        newsFrom.push(listener);
        return () => void newsFrom.splice(newsFrom.indexOf(listener), 1);
      },
    });
    const [one, other] = [stub(await newDatabase()), stub(await newDatabase())];
    const movable = new MovableDriver(one, { clock: new ManualClock(), log: silent });
    const end = movable.onForeignChange((news) => told.push(String(news)));
    movable.onForeignChange(() => {
      throw new Error("a listener that fails");
    });
    newsFrom[0]?.(["keys"]);
    const hold = await movable.hold(1000, () => {});
    hold.exchange(other);
    expect(newsFrom.length).toBe(1);
    newsFrom[0]?.(["tiers a_1 tier-1 3"]);
    end();
    newsFrom[0]?.(["keys"]);
    expect(told).toEqual(["keys", "null", "tiers a_1 tier-1 3"]);
  });

  it("loses its locks with the database that they were of, each once", async () => {
    const [one, other] = [await newDatabase(), await newDatabase()];
    const movable = new MovableDriver(one, { clock: new ManualClock(), log: silent });
    const lost: string[] = [];
    const lock = (name: string) => movable.tryLock(name, () => lost.push(name));
    const kept = await lock("kept");
    await (await lock("released"))?.release();
    expect(await lock("kept")).toBeNull();
    const hold = await movable.hold(1000, () => {});
    const late = lock("late"); // asked for at the one, answered after the exchange
    hold.exchange(other);
    expect(await late).toBeNull();
    expect(lost).toEqual(["kept"]);
    expect(await lock("kept")).not.toBeNull();
    await kept?.release();
    expect(await lock("kept")).toBeNull(); // the release was of the old one
  });
});
