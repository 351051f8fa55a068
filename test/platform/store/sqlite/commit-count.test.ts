// A database that lost acknowledged commits is refused and left as it is; a kill at any moment is not
// mistaken for a loss (crash.test.ts).

import {
  copyFileSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { databaseFileName } from "../../../../src/platform/store/data-folder.ts";
import { openSqliteSnapshot } from "../../../../src/platform/store/snapshot.ts";
import { Files, recordOf } from "../files.ts";

const files = new Files();
afterEach(() => files.clean());

const suffixes = ["", "-wal", "-commits"];

/** A copy of the files of a running store with ten acknowledged submissions: the state after a kill. */
async function killedStore(): Promise<string> {
  const from = files.folder();
  const to = files.folder();
  const store = await files.store(from);
  for (let i = 0; i < 10; i++) await store.submissions.put([recordOf(`s${i}`)]);
  for (const suffix of suffixes) {
    copyFileSync(join(from, databaseFileName + suffix), join(to, databaseFileName + suffix));
  }
  return to;
}

async function submissionsIn(folder: string): Promise<number> {
  return (await (await files.store(folder)).submissions.open()).length;
}

function spoil(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at);
  writeFileSync(path, bytes);
}

describe("the store after a kill", () => {
  it("opens an undamaged database with all its submissions", async () => {
    expect(await submissionsIn(await killedStore())).toBe(10);
  });

  it("refuses an empty file beside its log, and keeps the log", async () => {
    const folder = await killedStore();
    const path = join(folder, databaseFileName);
    truncateSync(path, 0);
    const log = readFileSync(`${path}-wal`);
    for (let tries = 0; tries < 2; tries++) {
      await expect(files.store(folder)).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringMatching(
          /the file has 0 bytes beside a write-ahead log of \d+ bytes/,
        ),
      });
    }
    rmSync(path); // the same for a file that is missing
    await expect(files.store(folder)).rejects.toThrow("has 0 bytes beside");
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
  });

  it.each([
    ["in its middle", (size: number) => Math.floor(size / 2)],
    ["in its first page", () => 40],
    ["in its header", () => 20],
  ])("refuses a log that is damaged %s, and keeps it", async (_, place) => {
    const folder = await killedStore();
    const path = join(folder, databaseFileName);
    spoil(`${path}-wal`, place(statSync(`${path}-wal`).size));
    const log = readFileSync(`${path}-wal`);
    const refusal =
      /\d+ acknowledged commits are missing.* Restore a backup.* delete .*shredway.db-commits/;
    await expect(files.store(folder)).rejects.toThrow(refusal);
    await expect(openSqliteSnapshot(path)).rejects.toThrow(refusal); // export, doctor
    expect(readFileSync(`${path}-wal`).equals(log)).toBe(true);
    rmSync(`${path}-commits`);
    expect(await submissionsIn(folder)).toBeLessThan(10);
  });

  it("refuses an older copy of the file, and an empty one, after a clean end", async () => {
    const folder = files.folder();
    const path = join(folder, databaseFileName);
    const older = await files.store(folder);
    await older.close();
    copyFileSync(path, join(folder, "copy"));
    const store = await files.store(folder);
    await store.submissions.put([recordOf("s")]);
    await store.close();
    copyFileSync(join(folder, "copy"), path);
    await expect(files.store(folder)).rejects.toThrow("1 acknowledged commits are missing");
    truncateSync(path, 0);
    await expect(files.store(folder)).rejects.toThrow("acknowledged commits are missing");
  });

  it("starts empty when the operator removed the database", async () => {
    const folder = files.folder();
    const store = await files.store(folder);
    await store.submissions.put([recordOf("s")]);
    await store.close();
    rmSync(join(folder, databaseFileName));
    expect(await submissionsIn(folder)).toBe(0);
  });

  it("ignores a record without its content, as a loss of power may leave it", async () => {
    const folder = await killedStore();
    writeFileSync(join(folder, `${databaseFileName}-commits`), "");
    expect(await submissionsIn(folder)).toBe(10);
  });

  it("writes no record through a link, which root would follow to any file", async () => {
    const folder = files.folder();
    const target = join(files.folder(), "target");
    writeFileSync(target, "of another program");
    symlinkSync(target, join(folder, `${databaseFileName}-commits`));
    writeFileSync(join(folder, databaseFileName), "");
    const store = await files.store(folder);
    await store.submissions.put([recordOf("s")]);
    expect(readFileSync(target, "utf8")).toBe("of another program");
  });

  it("accepts commits of a second process, and numbers that wrap", async () => {
    const folder = files.folder();
    const driver = await files.driver({ path: join(folder, databaseFileName) });
    await driver.transaction([{ sql: "CREATE TABLE t (a bigint)", params: [] }], "durable");
    await driver.transaction([{ sql: "PRAGMA user_version = 2147483646", params: [] }], "durable");
    const add = { sql: "INSERT INTO t VALUES (1)", params: [] };
    const other = await files.driver({ path: join(folder, databaseFileName) });
    for (const each of [driver, other, driver, other]) await each.transaction([add], "durable");
    await driver.close();
    await other.close();
    const again = await files.driver({ path: join(folder, databaseFileName) });
    expect(await again.query("SELECT COUNT(*) FROM t", [])).toEqual([[4n]]);
    expect(await again.query("PRAGMA user_version", [])).toEqual([[3n]]);
  });
});
