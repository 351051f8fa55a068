// The inspection of a real SQLite file reports what the start of a service refuses there, and changes
// nothing.

import {
  copyFileSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { inspectDatabaseFile } from "../../src/app/database-inspection.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { checkDatabaseFile } from "../../src/platform/doctor/database-checks.ts";
import { databaseFileName } from "../../src/platform/store/data-folder.ts";
import { checkFile } from "../../src/platform/store/file-check.ts";
import { migrations } from "../../src/platform/store/migrations.ts";
import { openSqliteSnapshot } from "../../src/platform/store/snapshot.ts";
import { Files, recordOf } from "../platform/store/files.ts";

const files = new Files();
afterEach(() => files.clean());

const newest = migrations.length;
const suffixes = ["", "-wal", "-commits"];

function configOf(directory: string) {
  return parseConfig(
    `relay: { listen: "127.0.0.1:0", shredVersion: 9, authentication: off }
tips: { addresses: [2gPG8fL2EV11ziLGpr1rDSrhhhGj2TgNNr9HVk8MyzbU] }
http: { listen: "127.0.0.1:0" }
data: { directory: "${directory}" }`,
    "/etc/shredway.yaml",
  );
}

function inspect(directory: string) {
  return inspectDatabaseFile(configOf(directory));
}

async function levels(directory: string): Promise<string[]> {
  const fact = await inspect(directory);
  return fact ? checkDatabaseFile(fact).map(({ check, level }) => `${check} ${level}`) : [];
}

/** A copy of the files of a running store with ten acknowledged submissions: the state after a kill. */
async function killedStore(): Promise<string> {
  const [from, to] = [files.folder(), files.folder()];
  const store = await files.store(from);
  for (let i = 0; i < 10; i++) await store.submissions.put([recordOf(`s${i}`)]);
  for (const suffix of suffixes) {
    copyFileSync(join(from, databaseFileName + suffix), join(to, databaseFileName + suffix));
  }
  return to;
}

/** The inspection's only problem; the start must refuse with the same text. */
async function refusal(directory: string): Promise<string> {
  const problems = (await inspect(directory))?.problems ?? [];
  expect(problems).toHaveLength(1);
  const text = problems[0]?.text ?? "";
  await expect(files.store(directory)).rejects.toThrow(text);
  expect(await levels(directory)).toEqual(["database fail"]);
  return text;
}

describe("the inspection of an SQLite file", () => {
  it("accepts an empty folder, and leaves it empty", async () => {
    const folder = files.folder();
    expect(await inspect(folder)).toMatchObject({ problems: [], version: 0, newest });
    expect(await levels(folder)).toEqual(["database ok"]);
    expect(readdirSync(folder)).toEqual([]);
  });

  it("accepts the file of a running service, which continues", async () => {
    const folder = files.folder();
    const store = await files.store(folder);
    await store.submissions.put([recordOf("s1")]);
    const inspecting = inspect(folder);
    await store.submissions.put([recordOf("s2")]);
    expect(await inspecting).toMatchObject({ problems: [], version: newest, uncheckedBytes: null });
    expect(await levels(folder)).toEqual(["database ok"]);
    expect((await store.submissions.open()).length).toBe(2);
  });

  it("names an older schema, and a newer one", async () => {
    const folder = files.folder();
    const driver = await files.driver({ path: join(folder, databaseFileName) });
    const write = (sql: string) => driver.transaction([{ sql, params: [] }], "durable");
    await write("CREATE TABLE schema_version (version bigint NOT NULL)");
    await write("INSERT INTO schema_version (version) VALUES (1)");
    expect(await inspect(folder)).toMatchObject({ problems: [], version: 1 });
    await write(`UPDATE schema_version SET version = ${newest + 3}`);
    expect(await refusal(folder)).toContain(`unsupported schema version ${newest + 3}`);
  });

  it("names missing commits, and keeps the files as they are", async () => {
    const folder = await killedStore();
    const path = join(folder, databaseFileName);
    truncateSync(`${path}-wal`, readFileSync(`${path}-wal`).length - 4096);
    const before = suffixes.map((suffix) => readFileSync(path + suffix));
    expect(await refusal(folder)).toContain("acknowledged commits are missing");
    expect(suffixes.map((suffix) => readFileSync(path + suffix))).toEqual(before);
  });

  it("names a log without its database", async () => {
    const folder = await killedStore();
    rmSync(join(folder, databaseFileName));
    const [problem] = (await inspect(folder))?.problems ?? [];
    expect(problem?.text).toContain("has 0 bytes beside a write-ahead log");
    expect(problem?.remedy).toBe("restore a backup (docs/backup.md)");
    expect(readdirSync(folder)).not.toContain(databaseFileName);
  });

  it("names a file that is not a database", async () => {
    const folder = files.folder();
    writeFileSync(join(folder, databaseFileName), "a letter ".repeat(1000));
    expect(await refusal(folder)).toContain("the file is not an SQLite database");
  });

  it("names damaged content", async () => {
    const folder = files.folder();
    const store = await files.store(folder);
    await store.submissions.put(Array.from({ length: 500 }, (_, i) => recordOf(`s${i}`)));
    await store.close();
    const path = join(folder, databaseFileName);
    const snapshot = await openSqliteSnapshot(path);
    const rootQuery = "SELECT rootpage FROM sqlite_master WHERE name = 'submissions_open'";
    const [row] = await snapshot.query(rootQuery, []);
    await snapshot.close();
    const bytes = readFileSync(path);
    bytes.fill(0xff, (Number(row?.[0]) - 1) * 4096, Number(row?.[0]) * 4096);
    writeFileSync(path, bytes);
    const [problem] = (await inspect(folder))?.problems ?? [];
    expect(problem?.text).toContain("the database file is damaged");
    expect(problem?.remedy).toBe("restore a backup (docs/backup.md)");
  });

  it("does not read the content of a large file, and reports it", async () => {
    const folder = files.folder();
    await files.store(folder);
    const found = await checkFile(folder, 4096);
    expect(found).toMatchObject({ problems: [], version: newest });
    expect(found.uncheckedBytes).toBeGreaterThan(4096);
    const [finding] = checkDatabaseFile({ ...found, problems: [], newest });
    expect(finding).toMatchObject({
      level: "warn",
      finding: expect.stringContaining("the content was not checked"),
    });
  });

  it("leaves a shared database to the inspection of PostgreSQL", async () => {
    const config = configOf(files.folder());
    const data = { ...config.data, postgres: "postgres://127.0.0.1/none" };
    expect(await inspectDatabaseFile({ ...config, data })).toBeNull();
  });
});
