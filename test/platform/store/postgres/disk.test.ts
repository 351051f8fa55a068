// PostgreSQL on a disk that fills up: a small file system in memory. Mounting one takes root.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { PostgresDriver } from "../../../../src/platform/store/postgres/driver.ts";
import { PostgresServer, postgresPrograms } from "../../../support/postgres/postgres.ts";
import { Files, silent } from "../files.ts";

const disk = mkdtempSync(join(tmpdir(), "shredway-pg-disk-"));
const mount = ["-t", "tmpfs", "-o", "size=100m", "tmpfs", disk];
const mounted = postgresPrograms !== null && spawnSync("mount", mount).status === 0;
const files = new Files();

afterEach(() => files.clean());
afterAll(() => {
  if (mounted) spawnSync("umount", [disk]);
  rmSync(disk, { recursive: true, force: true });
});

const things = "CREATE TABLE things (id bigint PRIMARY KEY, bytes bytea NOT NULL)";
const half = "CREATE TABLE halves (id bigint PRIMARY KEY)";
const bytesEach = 60_000;
const filler = join(disk, "filler");

/** Leaves this much free space. */
function fill(bytes: number): void {
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(filler, new Uint8Array(Math.max(0, bavail * bsize - bytes)));
}

describe("a full disk", () => {
  it.skipIf(!mounted).each([
    ["data", /the disk of the server is full/],
    [
      "pg_wal",
      /the disk of the server is full|connection|starting or shutting down|may be stored or not/,
    ],
  ] as const)(
    "of %s: rejects with a clear error, stores nothing partially, and continues when space is free",
    async (holds, text) => {
      const folder = join(disk, holds);
      mkdirSync(folder);
      const server = await PostgresServer.start({
        disk: { folder, holds },
        settings: { restart_after_crash: "off", min_wal_size: "2MB", max_wal_size: "64MB" },
      });
      files.closing({ close: () => server.remove() });
      const times = { waitMs: 200, outcomeMs: 300 };
      const url = server.url();
      const driver = await PostgresDriver.open({ url, clock: systemClock, log: silent, times });
      files.closing(driver);
      const tables = [things, half].map((sql) => ({ sql, params: [] }));
      await driver.transaction(tables, "durable");
      fill(3_000_000);
      const persisted: bigint[] = [];
      const refused: string[] = [];
      for (let id = 1n; refused.length < 3; id++) {
        const bytes = crypto.getRandomValues(new Uint8Array(bytesEach));
        const both = [
          { sql: "INSERT INTO halves (id) VALUES ($1)", params: [id] },
          { sql: "INSERT INTO things (id, bytes) VALUES ($1, $2)", params: [id, bytes] },
        ];
        await driver.transaction(both, "durable").then(
          () => persisted.push(id),
          (error: unknown) => refused.push(String(error)),
        );
      }
      expect(persisted.length).toBeGreaterThan(5);
      for (const words of refused) expect(words).toMatch(text);
      rmSync(filler);
      // A server that cannot write its WAL ends; it is restarted with free space.
      if (holds === "pg_wal") {
        await server.stop();
        await server.start();
      }
      const last = {
        sql: "INSERT INTO things (id, bytes) VALUES (-1, $1)",
        params: [new Uint8Array(9)],
      };
      await driver.transaction([last], "durable");
      const rows = await driver.query("SELECT id FROM things WHERE id > 0 ORDER BY id", []);
      expect(rows).toEqual(await driver.query("SELECT id FROM halves ORDER BY id", []));
      const there = new Set(rows.flat());
      expect(persisted.filter((id) => !there.has(id))).toEqual([]);
      await server.stop();
    },
  );
});
