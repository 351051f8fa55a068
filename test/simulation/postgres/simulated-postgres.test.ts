// The simulated server: a commit whose connection breaks has one result, which the driver finds out.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { SqlValue } from "../../../src/platform/store/driver.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { SimulatedDisk } from "../simulated-disk.ts";
import { ProcessClock, SimulatedTime, WallTime } from "../simulated-time.ts";
import type { BreakPoint } from "./postgres-scenario.ts";
import { SimulatedPostgres } from "./simulated-postgres.ts";

interface Use {
  readonly postgres: SimulatedPostgres;
  readonly disk: SimulatedDisk;
  readonly openDriver: () => Promise<PostgresDriver>;
  /** Everything that happened to the server. */
  readonly notes: readonly string[];
  /** The result of a call, which may take some simulated seconds. */
  readonly result: <T>(call: Promise<T>) => Promise<T>;
}

/** Runs `work` with a server, which is removed afterwards. */
async function withServer(work: (use: Use) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "shredway-postgres-"));
  const time = new SimulatedTime();
  const wall = new WallTime(time);
  const disk = new SimulatedDisk(time, folder);
  const notes: string[] = [];
  const note = (text: string): void => void notes.push(text);
  const postgres = await SimulatedPostgres.open({ wall, disk, random: new SeededRandom(1n), note });
  const openDriver = (): Promise<PostgresDriver> =>
    PostgresDriver.open({
      url: postgres.url,
      clock: new ProcessClock(wall),
      log: createLogger({ level: "silent" }),
      openStream: () => postgres.connect(),
    });
  const result = async <T>(call: Promise<T>): Promise<T> => {
    const state = { isSettled: false };
    const settled = (): void => {
      state.isSettled = true;
    };
    call.then(settled, settled);
    for (let i = 0; i < 200 && !state.isSettled; i++) await time.runUntil(time.nowNs + 1e8);
    expect(state.isSettled).toBe(true);
    return call;
  };
  try {
    await work({ postgres, disk, openDriver, notes, result });
  } finally {
    postgres.end();
    rmSync(folder, { recursive: true });
  }
}

const insert = "INSERT INTO things (id) VALUES ($1)";

describe("a commit on the simulated PostgreSQL", () => {
  const points: readonly BreakPoint[] = ["commit is sent", "commit is under way", "commit is done"];
  it.each(points)("happens once if its connection breaks when the %s", async (point) => {
    await withServer(async ({ postgres, openDriver, notes, result }) => {
      const driver = await result(openDriver());
      const add = (id: SqlValue) =>
        result(driver.transaction([{ sql: insert, params: [id] }], "durable"));
      await result(
        driver.transaction([{ sql: "CREATE TABLE things (id bigint)", params: [] }], "durable"),
      );
      await add(1n);
      postgres.handle({ kind: "connection breaks", point, noticedMs: 500 });
      expect(await add(2n)).toEqual({ isCommitted: true, changes: [1] });
      expect(notes).toEqual([`the connection "shredway" breaks: ${point}`]);
      await add(3n);
      const rows = await result(driver.query("SELECT id FROM things ORDER BY id", []));
      expect(rows).toEqual([[1n], [2n], [3n]]);
    });
  });

  it("is known when the server that ended at it is back", async () => {
    await withServer(async ({ disk, openDriver, notes, result }) => {
      const driver = await result(openDriver());
      const make = { sql: "CREATE TABLE things (id bigint)", params: [] };
      await result(driver.transaction([make], "durable"));
      disk.fail("sync", 1_000, new SeededRandom(3n));
      for (let id = 0n; id < 5n; id++) {
        const adding = driver.transaction([{ sql: insert, params: [id] }], "durable");
        expect((await result(adding)).isCommitted).toBe(true);
      }
      expect(notes).toContain("postgres is down");
      const rows = await result(driver.query("SELECT id FROM things ORDER BY id", []));
      expect(rows).toEqual([[0n], [1n], [2n], [3n], [4n]]);
    });
  });

  it("is refused while the disk is full, and the server goes on", async () => {
    await withServer(async ({ disk, openDriver, notes, result }) => {
      const driver = await result(openDriver());
      const make = { sql: "CREATE TABLE things (id bigint)", params: [] };
      await result(driver.transaction([make], "durable"));
      disk.fail("pages", 1_000, new SeededRandom(3n));
      const adding = driver.transaction([{ sql: insert, params: [1n] }], "durable");
      await expect(result(adding)).rejects.toMatchObject({ details: { code: "53100" } });
      expect(notes).toEqual([]);
      expect(await result(driver.query("SELECT id FROM things", []))).toEqual([]);
    });
  });
});
