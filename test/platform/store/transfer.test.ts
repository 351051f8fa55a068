// Export and import of whole databases: every row is equal afterwards, for any pair of databases;
// damaged files change nothing.

import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { databaseFileName } from "../../../src/platform/store/data-folder.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { migrate, migrations, versionOf } from "../../../src/platform/store/migrations.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { DatabaseLoader } from "../../../src/platform/store/transfer/database-loader.ts";
import { openSnapshot } from "../../../src/platform/store/transfer/database-location.ts";
import { exportDatabase } from "../../../src/platform/store/transfer/export.ts";
import { checkExport, importDatabase } from "../../../src/platform/store/transfer/import.ts";
import { isMark } from "../../../src/platform/store/transfer/mark.ts";
import { insertionsOf, tablesAt } from "../../../src/platform/store/transfer/tables.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { isFullRun } from "../../support/vitest/test-scope.ts";
import { Files, openLocation, silent } from "./files.ts";
import { allRows, fill, generateRows } from "./transfer/rows.ts";

const newest = migrations.length;
const files = new Files();
let server: PostgresServer | undefined;
let folder = "";
let created = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "shredway-transfer-"));
  if (postgresPrograms !== null) server = await PostgresServer.start();
});
/** Databases of PostgreSQL are used again: a new one takes longer than most of these tests. */
async function closeDatabases(): Promise<void> {
  await files.clean();
  server?.recycle();
}
afterEach(closeDatabases);
afterAll(async () => {
  await server?.remove();
  rmSync(folder, { recursive: true, force: true });
});

type Kind = "sqlite" | "postgres";
const kinds: readonly Kind[] = postgresPrograms === null ? ["sqlite"] : ["sqlite", "postgres"];

interface Opened {
  readonly kind: Kind;
  readonly location: { readonly directory: string; readonly postgres?: string };
  readonly driver: SqlDriver;
  readonly blobType: string;
}

async function openEmpty(kind: Kind): Promise<Opened> {
  const number = ++created;
  if (kind === "sqlite") {
    const directory = files.folder();
    const driver = await files.driver({ path: join(directory, databaseFileName) });
    return { kind, location: { directory }, driver, blobType: "blob" };
  }
  if (!server) throw new Error("expected a server");
  const postgres = server.url(`transfer_${number}`);
  await server.ensureDatabase(postgres);
  const opened = await PostgresDriver.open({ url: postgres, clock: systemClock, log: silent });
  const driver = files.closing(opened);
  return { kind, location: { directory: "/nowhere", postgres }, driver, blobType: "bytea" };
}

async function openAt(kind: Kind, version = newest): Promise<Opened> {
  const opened = await openEmpty(kind);
  await migrate(opened.driver, opened.blobType, migrations.slice(0, version));
  return opened;
}

async function exported({ location }: Opened): Promise<string> {
  const path = join(folder, `${++created}.export`);
  const { snapshot, version } = await openSnapshot(location, systemClock);
  const pieces: string[] = [];
  const write = (text: string) => Promise.resolve(void pieces.push(text));
  const head = { schemaVersion: version, createdNs: 1n, node: "here" };
  const summary = await exportDatabase({ snapshot, head, write });
  await snapshot.close();
  const text = pieces.join("");
  expect(summary.bytes).toBe(Buffer.byteLength(text));
  writeFileSync(path, text);
  return path;
}

async function imported(path: string, { driver, blobType }: Opened): Promise<boolean> {
  const checked = await checkExport(path);
  return (await importDatabase({ path, checked, driver, blobType })).wasInterrupted;
}

/** The same numbers in each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("the exported tables", () => {
  it.each(kinds)("are those of the schema, at each version, on %s", async (kind) => {
    for (let version = 1; version <= newest; version++) {
      const { driver } = await openAt(kind, version);
      const found = new Map<string, string[]>();
      const rows =
        kind === "sqlite"
          ? await driver.query(
              `SELECT m.name, p.name, p.type, p."notnull", p.pk FROM sqlite_master AS m
               JOIN pragma_table_info(m.name) AS p WHERE m.type = 'table' ORDER BY m.name, p.cid`,
              [],
            )
          : await driver.query(
              `SELECT c.table_name, c.column_name, c.data_type, c.is_nullable
               FROM information_schema.columns AS c WHERE table_schema = 'public'
               AND table_name <> 'commit_marks' ORDER BY table_name, ordinal_position`,
              [],
            );
      for (const [table, column, type, third, fourth] of rows) {
        if (table === "schema_version") continue;
        const isNullable = kind === "sqlite" ? third === 0n && fourth === 0n : third === "YES";
        const list = found.get(String(table)) ?? [];
        list.push(
          `${String(column)} ${String(type).toLowerCase()}${isNullable ? "" : " not null"}`,
        );
        found.set(String(table), list);
      }
      const blob = kind === "sqlite" ? "blob" : "bytea";
      const words = { text: "text", integer: "bigint", bytes: blob };
      const expected = tablesAt(version).map(({ name, columns }) => [
        name,
        columns.map((one) => `${one.name} ${words[one.type]}${one.isNullable ? "" : " not null"}`),
      ]);
      expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
      await closeDatabases();
    }
  });

  it("reject unknown column types", () => {
    expect(() => tablesAt(1, [["CREATE TABLE a (id bigint PRIMARY KEY, b real)"]])).toThrow(
      'expected a column, got "b real"',
    );
    expect(() => tablesAt(1, [["CREATE TABLE a (id bigint)"]])).toThrow("with a primary key");
    expect(() => tablesAt(1, [["ALTER TABLE a RENAME TO b"]])).toThrow("unknown statement");
  });
});

describe("export and import", () => {
  const ways: readonly (readonly [Kind, Kind])[] =
    postgresPrograms === null
      ? [["sqlite", "sqlite"]]
      : [
          ["sqlite", "postgres"],
          ["postgres", "sqlite"],
        ];

  const rowCount = isFullRun ? 20_000 : 2000;
  it.each(ways)(`transfer ${rowCount} rows from %s to %s and back`, async (from, to) => {
    const source = await openAt(from);
    const tables = tablesAt(newest);
    await fill(source.driver, tables, Math.ceil(rowCount / 9.5), seeded(1));
    const before = await allRows(source.driver, tables);
    expect(Object.values(before).flat().length).toBeGreaterThanOrEqual(rowCount);
    const path = await exported(source);
    const target = await openEmpty(to);
    expect(await imported(path, target)).toBe(false);
    expect(await allRows(target.driver, tables)).toEqual(before);
    const back = await openEmpty(from);
    await imported(await exported(target), back);
    expect(await allRows(back.driver, tables)).toEqual(before);
  });

  it.each(ways)("transfer any rows from %s to %s", { timeout: 300_000 }, async (from, to) => {
    const tables = tablesAt(newest);
    const source = await openAt(from);
    const target = await openAt(to);
    const clear = async ({ driver }: Opened): Promise<void> => {
      const statements = tables.toReversed().map(({ name }) => `DELETE FROM ${name}`);
      await driver.transaction(
        statements.map((sql) => ({ sql, params: [] })),
        "durable",
      );
    };
    const anyRows = fc.tuple(fc.nat(40), fc.nat(), fc.array(fc.string({ unit: "binary" })));
    await fc.assert(
      fc.asyncProperty(anyRows, async ([count, seed, labels]) => {
        await clear(source);
        await clear(target);
        await fill(source.driver, tables, count, seeded(seed));
        const [accounts] = tables;
        if (!accounts) throw new Error("expected a table");
        const rows = labels.map((label, i) => [`more-${i}`, `${label}-${i}`, BigInt(i)]);
        await source.driver.transaction(insertionsOf(accounts, rows), "durable");
        await imported(await exported(source), target);
        expect(await allRows(target.driver, tables)).toEqual(await allRows(source.driver, tables));
      }),
      { numRuns: 10 },
    );
  });

  const olderVersions = Array.from({ length: newest - 1 }, (_, i) => i + 1);
  describe.each(kinds)("migrate on %s", (kind) => {
    it.each(olderVersions)("the export of schema %i", async (version) => {
      const source = await openAt(kind, version);
      await fill(source.driver, tablesAt(version), 20, seeded(version));
      const path = await exported(source);
      await migrate(source.driver, source.blobType);
      const expected = await allRows(source.driver, tablesAt(newest));
      for (const target of [await openEmpty(kind), await openAt(kind)]) {
        await imported(path, target);
        expect(await versionOf(target.driver)).toBe(newest);
        expect(await allRows(target.driver, tablesAt(newest))).toEqual(expected);
      }
      await closeDatabases(); // a server has 100 connections
    });
  });

  it.each(kinds)("read one snapshot of %s despite concurrent changes", async (kind) => {
    const source = await openAt(kind);
    const tables = tablesAt(newest);
    await fill(source.driver, tables, 1500, seeded(2));
    const before = await allRows(source.driver, tables);
    const { snapshot } = await openSnapshot(source.location, systemClock);
    const write = async (): Promise<void> => {
      await source.driver.transaction(
        [
          { sql: "DELETE FROM landed_tips", params: [] },
          { sql: "UPDATE accounts SET created_ns = created_ns + 1", params: [] },
        ],
        "durable",
      );
    };
    const lines: string[] = [];
    await exportDatabase({
      snapshot,
      head: { schemaVersion: newest, createdNs: 0n, node: "" },
      write: async (text) => {
        lines.push(text);
        if (lines.length === 1) await write();
      },
    });
    await snapshot.close();
    const path = join(folder, "meanwhile.export");
    writeFileSync(path, lines.join(""));
    const target = await openEmpty("sqlite");
    await imported(path, target);
    expect(await allRows(target.driver, tables)).toEqual(before);
    expect(await allRows(source.driver, tables)).not.toEqual(before);
  });

  it("name the row of an SQLite file with a wrong type", async () => {
    const source = await openAt("sqlite");
    const spoilt = "INSERT INTO accounts (id, name, created_ns) VALUES ('a_1', 'a', 'yesterday')";
    await source.driver.transaction([{ sql: spoilt, params: [] }], "durable");
    await expect(exported(source)).rejects.toThrow(
      'accounts, row a_1, column created_ns: expected an integer of 64 bits, got "yesterday"',
    );
  });
});

describe("import rejects", () => {
  async function lines(): Promise<string[]> {
    const source = await openAt("sqlite");
    await fill(source.driver, tablesAt(newest), 3, seeded(3));
    return readFileSync(await exported(source), "utf8").split("\n");
  }

  /** The file with `changed`; with corrected checksums if `isSummed`. */
  async function refused(changed: string, target: Opened): Promise<string> {
    const path = join(folder, "damaged.export");
    writeFileSync(path, changed);
    const error: unknown = await imported(path, target).then(
      () => "imported",
      (reason: unknown) => reason,
    );
    expect(await versionOf(target.driver)).toBe(newest);
    const rows = await allRows(target.driver, tablesAt(newest));
    expect(Object.values(rows).flat()).toEqual([]);
    return error instanceof Error ? error.message : String(error);
  }

  it("a file truncated at any byte", async () => {
    const text = (await lines()).join("\n");
    const target = await openAt("sqlite");
    for (let length = 0; length < text.length; length += 211) {
      expect(await refused(text.slice(0, length), target)).toMatch(
        /line \d+: the file ends (before the end of the export|within a line)/,
      );
    }
    expect(await refused(text.slice(0, -1), target)).toContain("the file ends within a line");
  });

  it("a file with any byte changed", { timeout: 300_000 }, async () => {
    const bytes = Buffer.from((await lines()).join("\n"));
    const target = await openAt("sqlite");
    await fc.assert(
      fc.asyncProperty(
        fc.nat(bytes.length - 2),
        fc.integer({ min: 1, max: 255 }),
        async (at, by) => {
          const changed = Uint8Array.from(bytes);
          changed[at] = (changed[at] ?? 0) ^ by;
          const path = join(folder, "changed.export");
          writeFileSync(path, changed);
          // White space in the last line would not change its meaning.
          await expect(checkExport(path)).rejects.toThrow(/line \d+: /);
        },
      ),
      { numRuns: 400 },
    );
    expect(Object.values(await allRows(target.driver, tablesAt(newest))).flat()).toEqual([]);
  });

  it("invalid content, with the number of the line", async () => {
    const all = await lines();
    const target = await openAt("sqlite");
    const replaced = (at: number, line: string) => all.with(at, line).join("\n");
    const endAt = all.length - 2;
    const end: Record<string, unknown> = JSON.parse(all[endAt] ?? "");
    const cases: (readonly [string, string])[] = [
      ["", "line 1: the file ends before the end of the export"],
      ["hello\n", 'line 1: the file is not an export of Shredway: it begins with "hello'],
      [
        "SQLite format 3\0",
        'the file is not an export of Shredway: it begins with "SQLite format 3',
      ],
      ['{"accounts":[]}', "the file is not an export of Shredway"],
      ["[]\n", "line 1: the file is not an export of Shredway"],
      [
        replaced(0, (all[0] ?? "").replace('sion":1', 'sion":2')),
        "unsupported format version 2; expected 1 or older",
      ],
      [
        replaced(0, (all[0] ?? "").replace(`schemaVersion":${newest}`, 'schemaVersion":99')),
        `line 1: unsupported schema version 99; expected ${newest} or older`,
      ],
      [
        replaced(1, '{"table":"people","columns":{}}'),
        'line 2: expected the table accounts, got "people"',
      ],
      [
        replaced(1, (all[1] ?? "").replace('"name":"text"', '"name":"bytes"')),
        "line 2: expected accounts with the columns",
      ],
      [replaced(2, '["a","b"]'), "line 3: expected a row of accounts with 3 values, got 2"],
      [replaced(2, '["a",null,"1"]'), "line 3: accounts.name: expected text, got null"],
      [
        replaced(2, '["a","b",1]'),
        "line 3: accounts.created_ns: expected an integer in digits, got 1",
      ],
      [
        replaced(2, '["a","b","9223372036854775808"]'),
        "line 3: accounts.created_ns: expected an integer of 64 bits",
      ],
      [replaced(2, '["a","\\ud800","1"]'), "line 3: accounts.name: expected text"],
      [all.toSpliced(2, 1).join("\n"), "the file was modified"],
      [
        replaced(endAt, JSON.stringify({ ...end, rows: { accounts: 3 } })),
        "rows of api_keys, got 3",
      ],
      [
        replaced(endAt, JSON.stringify({ ...end, sha256: "0".repeat(64) })),
        "the file was modified",
      ],
      [`${all.join("\n")}[]\n`, "found a line after the end; expected the end of the file"],
    ];
    for (const [text, message] of cases) expect(await refused(text, target)).toContain(message);
    const lengths = all.findIndex((line) => line.startsWith('["registrations'));
    expect(lengths).toBe(-1); // signatures are bytes
    const keyAt = all.findIndex((line) => line.startsWith('["api_keys.id'));
    const key: (string | null)[] = JSON.parse(all[keyAt] ?? "");
    const short = replaced(keyAt, JSON.stringify(key.with(2, "AAAA")));
    expect(await refused(short, target)).toContain(
      `line ${keyAt + 1}: api_keys.hash: expected 32 bytes, got 3`,
    );
  });

  it.each(kinds)("duplicate rows, and leaves %s empty", async (kind) => {
    const source = await openAt("sqlite");
    const tables = tablesAt(newest);
    await fill(source.driver, tables, 400, seeded(4));
    const { snapshot } = await openSnapshot(source.location, systemClock);
    const query: typeof snapshot.query = async (sql, params) => {
      const rows = await snapshot.query(sql, params);
      return sql.includes("FROM landed_tips") ? [...rows, ...rows.slice(-1)] : rows;
    };
    const pieces: string[] = [];
    await exportDatabase({
      snapshot: { ...snapshot, query },
      head: { schemaVersion: newest, createdNs: 0n, node: "" },
      write: (text) => Promise.resolve(void pieces.push(text)),
    });
    await snapshot.close();
    const text = pieces.join("");
    const number = text.split("\n").findIndex((line) => line.includes("tip_snapshots"));
    const target = await openAt(kind);
    const message = await refused(text, target);
    expect(message).toContain(`line ${number}: a row of landed_tips: `);
    expect(message).toContain("constraint violation");
    await imported(await exported(source), target);
    expect(await allRows(target.driver, tables)).toEqual(await allRows(source.driver, tables));
  });

  it.each(kinds)("%s that is not empty", async (kind) => {
    const source = await openAt("sqlite");
    const path = await exported(source);
    for (const table of tablesAt(newest).filter(
      ({ columns }) => columns[1]?.name !== "account_id",
    )) {
      const target = await openAt(kind);
      const rows = generateRows(table, 1, seeded(1));
      if (["destinations", "public_keys"].includes(table.name)) continue; // they refer to others
      await target.driver.transaction(insertionsOf(table, rows), "durable");
      await expect(imported(path, target)).rejects.toThrow(
        `expected an empty database, got one with rows in ${table.name}`,
      );
      expect(await versionOf(target.driver)).toBe(newest);
    }
  });

  it.each(kinds)("a newer schema on %s", async (kind) => {
    const path = await exported(await openAt("sqlite"));
    const target = await openAt(kind);
    const newer = { sql: "UPDATE schema_version SET version = 99", params: [] };
    await target.driver.transaction([newer], "durable");
    await expect(imported(path, target)).rejects.toThrow("unsupported schema version 99");
  });
});

describe.skipIf(postgresPrograms === null)("an empty PostgreSQL beside an SQLite file", () => {
  it("is rejected until the file is imported or renamed", async () => {
    const source = await openAt("sqlite");
    await fill(source.driver, tablesAt(newest), 2, seeded(8));
    const target = await openEmpty("postgres");
    const { directory } = source.location;
    const open = () =>
      Store.open({ ...target.location, directory, clock: systemClock, log: silent }).then((store) =>
        files.closing(store),
      );
    await expect(open()).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringContaining(`is empty and ${join(directory, databaseFileName)} exists`),
    });
    await migrate(target.driver, target.blobType); // tables without rows change nothing
    await expect(open()).rejects.toThrow('"shredway import"');
    await imported(await exported(source), target);
    const store = await open();
    expect(store.isOnFile).toBe(false);
    expect((await store.keys.accounts()).length).toBe(2);
  });

  it("is used after the file was renamed", async () => {
    const source = await openAt("sqlite");
    const target = await openEmpty("postgres");
    const { directory } = source.location;
    await source.driver.close();
    const file = join(directory, databaseFileName);
    renameSync(file, `${file}.left`);
    const options = { ...target.location, directory, clock: systemClock, log: silent };
    const store = files.closing(await Store.open(options));
    expect(await store.keys.accounts()).toEqual([]);
  });
});

describe("an interrupted import", () => {
  it.each(kinds)("is rejected by every program until it is repeated, on %s", async (kind) => {
    const source = await openAt("sqlite");
    const tables = tablesAt(newest);
    await fill(source.driver, tables, 30, seeded(5));
    const target = await openEmpty(kind);
    const { driver, blobType } = target;
    const [accounts] = tables;
    if (!accounts) throw new Error("expected a table");
    const filling = await DatabaseLoader.begin({ driver, blobType, version: 3 });
    await filling.add(accounts, generateRows(accounts, 6000, seeded(6)));
    expect(isMark(await versionOf(driver))).toBe(true);
    const location = target.location.postgres ?? target.location.directory;
    await expect(openLocation(location)).rejects.toThrow("the database is incomplete");
    await expect(migrate(driver, blobType)).rejects.toThrow("the database is incomplete");
    await expect(exported(target)).rejects.toThrow("the database is incomplete");
    expect(await imported(await exported(source), target)).toBe(true);
    expect(await allRows(driver, tables)).toEqual(await allRows(source.driver, tables));
    // A node that counted as dead writes nothing any more.
    await expect(filling.add(accounts, generateRows(accounts, 1, seeded(7)))).rejects.toThrow(
      "another process is filling this database",
    );
    await expect(filling.finish()).rejects.toThrow("another process is filling this database");
    expect(await allRows(driver, tables)).toEqual(await allRows(source.driver, tables));
    await files.closing(await openLocation(location)).close();
  });
});
