// A database's move to PostgreSQL while it is used: what was acknowledged is there, what went wrong
// leaves everything as it was.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { databaseFileName } from "../../../../src/platform/store/data-folder.ts";
import type { SqlDriver } from "../../../../src/platform/store/driver.ts";
import { migrate, migrations, versionOf } from "../../../../src/platform/store/migrations.ts";
import { MovableDriver } from "../../../../src/platform/store/movable-driver.ts";
import { PostgresDriver } from "../../../../src/platform/store/postgres/driver.ts";
import type { SqliteDriver } from "../../../../src/platform/store/sqlite/driver.ts";
import { Store } from "../../../../src/platform/store/store.ts";
import { isMark } from "../../../../src/platform/store/transfer/mark.ts";
import { type MoveOptions, moveToPostgres } from "../../../../src/platform/store/transfer/move.ts";
import { movingPath, type OpenDatabase } from "../../../../src/platform/store/transfer/place.ts";
import { tablesAt } from "../../../../src/platform/store/transfer/tables.ts";
import { PostgresServer, postgresPrograms } from "../../../support/postgres/postgres.ts";
import { Files, silent, until } from "../files.ts";
import { registrationOf } from "./child.ts";
import { allRows, fill } from "./rows.ts";

const newest = migrations.length;
const tables = tablesAt(newest);
const random = (): number => Math.random();

/** `driver`, but for what is replaced. */
function wrapped(driver: SqlDriver, changes: Partial<SqlDriver>): SqlDriver {
  return {
    query: (...args) => driver.query(...args),
    transaction: (...args) => driver.transaction(...args),
    onForeignChange: (listener) => driver.onForeignChange(listener),
    tryLock: (...args) => driver.tryLock(...args),
    close: () => driver.close(),
    ...changes,
  };
}

describe.skipIf(postgresPrograms === null)("the move to PostgreSQL", () => {
  const files = new Files();
  let server: PostgresServer;
  let made = 0;

  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterEach(() => files.clean());
  afterAll(() => server.remove());

  async function newUrl(): Promise<string> {
    const url = server.url(`move_${++made}`);
    await server.ensureDatabase(url);
    return url;
  }

  async function openUrl(url: string): Promise<PostgresDriver> {
    return files.closing(await PostgresDriver.open({ url, clock: systemClock, log: silent }));
  }

  interface Run {
    readonly directory: string;
    readonly url: string;
    readonly source: SqliteDriver;
    readonly movable: MovableDriver;
    readonly ending: AbortController;
    move(changes?: Partial<MoveOptions>): ReturnType<typeof moveToPostgres>;
    open(): Promise<OpenDatabase>;
  }

  async function newRun(rows: number): Promise<Run> {
    const directory = files.folder();
    const url = await newUrl();
    const source = await files.driver({ path: join(directory, databaseFileName) });
    await migrate(source, "blob");
    await fill(source, tables, rows, random);
    const options = { clock: systemClock, log: silent };
    const movable = files.closing(new MovableDriver(source, options));
    const ending = new AbortController();
    files.closing({ close: () => Promise.resolve(ending.abort()) });
    const open = async (): Promise<OpenDatabase> => ({
      driver: await openUrl(url),
      blobType: "bytea",
      warnings: [],
    });
    const common = { movable, source, directory, openTarget: open, signal: ending.signal };
    const move: Run["move"] = async (changes = {}) => {
      const summary = await moveToPostgres({ ...common, ...options, ...changes });
      files.closing({
        close: () => {
          ending.abort();
          return summary.rest;
        },
      });
      return summary;
    };
    return { directory, url, source, movable, ending, move, open };
  }

  /** The target, with `query` of its counts in somebody's hand: in the middle of the hold. */
  function stoppedAtCounts(run: Run, meanwhile: () => Promise<void>): () => Promise<OpenDatabase> {
    return async () => {
      const target = await run.open();
      const { driver } = target;
      let isFirst = true;
      const query: SqlDriver["query"] = async (sql, params) => {
        if (sql.startsWith("SELECT COUNT(*)") && isFirst) {
          isFirst = false;
          await meanwhile();
        }
        return driver.query(sql, params);
      };
      return { ...target, driver: wrapped(driver, { query }) };
    };
  }

  const oneAccount = (id: string) => [
    { sql: "INSERT INTO accounts (id, name, created_ns) VALUES ($1, $1, 1)", params: [id] },
  ];

  it("carries every change that goes on meanwhile, and each once", async () => {
    const run = await newRun(1500);
    const model = new Map<string, bigint>();
    const hexOf = (bytes: unknown): string =>
      bytes instanceof Uint8Array ? Buffer.from(bytes).toString("hex") : "";
    const before = await run.source.query("SELECT signature, lamports FROM landed_tips", []);
    for (const [signature, lamports] of before) {
      if (signature instanceof Uint8Array && typeof lamports === "bigint") {
        model.set(hexOf(signature), lamports);
      }
    }
    const over = new AbortController();
    let commits = 0;
    const put = `INSERT INTO landed_tips (signature, lamports, landed_ms) VALUES ($1, $2, 0)
      ON CONFLICT (signature) DO UPDATE SET lamports = excluded.lamports`;
    const lane = async (number: number): Promise<void> => {
      for (let i = 0; !over.signal.aborted; i++) {
        const signature = new Uint8Array(64).fill(number + 1);
        new DataView(signature.buffer).setUint32(0, 2 ** 31 + Math.floor(i / 3));
        const sql = i % 3 < 2 || i % 2 === 0 ? put : "DELETE FROM landed_tips WHERE signature = $1";
        const isPut = sql === put;
        const params = isPut ? [signature, BigInt(i)] : [signature];
        await run.movable.transaction([{ sql, params }], "durable");
        if (isPut) model.set(hexOf(signature), BigInt(i));
        else model.delete(hexOf(signature));
        commits++;
      }
    };
    const lanes = Array.from({ length: 8 }, (_, number) => lane(number));
    const { heldMs } = await run.move();
    const atExchange = commits;
    await until(() => commits > atExchange + 100); // now in PostgreSQL
    over.abort();
    await Promise.all(lanes);
    expect(heldMs).toBeLessThan(3000);
    const target = await openUrl(run.url);
    const found = await target.query("SELECT signature, lamports FROM landed_tips", []);
    const kept = new Map(found.map(([bytes, lamports]) => [hexOf(bytes), lamports] as const));
    expect(kept.size).toBe(found.length);
    expect(kept).toEqual(model);
    expect(await versionOf(target)).toBe(newest);
    expect(existsSync(join(run.directory, databaseFileName))).toBe(false);
    const names = readdirSync(run.directory).filter((name) => name.endsWith(".moved"));
    expect(names.length).toBe(1);
    // The file is a whole database of its own, and as it was at that moment.
    const old = await files.driver({ path: join(run.directory, names[0] ?? "") });
    const { landed_tips: left = [], ...others } = await allRows(old, tables);
    const { landed_tips: right = [], ...theirs } = await allRows(target, tables);
    expect(theirs).toEqual(others);
    expect(left.length).toBeGreaterThan(1500);
    expect(right.length).toBe(model.size);
  });

  it("keeps what every store changes, of every table", async () => {
    const run = await newRun(50);
    const counting = stoppedAtCounts(run, () => Promise.resolve());
    let wasChanged = false;
    // Everything changes after it was copied, before it is held.
    const openTarget = async (): Promise<OpenDatabase> => {
      const target = await counting();
      const { driver } = target;
      const transaction: SqlDriver["transaction"] = async (statements, durability) => {
        const end = await driver.transaction(statements, durability);
        if (!wasChanged && statements.some(({ sql }) => sql.includes("INTO tip_snapshots"))) {
          wasChanged = true;
          const all = tables.toReversed().map(({ name, key }) => ({
            sql: `DELETE FROM ${name} WHERE ${key[0]} IN (SELECT ${key[0]} FROM ${name} LIMIT 1)
              AND '${name}' <> 'accounts'`,
            params: [],
          }));
          const names = { sql: "UPDATE accounts SET name = name || '+'", params: [] };
          const settled = { sql: "UPDATE registrations SET state = 'counted'", params: [] };
          await run.movable.transaction([...all, names, settled, ...oneAccount("new")], "durable");
        }
        return end;
      };
      return {
        ...target,
        driver: wrapped(driver, { transaction }),
      };
    };
    await run.move({ openTarget });
    expect(wasChanged).toBe(true);
    const [name = ""] = readdirSync(run.directory).filter((one) => one.endsWith(".moved"));
    const old = await files.driver({ path: join(run.directory, name) });
    const target = await openUrl(run.url);
    const kept = await allRows(target, tables);
    expect(kept).toEqual(await allRows(old, tables));
    expect(kept["accounts"]?.length).toBe(51);
    expect(kept["destinations"]?.length).toBe(49);
  });

  it("holds changes back for a while only, refuses them then, and is taken back", async () => {
    const run = await newRun(20);
    const before = await allRows(run.source, tables);
    let refusal: unknown;
    let during: readonly unknown[] = [];
    const openTarget = stoppedAtCounts(run, async () => {
      during = await run.movable.query("SELECT COUNT(*) FROM accounts", []); // reads go on
      refusal = await run.movable
        .transaction(oneAccount("held"), "durable")
        .catch((error) => error);
      await run.movable.transaction(oneAccount("after"), "durable");
    });
    const failure: unknown = await run.move({ openTarget, holdMs: 2000 }).catch((error) => error);
    expect(String(refusal)).toContain("changes were held back for 2000 ms");
    expect(refusal).toMatchObject({ reason: "store_failed" });
    expect(String(failure)).toContain("expected to be done in 2000 ms");
    expect(during).toEqual([[20n]]);
    const { accounts = [], ...others } = await allRows(run.source, tables);
    expect(accounts.length).toBe((before["accounts"]?.length ?? 0) + 1);
    expect({ ...others, accounts: [] }).toEqual({ ...before, accounts: [] });
    await run.move();
    expect((await allRows(await openUrl(run.url), tables))["accounts"]).toEqual(accounts);
  });

  it("lets no other process write while it holds, and none that came before", async () => {
    const run = await newRun(20);
    const path = join(run.directory, databaseFileName);
    const other = await files.driver({ path, busyMs: 50 });
    let refusal: unknown;
    const openTarget = stoppedAtCounts(run, async () => {
      refusal = await other.transaction(oneAccount("other"), "durable").catch((error) => error);
    });
    await run.move({ openTarget });
    expect(String(refusal)).toContain("another process holds it");
    const after = other.transaction(oneAccount("late"), "durable");
    await expect(after).rejects.toThrow("another process holds it");
    expect((await allRows(await openUrl(run.url), tables))["accounts"]?.length).toBe(20);
  });

  it("is taken back when a command changes the file meanwhile, and carries that the next time", async () => {
    const run = await newRun(20);
    const other = await files.driver({ path: join(run.directory, databaseFileName) });
    const openTarget = async (): Promise<OpenDatabase> => {
      const target = await run.open();
      const { driver } = target;
      const transaction: SqlDriver["transaction"] = async (statements, durability) => {
        if (statements.some(({ sql }) => sql.includes("INTO tip_snapshots"))) {
          await other.transaction(oneAccount("command"), "durable");
        }
        return driver.transaction(statements, durability);
      };
      return {
        ...target,
        driver: wrapped(driver, { transaction }),
      };
    };
    await expect(run.move({ openTarget })).rejects.toThrow("nobody else changes");
    expect(isMark(await versionOf(await openUrl(run.url)))).toBe(false); // empty again
    await run.move();
    const { accounts = [] } = await allRows(await openUrl(run.url), tables);
    expect(accounts.filter((row) => row.includes("command")).length).toBe(1);
    expect(accounts.length).toBe(21);
  });

  it("leaves all as it was when PostgreSQL goes in the middle; the next one goes through", async () => {
    const run = await newRun(3000);
    const own = await PostgresServer.start();
    files.closing({ close: () => own.remove() });
    const url = own.url("own");
    await own.ensureDatabase(url);
    const times = { waitMs: 200, outcomeMs: 200, connectMs: 500 };
    let pages = 0;
    const openTarget = async (): Promise<OpenDatabase> => {
      const driver = files.closing(
        await PostgresDriver.open({ url, clock: systemClock, log: silent, times }),
      );
      const transaction: SqlDriver["transaction"] = async (statements, durability) => {
        if (++pages === 10) await own.kill();
        return driver.transaction(statements, durability);
      };
      return {
        driver: wrapped(driver, { transaction }),
        blobType: "bytea",
        warnings: [],
      };
    };
    const before = await allRows(run.source, tables);
    await expect(run.move({ openTarget })).rejects.toMatchObject({ reason: "store_failed" });
    await run.movable.transaction(oneAccount("after"), "durable");
    await own.start();
    const half = files.closing(await PostgresDriver.open({ url, clock: systemClock, log: silent }));
    expect(isMark(await versionOf(half))).toBe(true);
    pages = 100;
    await run.move({ openTarget });
    const after = await allRows(half, tables);
    expect(after["accounts"]?.length).toBe(3001);
    expect({ ...after, accounts: [] }).toEqual({ ...before, accounts: [] });
  });

  it("is finished by the next start when it was decided and PostgreSQL was not told", async () => {
    const run = await newRun(30);
    const openTarget = async (): Promise<OpenDatabase> => {
      const { driver, ...rest } = await run.open();
      const transaction: SqlDriver["transaction"] = (statements, durability) => {
        const [first] = statements;
        const isLast = statements.length === 1 && first?.params[0] === BigInt(newest);
        if (!isLast) return driver.transaction(statements, durability);
        run.ending.abort();
        return Promise.reject(new Error("away"));
      };
      return {
        ...rest,
        driver: wrapped(driver, { transaction }),
      };
    };
    const { rest } = await run.move({ openTarget });
    await rest;
    await run.movable.close();
    expect(isMark(await versionOf(await openUrl(run.url)))).toBe(true);
    const options = { clock: systemClock, log: silent };
    const elsewhere = { directory: files.folder(), postgres: run.url, ...options };
    await expect(Store.open(elsewhere)).rejects.toThrow("filled in part");
    const here = { directory: run.directory, postgres: run.url, ...options };
    const store = files.closing(await Store.open(here));
    expect(store.isOnFile).toBe(false);
    expect(store.warnings.join()).not.toContain("its move");
    expect((await store.keys.accounts()).length).toBe(30);
    expect(existsSync(movingPath(run.directory))).toBe(false);
  });

  it("goes on in the file, where the configuration names PostgreSQL and the move did not end", async () => {
    const directory = files.folder();
    const url = await newUrl();
    const options = { directory, clock: systemClock, log: silent };
    const store = await Store.open(options);
    await store.keys.ensureAccount("one", 1n);
    const full = await openUrl(url);
    await migrate(full, "bytea");
    await full.transaction(oneAccount("theirs"), "durable");
    await expect(store.move(url)).rejects.toThrow(
      "got one that a service or another command has open",
    );
    await full.close();
    await expect(store.move(url)).rejects.toThrow("got one with rows in accounts");
    await store.registrations.add(registrationOf(1, 1));
    await store.close();
    const again = await Store.open({ ...options, postgres: url });
    expect(again.isOnFile).toBe(true);
    expect(again.warnings.join()).toContain("its move to PostgreSQL was begun and did not end");
    expect((await again.registrations.pending(null, 9)).length).toBe(1);
    await again.move(await newUrl());
    expect(again.isOnFile).toBe(false);
    await expect(again.move(url)).rejects.toThrow("expected one in a file");
    await again.close();
  });

  it("takes locks from PostgreSQL afterwards, and says that the old ones are lost", async () => {
    const run = await newRun(1);
    const lost: string[] = [];
    const told: (readonly string[] | null)[] = [];
    run.movable.onForeignChange((news) => told.push(news));
    const held = await run.movable.tryLock("tiers", () => lost.push("tiers"));
    const released = await run.movable.tryLock("other", () => lost.push("other"));
    await released?.release();
    expect(await run.movable.tryLock("tiers", () => {})).toBeNull();
    await run.move();
    expect(lost).toEqual(["tiers"]);
    expect(told).toEqual([null]);
    await held?.release();
    const other = await openUrl(run.url);
    await other.transaction(oneAccount("told"), "durable");
    await until(() => told.length > 1); // the new one's news come through
  });
});
