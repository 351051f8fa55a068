// The contract of SqlDriver, on each database.

import { describe, expect, it } from "vitest";
import type { Durability, SqlDriver, SqlValue } from "../../../src/platform/store/driver.ts";
import { onEachDatabase } from "./databases.ts";
import { until } from "./files.ts";

const insert = "INSERT INTO things (id, name, bytes) VALUES ($1, $2, $3)";

function add(driver: SqlDriver, id: bigint, durability: Durability = "survives-kill") {
  return driver.transaction([{ sql: insert, params: [id, `thing ${id}`, null] }], durability);
}

async function ids(driver: SqlDriver): Promise<SqlValue[]> {
  const rows = await driver.query("SELECT id FROM things ORDER BY id", []);
  return rows.map(([id = null]) => id);
}

onEachDatabase((databases) => {
  async function make(driver: SqlDriver): Promise<void> {
    const bytes = databases.blobType;
    const sql = `CREATE TABLE things (id bigint PRIMARY KEY, name text NOT NULL, bytes ${bytes})`;
    await driver.transaction([{ sql, params: [] }], "durable");
  }

  describe("values and parameters", () => {
    it("return stored values unchanged: 64-bit integers, any text, bytes, null", async () => {
      const driver = await databases.driver();
      await make(driver);
      const rows: SqlValue[][] = [
        [7n, "\u{E000}0 \u{E000}\u{E000}1 \0\0 \u{1F600}", null],
        [2n ** 63n - 1n, "ü\u0000'\"$1 ?", Uint8Array.of(0, 255)],
        [-(2n ** 63n), "", new Uint8Array()],
        [2n ** 53n + 1n, "x", null],
      ];
      for (const params of rows) await driver.transaction([{ sql: insert, params }], "durable");
      for (const [id = null, name, bytes] of rows) {
        const [row] = await driver.query("SELECT id, name, bytes FROM things WHERE id = $1", [id]);
        expect(row?.[0]).toBe(id);
        expect(row?.[1]).toBe(name);
        expect(row?.[2] instanceof Uint8Array ? Uint8Array.from(row[2]) : row?.[2]).toEqual(bytes);
      }
    });

    it("bind by number, in any order and more than once", async () => {
      const driver = await databases.driver();
      const [row] = await driver.query("SELECT $2, $1, $2 || $3", ["a", "b", "c"]);
      expect(row).toEqual(["b", "a", "bc"]);
    });
  });

  describe("transactions", () => {
    it("fail alone in a commit with successful ones", async () => {
      const driver = await databases.driver();
      await make(driver);
      const all = await Promise.allSettled([
        add(driver, 1n),
        driver.transaction(
          [
            { sql: insert, params: [2n, "two", null] },
            { sql: insert, params: [1n, "again", null] },
          ],
          "survives-kill",
        ),
        add(driver, 3n, "durable"),
        driver.transaction([{ sql: "INSERT INTO nothing VALUES (1)", params: [] }], "durable"),
        add(driver, 4n),
      ]);
      expect(all.map(({ status }) => status === "fulfilled")).toEqual([
        true,
        false,
        true,
        false,
        true,
      ]);
      expect(all[1]).toMatchObject({ reason: { reason: "store_failed" } });
      expect(await ids(driver)).toEqual([1n, 3n, 4n]);
    });

    it("are rolled back when a statement that must change a row finds none", async () => {
      const driver = await databases.driver();
      await make(driver);
      await add(driver, 1n);
      const rename = "UPDATE things SET name = 'new' WHERE id = $1";
      const both = (id: bigint) => [
        { sql: insert, params: [id + 100n, "made before", null] },
        { sql: rename, params: [id], mustChange: true },
      ];
      const alone = await driver.transaction(both(7n), "durable");
      expect(alone).toEqual({ isCommitted: false, changes: [1] });
      const [lost, persisted] = await Promise.all([
        driver.transaction(both(8n), "durable"),
        driver.transaction(both(1n), "durable"),
      ]);
      expect(lost).toEqual({ isCommitted: false, changes: [1] });
      expect(persisted).toEqual({ isCommitted: true, changes: [1, 1] });
      expect(await ids(driver)).toEqual([1n, 101n]);
    });

    it("are limited in number while they wait", async () => {
      const driver = await databases.driver();
      await make(driver);
      const same = { sql: "UPDATE things SET name = name", params: [] };
      const all = Array.from({ length: 100_001 }, () =>
        driver.transaction([same], "survives-kill").then(
          () => "done",
          (error: unknown) => String(error),
        ),
      );
      const ends = await Promise.all(all);
      expect(ends.filter((end) => end !== "done")).toEqual([
        expect.stringMatching(/the queue of the database is full/),
      ]);
      expect(ends.at(-1)).not.toBe("done");
    });

    it("keep the order of their calls", async () => {
      const driver = await databases.driver();
      await make(driver);
      await add(driver, 1n);
      const rename = "UPDATE things SET name = name || $1 WHERE id = 1";
      const letters = "abcdefghij".repeat(300).split("");
      const done = letters.map((letter) =>
        driver.transaction([{ sql: rename, params: [letter] }], "survives-kill"),
      );
      await Promise.all(done);
      const [row] = await driver.query("SELECT name FROM things", []);
      expect(row?.[0]).toBe(`thing 1${letters.join("")}`);
    });

    it("with errors among hundreds end as if each were alone", async () => {
      const driver = await databases.driver();
      await make(driver);
      await add(driver, 1000n);
      const rename = "UPDATE things SET name = name || '!' WHERE id = $1";
      const all = Array.from({ length: 300 }, (_, i) => {
        const id = BigInt(i);
        const first = { sql: insert, params: [id, `thing ${id}`, null] };
        if (i % 50 === 7) {
          return driver.transaction(
            [first, { sql: insert, params: [1000n, "x", null] }],
            "durable",
          );
        }
        const params = [i % 50 === 9 ? 5000n : id];
        return driver.transaction([first, { sql: rename, params, mustChange: true }], "durable");
      });
      const ends = await Promise.allSettled(all);
      const expected: SqlValue[] = [];
      for (const [i, end] of ends.entries()) {
        if (i % 50 === 7) {
          expect(end).toMatchObject({ status: "rejected", reason: { reason: "store_failed" } });
        } else if (i % 50 === 9) {
          expect(end).toMatchObject({ value: { isCommitted: false, changes: [1] } });
        } else {
          expect(end).toMatchObject({ value: { isCommitted: true, changes: [1, 1] } });
          expected.push(BigInt(i));
        }
      }
      expect(await ids(driver)).toEqual([...expected, 1000n]);
    });
  });

  describe("locks", () => {
    it("have one holder each, until they are released", async () => {
      const driver = await databases.driver();
      let lost = 0;
      const lock = await driver.tryLock("tiers", () => lost++);
      expect(lock).not.toBeNull();
      expect(await driver.tryLock("tiers", () => lost++)).toBeNull();
      expect(await driver.tryLock("node a", () => lost++)).not.toBeNull();
      await lock?.release();
      const repeated = await driver.tryLock("tiers", () => lost++);
      expect(repeated).not.toBeNull();
      await lock?.release(); // no effect any more
      expect(await driver.tryLock("tiers", () => lost++)).toBeNull();
      await repeated?.release();
      expect(lost).toBe(0);
    });
  });

  describe("change notifications", () => {
    it("report changes of other processes, named or not, and no own changes", async () => {
      const location = databases.location();
      const [driver, other] = [await databases.driver(location), await databases.driver(location)];
      await make(driver);
      let notifications = 0;
      let echoes = 0;
      driver.onForeignChange(() => echoes++);
      other.onForeignChange(() => notifications++);
      for (const news of [["keys"], undefined]) {
        const before = notifications;
        const statement = { sql: insert, params: [BigInt(before), "a", null] };
        await driver.transaction([statement], "durable", news);
        await until(() => notifications > before);
      }
      await add(other, 100n, "durable");
      await until(() => echoes === 1);
    });
  });

  describe("closing", () => {
    it("completes all calls, then rejects", async () => {
      const location = databases.location();
      const driver = await databases.driver(location);
      await make(driver);
      const waiting = Array.from({ length: 5000 }, (_, i) => add(driver, BigInt(i)));
      const closed = driver.close();
      await expect(add(driver, 9999n)).rejects.toMatchObject({ reason: "store_failed" });
      await expect(driver.query("SELECT 1", [])).rejects.toMatchObject({ reason: "store_failed" });
      await closed;
      await driver.close();
      expect((await Promise.all(waiting)).every(({ isCommitted }) => isCommitted)).toBe(true);
      expect((await ids(await databases.driver(location))).length).toBe(5000);
    });
  });
});
