import { rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { createLogger } from "../../../../src/core/log.ts";
import type { Durability, SqlDriver, SqlValue } from "../../../../src/platform/store/driver.ts";
import { startWorker } from "../../../../src/platform/store/sqlite/driver.ts";
import { ManualClock } from "../../../support/clocks/manual-clock.ts";
import { Files, until } from "../files.ts";

const files = new Files();
afterEach(() => files.clean());

const table = "CREATE TABLE things (id bigint PRIMARY KEY, name text NOT NULL, bytes blob)";
const insert = "INSERT INTO things (id, name, bytes) VALUES ($1, $2, $3)";

async function make(driver: SqlDriver): Promise<void> {
  await driver.transaction([{ sql: table, params: [] }], "durable");
}

function add(driver: SqlDriver, id: bigint, durability: Durability = "survives-kill") {
  return driver.transaction([{ sql: insert, params: [id, `thing ${id}`, null] }], durability);
}

async function ids(driver: SqlDriver): Promise<SqlValue[]> {
  const rows = await driver.query("SELECT id FROM things ORDER BY id", []);
  return rows.map(([id = null]) => id);
}

const paths = new WeakMap<SqlDriver, string>();
function pathOf(driver: SqlDriver): string {
  const path = paths.get(driver);
  if (path === undefined) throw new Error("expected a driver of a known path");
  return path;
}
async function known(options: Parameters<Files["driver"]>[0] = {}) {
  const path = options.path ?? join(files.folder(), "a.db");
  const driver = await files.driver({ ...options, path });
  paths.set(driver, path);
  return driver;
}

describe("transactions", () => {
  it.each(["", "-wal"])("fail when the file a.db%s was removed", async (suffix) => {
    const driver = await known();
    await make(driver);
    await add(driver, 1n);
    const path = `${pathOf(driver)}${suffix}`;
    rmSync(path);
    await expect(add(driver, 2n)).rejects.toThrow(`${path} was removed`);
    writeFileSync(path, "");
    await expect(add(driver, 3n)).rejects.toThrow("removed or replaced");
  });

  it("share commits: many concurrent ones need few messages", async () => {
    let messages = 0;
    const start = (options: Parameters<typeof startWorker>[0]): Worker => {
      const worker = startWorker(options);
      const post = worker.postMessage.bind(worker);
      worker.postMessage = (...message: Parameters<typeof post>) => {
        messages++;
        post(...message);
      };
      return worker;
    };
    const driver = await files.driver({ start });
    await make(driver);
    messages = 0;
    await Promise.all(Array.from({ length: 3000 }, (_, i) => add(driver, BigInt(i))));
    expect(messages).toBeLessThanOrEqual(3);
    expect((await ids(driver)).length).toBe(3000);
  });

  it("sync the disk only if one of them requires it", async () => {
    const driver = await files.driver();
    await make(driver);
    const mode = async () => (await driver.query("PRAGMA synchronous", []))[0]?.[0];
    const [normal, full] = [1n, 2n];
    expect(await mode()).toBe(full);
    await add(driver, 1n);
    expect(await mode()).toBe(normal);
    await Promise.all([add(driver, 2n), add(driver, 3n, "durable"), add(driver, 4n)]);
    expect(await mode()).toBe(full);
    await Promise.all([add(driver, 5n), add(driver, 6n)]);
    expect(await mode()).toBe(normal);
  });
});

describe("pages", () => {
  it("stay in memory up to 32 MiB", async () => {
    const driver = await files.driver();
    const inKiB = -(32n << 10n);
    expect(await driver.query("PRAGMA cache_size", [])).toEqual([[inKiB]]);
  });
});

describe("other connections", () => {
  it("are reported, own changes are not", async () => {
    const clock = new ManualClock();
    const driver = await known({ clock });
    await make(driver);
    let notifications = 0;
    const stop = driver.onForeignChange(() => notifications++);
    await add(driver, 1n);
    await clock.advance(100);
    await add(driver, 2n);
    expect(notifications).toBe(0);
    const other = await known({ path: pathOf(driver) });
    await add(other, 3n);
    await clock.advance(100);
    await until(() => notifications === 1);
    expect(await ids(driver)).toEqual([1n, 2n, 3n]);
    stop();
    expect(clock.pending).toBe(0);
    await add(other, 4n);
    await ids(driver);
    expect(notifications).toBe(1);
  });

  it("lock the file for some time: all calls wait, then continue", async () => {
    const driver = await known();
    await make(driver);
    const others = await Promise.all(
      Array.from({ length: 4 }, () => known({ path: pathOf(driver) })),
    );
    await Promise.all(
      others.flatMap((other, i) =>
        Array.from({ length: 50 }, (_, j) => add(other, BigInt(i * 1000 + j), "durable")),
      ),
    );
    expect((await ids(driver)).length).toBe(200);
  });

  it("open one new file at once", async () => {
    for (let round = 0; round < 5; round++) {
      const path = join(files.folder(), "a.db");
      const drivers = await Promise.all([1, 2, 3, 4].map(() => known({ path })));
      const rows = await Promise.all(drivers.map((driver) => driver.query("SELECT 1", [])));
      expect(rows).toEqual([1, 2, 3, 4].map(() => [[1n]]));
      await Promise.all(drivers.map((driver) => driver.close()));
    }
  });
});

describe("failures", () => {
  it("report a full disk, and the store continues", async () => {
    const driver = await files.driver({ pagesMax: 20 });
    await make(driver);
    const large = (id: bigint) =>
      driver.transaction([{ sql: insert, params: [id, "x".repeat(200_000), null] }], "durable");
    await expect(large(1n)).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringMatching(/a\.db: the disk is full .*SQLITE_FULL/),
    });
    const [full, persisted] = await Promise.allSettled([large(2n), add(driver, 3n)]);
    expect(full.status).toBe("rejected");
    if (persisted.status === "rejected") await add(driver, 3n);
    expect(await ids(driver)).toEqual([3n]);
  });

  it("report a lock of another process, and the store continues when it is released", async () => {
    const driver = await known({ busyMs: 50 });
    await make(driver);
    const other = new DatabaseSync(pathOf(driver));
    other.exec("BEGIN IMMEDIATE");
    await expect(add(driver, 1n)).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringContaining("another process holds"),
    });
    expect(await ids(driver)).toEqual([]); // reads continue
    other.exec("ROLLBACK");
    other.close();
    await add(driver, 1n);
    expect(await ids(driver)).toEqual([1n]);
  });

  it("during the setup by another process are retried for a limited time", async () => {
    const path = join(files.folder(), "a.db");
    const other = new DatabaseSync(path);
    other.exec("BEGIN EXCLUSIVE");
    await expect(files.driver({ path, busyMs: 20 })).rejects.toThrow("another process holds");
    let starts = 0;
    const start = (options: Parameters<typeof startWorker>[0]): Worker => {
      if (++starts === 2) other.exec("ROLLBACK");
      return startWorker(options);
    };
    const clock = { ...systemClock, monotonicNs: () => 0n };
    const driver = await files.driver({ path, busyMs: 20, start, clock });
    other.close();
    expect(starts).toBeGreaterThan(1);
    await make(driver);
  });

  it("name a file that is not a database or is missing", async () => {
    const path = join(files.folder(), "a.db");
    writeFileSync(path, "no database ".repeat(1000));
    await expect(files.driver({ path })).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringContaining("the file is not an SQLite database"),
    });
    const nowhere = join(files.folder(), "none", "a.db");
    await expect(files.driver({ path: nowhere })).rejects.toMatchObject({ reason: "store_failed" });
  });

  it("rejects waiting and later calls when the thread ends", async () => {
    const lines: string[] = [];
    const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
    let worker: Worker | undefined;
    const start = (options: Parameters<typeof startWorker>[0]): Worker => {
      worker = startWorker(options);
      return worker;
    };
    const driver = await files.driver({ log, start });
    await make(driver);
    const waiting = [add(driver, 1n), add(driver, 2n)];
    const settled = Promise.allSettled(waiting);
    const ended = worker?.terminate();
    const refused = { status: "rejected", reason: { reason: "store_failed" } };
    for (const end of await settled) expect(end).toMatchObject(refused);
    await ended;
    await expect(add(driver, 3n)).rejects.toThrow(/the store's thread ended/);
    expect(lines.join("")).toContain("the store's thread ended");
    await driver.close();
  });
});

describe("closing", () => {
  it("completes all calls, then rejects, and leaves one file", async () => {
    const driver = await known();
    await make(driver);
    const waiting = Array.from({ length: 5000 }, (_, i) => add(driver, BigInt(i)));
    const closed = driver.close();
    await expect(add(driver, 9999n)).rejects.toMatchObject({ reason: "store_failed" });
    await closed;
    await driver.close();
    expect((await Promise.all(waiting)).every(({ isCommitted }) => isCommitted)).toBe(true);
    expect(statSync(`${pathOf(driver)}-wal`, { throwIfNoEntry: false })).toBeUndefined();
    const repeated = await known({ path: pathOf(driver) });
    expect((await ids(repeated)).length).toBe(5000);
  });
});
