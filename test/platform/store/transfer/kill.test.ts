// kill -9 during imports, at any time: no program uses a partly filled database, and the next import
// succeeds.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { migrate, migrations, versionOf } from "../../../../src/platform/store/migrations.ts";
import {
  openDatabase,
  openSnapshot,
} from "../../../../src/platform/store/transfer/database-location.ts";
import { exportDatabase } from "../../../../src/platform/store/transfer/export.ts";
import { checkExport, importDatabase } from "../../../../src/platform/store/transfer/import.ts";
import { isMark } from "../../../../src/platform/store/transfer/mark.ts";
import { tablesAt } from "../../../../src/platform/store/transfer/tables.ts";
import { PostgresServer, postgresPrograms } from "../../../support/postgres/postgres.ts";
import { linesUntilKilled } from "../../../support/processes/killed-child.ts";
import { Files, openLocation, silent } from "../files.ts";
import { placeOf } from "./child.ts";
import { allRows, fill } from "./rows.ts";

const child = fileURLToPath(new URL("./child.ts", import.meta.url));
/** SHREDWAY_CRASH_ROUNDS=100 for a long run. */
const rounds = Number(process.env["SHREDWAY_CRASH_ROUNDS"] ?? 2);
const newest = migrations.length;
const tables = tablesAt(newest);
const rowsEach = 1000;

const files = new Files();
let server: PostgresServer | undefined;
let created = 0;

beforeAll(async () => {
  if (postgresPrograms !== null) server = await PostgresServer.start();
});
afterEach(() => files.clean());
afterAll(() => server?.remove());

async function newUrl(): Promise<string> {
  if (!server) throw new Error("expected a server");
  const url = server.url(`kill_${++created}`);
  await server.ensureDatabase(url);
  return url;
}

const options = { clock: systemClock, log: silent };

async function openDriver(location: string) {
  return files.closing(
    (await openDatabase(placeOf(location), { ...options, isAlone: false })).driver,
  );
}

describe("kill -9", () => {
  it.each(["sqlite", ...(postgresPrograms === null ? [] : ["postgres"])])(
    `in the middle of an import into %s, ${rounds} times`,
    { timeout: 300_000 },
    async (kind) => {
      const directory = files.folder();
      const source = await openDriver(directory);
      await migrate(source, "blob");
      await fill(source, tables, rowsEach, Math.random);
      const expected = await allRows(source, tables);
      const path = join(directory, "all.export");
      const { snapshot } = await openSnapshot({ directory }, systemClock);
      const pieces: string[] = [];
      const head = { schemaVersion: newest, createdNs: 0n, node: "" };
      const write = (text: string) => Promise.resolve(void pieces.push(text));
      await exportDatabase({ snapshot, head, write });
      await snapshot.close();
      writeFileSync(path, pieces.join(""));

      const newLocation = async () => (kind === "sqlite" ? files.folder() : newUrl());
      let location = await newLocation();
      for (let round = 0; round < rounds; round++) {
        const words = [location, path];
        const lines = await linesUntilKilled(child, words, Math.random() * 500);
        const driver = await openDriver(location);
        const version = await versionOf(driver).catch(() => 0);
        if (lines.includes("ended")) expect(version).toBe(newest);
        if (isMark(version)) {
          await expect(openLocation(location)).rejects.toThrow("the database is incomplete"); // the next round starts over
        } else if (version === newest) {
          const found = await allRows(driver, tables);
          if (Object.values(found).flat().length === 0) continue; // killed before the first row
          expect(found).toEqual(expected);
          location = await newLocation();
        }
      }
      const driver = await openDriver(location);
      const checked = await checkExport(path);
      const blobType = kind === "sqlite" ? "blob" : "bytea";
      await importDatabase({ path, checked, driver, blobType });
      expect(await allRows(driver, tables)).toEqual(expected);
      await files.closing(await openLocation(location)).close();
    },
  );
});
