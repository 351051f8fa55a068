// PostgreSQL under faults: real servers that are killed, paused, full or without access.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { createLogger } from "../../../../src/core/log.ts";
import type { Durability, SqlDriver, SqlValue } from "../../../../src/platform/store/driver.ts";
import { migrate } from "../../../../src/platform/store/migrations.ts";
import {
  PostgresDriver,
  type PostgresDriverOptions,
} from "../../../../src/platform/store/postgres/driver.ts";
import { PostgresServer, postgresPrograms } from "../../../support/postgres/postgres.ts";
import { PostgresProxy } from "../../../support/postgres/postgres-proxy.ts";
import { serverOfBlock } from "../block-server.ts";
import { Files, silent, until, untilTrue } from "../files.ts";
import { firstStep, longStep } from "../migrating-child.ts";

const files = new Files();
/** Short enough for a test, and longer than a commit on a busy machine. */
const shortTimeouts = {
  answerMs: 2000,
  connectMs: 2000,
  lockMs: 500,
  waitMs: 500,
  outcomeMs: 60_000,
};
const things = "CREATE TABLE things (id bigint PRIMARY KEY, name text NOT NULL)";
const insert = "INSERT INTO things (id, name) VALUES ($1, $2)";

function add(driver: SqlDriver, id: bigint, durability: Durability = "durable") {
  return driver.transaction([{ sql: insert, params: [id, `thing ${id}`] }], durability);
}

async function ids(driver: SqlDriver): Promise<SqlValue[]> {
  const rows = await driver.query("SELECT id FROM things ORDER BY id", []);
  return rows.map(([id = null]) => id);
}

describe.skipIf(postgresPrograms === null)("PostgreSQL", () => {
  const server = serverOfBlock(files);
  let created = 0;

  async function open(options: Partial<PostgresDriverOptions> = {}): Promise<PostgresDriver> {
    const url = options.url ?? server().url(`database_${++created}`);
    await server().ensureDatabase(url);
    return files.closing(
      await PostgresDriver.open({ clock: systemClock, log: silent, ...options, url }),
    );
  }

  async function withThings(options: Partial<PostgresDriverOptions> = {}): Promise<PostgresDriver> {
    const driver = await open(options);
    await driver.transaction([{ sql: things, params: [] }], "durable");
    return driver;
  }

  function databaseOf(name = `database_${++created}`): { name: string; url: string } {
    return { name, url: server().url(name) };
  }

  /** Behind a proxy; `url` reaches the same database directly. */
  async function behindProxy(times: PostgresDriverOptions["times"] = {}) {
    const { name, url } = databaseOf();
    await server().ensureDatabase(url);
    const proxy = files.closing(await PostgresProxy.open(server()));
    const driver = await withThings({ url: proxy.url(name), times });
    return { name, url, proxy, driver };
  }

  /** Ends connections of that purpose, like an administrator. */
  function terminate(purpose: string): Promise<unknown> {
    return server().run(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '${purpose}%'`,
    );
  }

  describe("a lost connection", () => {
    it("between commits is replaced without an error", async () => {
      const driver = await withThings();
      for (let id = 1n; id <= 3n; id++) {
        await terminate("shredway");
        await add(driver, id);
        expect((await ids(driver)).length).toBe(Number(id));
      }
    });

    const increment = { sql: "UPDATE counts SET count = count + 1", params: [] };
    it.each(["request lost", "request lost silently", "answer lost"] as const)(
      "in a commit: %s; the commit happens once and is reported as done",
      async (behaviour) => {
        const { proxy, driver } = await behindProxy();
        const table = "CREATE TABLE counts (count bigint NOT NULL)";
        const row = "INSERT INTO counts (count) VALUES (0)";
        await driver.transaction(
          [table, row].map((sql) => ({ sql, params: [] })),
          "durable",
        );
        for (const durability of ["durable", "survives-kill"] as const) {
          proxy.behaviour = behaviour;
          const ends = await Promise.all([
            driver.transaction([increment], durability),
            add(driver, durability === "durable" ? 1n : 2n, durability),
          ]);
          expect(ends.map(({ changes }) => changes)).toEqual([[1], [1]]);
          expect(proxy.behaviour).toBe("passes");
        }
        expect(await driver.query("SELECT count FROM counts", [])).toEqual([[2n]]);
        expect(await ids(driver)).toEqual([1n, 2n]);
      },
    );

    it.each([
      ["request lost", 0],
      ["answer lost", 1],
    ] as const)(
      "in a long commit: %s; the result is unknown, and reported as a change if it happened",
      async (behaviour, persistedCount) => {
        const { proxy, driver } = await behindProxy({ waitMs: 100, outcomeMs: 200 });
        let notifications = 0;
        driver.onForeignChange(() => notifications++);
        proxy.closesAfterLoss = true;
        proxy.behaviour = behaviour;
        await expect(add(driver, 1n)).rejects.toMatchObject({
          reason: "store_failed",
          details: { code: "UNKNOWN" },
          message: expect.stringContaining("may be stored or not"),
        });
        await expect(add(driver, 2n)).rejects.toMatchObject({ reason: "store_failed" });
        const before = notifications;
        const { connections } = proxy;
        proxy.isClosed = false;
        // The result is determined even without a further call.
        if (persistedCount === 1) await until(() => notifications > before);
        await until(() => proxy.connections > connections);
        await add(driver, 3n);
        expect(await ids(driver)).toEqual(persistedCount === 1 ? [1n, 3n] : [3n]);
        expect(notifications - before).toBe(persistedCount);
      },
    );
  });

  it("keeps its record of commits, even if another client deletes it", async () => {
    const driver = await withThings();
    await add(driver, 1n);
    await server().run("DELETE FROM commit_marks", `database_${created}`);
    await add(driver, 2n);
    expect(await ids(driver)).toEqual([1n, 2n]);
    const marks = () => server().run("SELECT number FROM commit_marks", `database_${created}`);
    expect(await marks()).toHaveLength(1);
    await driver.close();
    expect(await marks()).toEqual([]);
  });

  describe("a server", () => {
    it("that is killed during commits has each acknowledged row once", async () => {
      const driver = await withThings({ times: { waitMs: 60_000 } });
      let next = 0n;
      const acknowledged: bigint[] = [];
      const end = new AbortController();
      const lane = async (): Promise<void> => {
        while (!end.signal.aborted) {
          const id = next++;
          await add(driver, id);
          acknowledged.push(id);
        }
      };
      const lanes = Array.from({ length: 20 }, lane);
      for (let round = 0; round < 5; round++) {
        const from = acknowledged.length;
        await until(() => acknowledged.length > from + 50);
        await systemClock.sleep(Math.random() * 30);
        await server().kill();
        await server().start();
      }
      end.abort();
      await Promise.all(lanes);
      // None was rejected, so each exists; the primary key excludes duplicates.
      expect(acknowledged.length).toBe(Number(next));
      expect(await ids(driver)).toEqual(acknowledged.toSorted((a, b) => Number(a - b)));
    });

    it("that is unreachable for long rejects waiting writes, stores none of them, and recovers", async () => {
      const driver = await withThings({ times: shortTimeouts });
      await add(driver, 1n);
      await server().kill();
      const refused = { reason: "store_failed", message: expect.stringContaining("connection") };
      await expect(add(driver, 2n)).rejects.toMatchObject(refused);
      await expect(ids(driver)).rejects.toMatchObject(refused);
      await server().start();
      await add(driver, 3n);
      expect(await ids(driver)).toEqual([1n, 3n]);
    });

    it("that is frozen times out, and its writes exist or not, as reported", async () => {
      const times = { ...shortTimeouts, outcomeMs: 2000 };
      const driver = await withThings({ times });
      for (let round = 0n; round < 3n; round++) {
        const first = round * 100n;
        const waiting = Array.from({ length: 40 }, (_, i) => add(driver, first + BigInt(i)));
        await Promise.race(waiting.slice(0, 1 + Number(round)));
        const more = Array.from({ length: 10 }, (_, i) => add(driver, first + 50n + BigInt(i)));
        server().pause();
        const ends = await Promise.allSettled([...waiting, ...more]);
        server().resume();
        await add(driver, first + 99n);
        const there = new Set(await ids(driver));
        for (const [i, end] of ends.entries()) {
          const id = first + BigInt(i < 40 ? i : i + 10);
          if (end.status === "fulfilled") expect(there.has(id)).toBe(true);
          else if (String(end.reason).includes("may be stored or not")) continue;
          else expect(there.has(id)).toBe(false);
        }
        expect(ends.at(-1)).toMatchObject({ status: "rejected" });
      }
    });

    it("that is slow ends only the statements over the time limit", async () => {
      const driver = await withThings({ times: { answerMs: 700 } });
      const slow = { sql: "UPDATE things SET name = 'x' FROM pg_sleep(30)", params: [] };
      await add(driver, 1n);
      const [before, late, after] = await Promise.allSettled([
        add(driver, 2n),
        driver.transaction([slow], "durable"),
        add(driver, 3n),
      ]);
      expect([before.status, after.status]).toEqual(["fulfilled", "fulfilled"]);
      expect(late).toMatchObject({
        reason: { message: expect.stringContaining("the database is too slow") },
      });
      expect(await ids(driver)).toEqual([1n, 2n, 3n]);
    });

    it("that is unreachable or denies access is named without the password", async () => {
      const strict = await PostgresServer.start({
        access: ["local all shredway trust", "local all all scram-sha-256"],
      });
      files.closing({ close: () => strict.remove() });
      await strict.run("CREATE ROLE few LOGIN PASSWORD 'right-word' CONNECTION LIMIT 1");
      await strict.run("GRANT ALL ON SCHEMA public TO few");
      const at = (changes: string) => `${strict.url("postgres", "few")}&password=${changes}`;
      const refusal = (url: string) =>
        PostgresDriver.open({ url, clock: systemClock, log: silent }).then(() => "opened", String);
      expect(await refusal(at("wrong-word"))).toMatch(
        /the server rejected the role or the password.*28P01/,
      );
      expect(await refusal(at("wrong-word"))).not.toContain("wrong-word");
      expect(await refusal(at("right-word"))).toMatch(/no free connection.*53300/);
      expect(await refusal(strict.url("nothing"))).toMatch(/no database of that name.*3D000/);
      await strict.kill();
      expect(await refusal(strict.url())).toMatch(/the connection to the server was lost/);
    });

    it("that does not sync its disk is logged", async () => {
      expect((await open()).warnings.join()).toMatch(/expected fsync .* got off/);
    });
  });

  describe("a change of the schema", () => {
    it.each(["kill", "stop"] as const)(
      "during which the server ends (%s) is rolled back, and can be repeated",
      async (end) => {
        const url = server().url(`database_${++created}`);
        const driver = await open({ url, times: { waitMs: 1000 } });
        await migrate(driver, "bytea", [firstStep]);
        const changing = migrate(driver, "bytea", [firstStep, longStep]);
        const settled = Promise.allSettled([changing]);
        const busy = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO more%'";
        await untilTrue(async () => (await server().run(busy))[0]?.[0] !== "0");
        await server()[end]();
        expect(await settled).toMatchObject([{ reason: { reason: "store_failed" } }]);
        await server().start();
        const version = await driver.query("SELECT version FROM schema_version", []);
        expect(version).toEqual([[1n]]);
        expect(await driver.query("SELECT id FROM things", [])).toEqual([]);
        await migrate(driver, "bytea", [firstStep, ["CREATE TABLE more (id bigint)"]]);
        expect(await driver.query("SELECT version FROM schema_version", [])).toEqual([[2n]]);
      },
    );

    it("may exceed the time limit of statements", async () => {
      const driver = await withThings({ times: { answerMs: 300, lockMs: 100 } });
      const slow = "CREATE TABLE slow AS SELECT 1 AS one FROM pg_sleep(2)";
      await driver.transaction([{ sql: slow, params: [] }], "durable");
      expect(await driver.query("SELECT one FROM slow", [])).toEqual([[1n]]);
    });
  });

  describe("changes by other clients", () => {
    it("are reported, own changes are not", async () => {
      const driver = await withThings();
      const other = await open({ url: server().url(`database_${created}`) });
      let notifications = 0;
      const stop = driver.onForeignChange(() => notifications++);
      let otherHeard = 0;
      other.onForeignChange(() => otherHeard++);
      for (let id = 1n; id <= 4n; id++) {
        const before = otherHeard;
        await add(driver, id);
        await until(() => otherHeard > before);
      }
      expect(notifications).toBe(0);
      await add(other, 5n);
      await until(() => notifications === 1);
      expect((await ids(driver)).length).toBe(5);
      stop();
      const before = otherHeard;
      await add(other, 6n);
      await add(driver, 7n);
      await until(() => otherHeard > before);
      expect(notifications).toBe(1);
    });

    it("are not reported if they are rolled back", async () => {
      const driver = await withThings();
      const other = await open({ url: server().url(`database_${created}`) });
      let notifications = 0;
      driver.onForeignChange(() => notifications++);
      await add(other, 1n);
      await until(() => notifications === 1);
      await expect(add(other, 1n)).rejects.toMatchObject({ reason: "store_failed" });
      expect(notifications).toBe(1);
    });

    it("may have been missed during a disconnect, which is reported once", async () => {
      const driver = await withThings();
      const other = await open({ url: server().url(`database_${created}`) });
      let notifications = 0;
      driver.onForeignChange(() => {
        notifications++;
        throw new Error("a listener's own fault");
      });
      await server().kill();
      await server().start();
      await add(other, 1n);
      await until(() => notifications > 0);
      const after = notifications;
      await add(other, 2n);
      await until(() => notifications > after);
    });

    it("that lock a row are awaited for a limited time", async () => {
      const driver = await withThings({ times: { lockMs: 300 } });
      await add(driver, 1n);
      const other = await open({ url: server().url(`database_${created}`) });
      const rename = (name: string) => ({
        sql: "UPDATE things SET name = $1 WHERE id = 1",
        params: [name],
      });
      const sleeping = { sql: "UPDATE things SET name = 'slept' FROM pg_sleep(3)", params: [] };
      const holding = other.transaction([rename("held"), sleeping], "durable");
      const heldBy = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
      await untilTrue(async () => (await server().run(heldBy))[0]?.[0] === "1");
      const [late, persisted] = await Promise.allSettled([
        driver.transaction([rename("late")], "durable"),
        add(driver, 2n),
      ]);
      expect(late).toMatchObject({
        reason: { message: expect.stringContaining("another process holds") },
      });
      expect(persisted.status).toBe("fulfilled");
      await holding;
      await driver.transaction([rename("later")], "durable");
    });

    it("that change the same rows in another order: both succeed", async () => {
      const driver = await withThings();
      const other = await open({ url: server().url(`database_${created}`) });
      await Promise.all([add(driver, 1n), add(driver, 2n)]);
      const append = (id: bigint, letter: string) => ({
        sql: "UPDATE things SET name = name || $2 FROM pg_sleep(0.02) WHERE id = $1",
        params: [id, letter],
      });
      const all = Array.from({ length: 6 }, (_, i) => [
        driver.transaction([append(1n, "a"), append(2n, "a")], "durable"),
        other.transaction([append(2n, "b"), append(1n, "b")], i % 2 ? "durable" : "survives-kill"),
      ]);
      await Promise.all(all.flat());
      const names = (await driver.query("SELECT name FROM things ORDER BY id", [])).flat();
      for (const name of names) {
        expect(String(name).replaceAll(/[^ab]/g, "").length).toBe(12);
      }
    });
  });

  describe("a limit of connections", () => {
    const clear = /no free connection: the limit .* is reached.*53300/;
    const idle = { clock: systemClock, log: silent };

    it("that leaves few connections is sufficient", async () => {
      const owner = await withThings();
      const name = `database_${created}`;
      await add(owner, 1n);
      await owner.close();
      await server().run("CREATE ROLE three LOGIN CONNECTION LIMIT 3");
      await server().run("GRANT ALL ON ALL TABLES IN SCHEMA public TO three", name);
      const url = server().url(name, "three"); // one writes, one listens, one reads
      const driver = await open({ url });
      for (let round = 0; round < 3; round++) {
        const slow = driver.query("SELECT CAST(pg_sleep(0.1) AS text)", []);
        await add(driver, BigInt(10 + round));
        await Promise.all([slow, ids(driver)]);
      }
      await expect(driver.tryLock("tiers", () => {})).rejects.toThrow(clear);
      await expect(PostgresDriver.open({ ...idle, url })).rejects.toThrow(clear);
      await server().run("ALTER ROLE three CONNECTION LIMIT 4");
      expect(await driver.tryLock("tiers", () => {})).not.toBeNull();
    });

    it("that is reached after a loss rejects with a clear error, and recovers", async () => {
      const owner = await withThings();
      await owner.close();
      const name = `database_${created}`;
      await server().run("CREATE ROLE full_role LOGIN CONNECTION LIMIT 4");
      await server().run("GRANT ALL ON ALL TABLES IN SCHEMA public TO full_role", name);
      const driver = await open({ url: server().url(name, "full_role"), times: shortTimeouts });
      let notifications = 0;
      driver.onForeignChange(() => notifications++);
      await server().run("ALTER ROLE full_role CONNECTION LIMIT 0");
      await terminate("shredway");
      await expect(add(driver, 1n)).rejects.toThrow(clear);
      await expect(ids(driver)).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringMatching(clear),
      });
      await server().run("ALTER ROLE full_role CONNECTION LIMIT 4");
      await add(driver, 2n);
      expect(await ids(driver)).toEqual([2n]);
      await until(() => notifications > 0);
    });
  });

  describe("rights", () => {
    it("to read and change rows suffice once the tables exist", async () => {
      const owner = await withThings();
      await owner.close();
      const name = `database_${created}`;
      await server().run("CREATE ROLE least LOGIN");
      await server().run(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO least",
        name,
      );
      const url = server().url(name, "least");
      const [driver, other] = [await open({ url }), await open({ url })];
      let notifications = 0;
      other.onForeignChange(() => notifications++);
      await add(driver, 1n);
      await until(() => notifications === 1);
      expect(await driver.tryLock("tiers", () => {})).not.toBeNull();
      await terminate("shredway");
      await add(driver, 2n);
      expect(await driver.tryLock("tiers", () => {})).not.toBeNull();
      await driver.transaction([{ sql: "DELETE FROM things WHERE id = 2", params: [] }], "durable");
      expect(await ids(driver)).toEqual([1n]);
      await expect(
        driver.transaction([{ sql: "CREATE TABLE more (id bigint)", params: [] }], "durable"),
      ).rejects.toThrow(/the role lacks a privilege.*42501/);
    });
  });

  it("logs each outage once", async () => {
    const lines: string[] = [];
    const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
    const driver = await withThings({ log, times: shortTimeouts });
    await server().kill();
    await Promise.allSettled([add(driver, 1n), add(driver, 2n)]);
    await expect(add(driver, 3n)).rejects.toMatchObject({ reason: "store_failed" });
    await server().start();
    await add(driver, 4n);
    const text = lines.join("");
    expect(text.match(/the connection to the server was lost/g)).toHaveLength(1);
    expect(text.match(/the database responds again/g)).toHaveLength(1);
  });
});
