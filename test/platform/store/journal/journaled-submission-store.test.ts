import { execFileSync } from "node:child_process";
import { cpSync, ftruncateSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { databaseFileName } from "../../../../src/platform/store/data-folder.ts";
import {
  JournaledSubmissionStore,
  waitingMax,
} from "../../../../src/platform/store/journal/journaled-submission-store.ts";
import { replayJournal, replayLeftJournal } from "../../../../src/platform/store/journal/replay.ts";
import {
  type JournalCalls,
  readJournal,
  SubmissionJournal,
} from "../../../../src/platform/store/journal/submission-journal.ts";
import { migrate } from "../../../../src/platform/store/migrations.ts";
import type { SqliteDriver } from "../../../../src/platform/store/sqlite/driver.ts";
import { Store } from "../../../../src/platform/store/store.ts";
import {
  columns,
  SqlSubmissionStore,
} from "../../../../src/platform/store/tables/submission-store.ts";
import { ManualClock } from "../../../support/clocks/manual-clock.ts";
import {
  bundleRecordOf,
  Files,
  recordOf,
  recordsOfBundle,
  signatureCodec,
  silent,
  until,
} from "../files.ts";

const files = new Files();
afterEach(() => files.clean());

const ended = { state: "landed", endedNs: 5n, slot: 7n, reason: "landed", wire: null } as const;
const landed = recordOf("one", ended);

interface Opened {
  readonly folder: string;
  readonly path: string;
  readonly clock: ManualClock;
  readonly driver: SqliteDriver;
  readonly database: SqlSubmissionStore;
  readonly store: JournaledSubmissionStore;
  readonly failures: unknown[];
}

async function opened(folder = files.folder(), calls?: JournalCalls): Promise<Opened> {
  const path = join(folder, databaseFileName);
  const clock = new ManualClock();
  const driver = await files.driver({ path });
  await migrate(driver, "blob");
  await replayJournal(path, driver);
  const database = new SqlSubmissionStore(driver, signatureCodec, "", "survives-kill");
  const journal = new SubmissionJournal(path, columns, calls);
  const failures: unknown[] = [];
  const onFailure = (error: unknown): void => void failures.push(error);
  const store = new JournaledSubmissionStore({ database, journal, clock, onFailure });
  await until(() => store.isReady);
  return { folder, path, clock, driver, database, store, failures };
}

/** The calls of the system, and how often the journal was written; "short": all but the last byte fit. */
class CountedCalls implements JournalCalls {
  writes = 0;
  disk: "free" | "full" | "short" = "free";

  write(fd: number, bytes: Uint8Array): number {
    this.writes++;
    if (this.disk === "full") throw new Error("no space is left");
    return writeSync(fd, this.disk === "short" ? bytes.subarray(0, -1) : bytes);
  }

  truncate(fd: number, size: number): void {
    ftruncateSync(fd, size);
  }
}

/** The folder as a kill of the process at this moment leaves it. */
function afterKill(folder: string): string {
  const copy = files.folder();
  cpSync(folder, copy, { recursive: true });
  return copy;
}

async function stored(database: SqlSubmissionStore): Promise<string[]> {
  return (await database.open()).map(({ signature }) => signature).toSorted();
}

describe("a new submission", () => {
  it("is acknowledged before its commit, and survives a kill at this moment", async () => {
    const { folder, database, store } = await opened();
    expect(await store.add([recordOf("one"), recordOf("two")])).toBe(true);
    expect(await stored(database)).toEqual([]);
    const after = await opened(afterKill(folder));
    expect(await stored(after.database)).toEqual(["one", "two"]);
    expect(await after.store.open()).toEqual([recordOf("one"), recordOf("two")]);
    await after.store.close();
    await store.close();
    expect(await stored(database)).toEqual(["one", "two"]);
  });

  it("is in the database two turns later, and no longer in the journal one turn after that", async () => {
    const { path, clock, database, store } = await opened();
    await store.add([recordOf("one")]);
    await clock.advance(1000);
    expect(store.waiting).toBe(1);
    await clock.advance(1000);
    await until(() => store.waiting === 0);
    expect(await stored(database)).toEqual(["one"]);
    await store.add([recordOf("two")]);
    await clock.advance(1000);
    await until(() => readJournal(path).length === 1);
    await clock.advance(1000);
    await until(() => readJournal(path).length === 0);
    expect(await stored(database)).toEqual(["one", "two"]);
    await store.close();
  });

  it("is written once if its timeline changes meanwhile", async () => {
    const { clock, database, store } = await opened();
    await store.add([recordOf("one")]);
    await store.put([landed]);
    expect(store.waiting).toBe(0);
    await clock.advance(3000);
    expect(await store.find("a_1", ["one"])).toEqual([landed]);
    expect(await database.find("a_1", ["one"])).toEqual([landed]);
    await store.close();
  });

  it("leaves the journal also if no other one follows", async () => {
    const { path, clock, store } = await opened();
    await store.add([recordOf("one")]);
    await store.put([landed]);
    expect(readJournal(path)).toHaveLength(1);
    for (let turn = 0; turn < 3; turn++) await clock.advance(1000);
    await until(() => readJournal(path).length === 0);
    await clock.advance(5000);
    expect(clock.pending).toBe(0);
    await store.close();
  });

  it("is refused if the database or the journal has it", async () => {
    const { store, folder } = await opened();
    await store.add([recordOf("one")]);
    expect(await store.add([recordOf("two"), recordOf("one")])).toBe(false);
    expect(await store.find("a_1", ["two"])).toEqual([]);
    await store.close();
    const { store: next } = await opened(folder);
    expect(await next.add([recordOf("one")])).toBe(false);
    expect(await next.add([recordOf("one", { accountId: "a_2" })])).toBe(true);
    await next.close();
  });

  it("shares one write with others that begin with it", async () => {
    const calls = new CountedCalls();
    const { folder, store } = await opened(files.folder(), calls);
    calls.writes = 0;
    const names = Array.from({ length: 20 }, (_, i) => `s${i}`);
    expect(await Promise.all(names.map((name) => store.add([recordOf(name)])))).toEqual(
      names.map(() => true),
    );
    expect(calls.writes).toBe(1);
    const after = await opened(afterKill(folder));
    expect(await stored(after.database)).toEqual(names.toSorted());
    await after.store.close();
    await store.close();
  });

  it("is visible to every question, and written in its place, before its group is", async () => {
    const { store, database, clock } = await opened();
    const added = [store.add([recordOf("one")])];
    expect(await store.find("a_1", ["one"])).toEqual([recordOf("one")]);
    added.push(store.add([recordOf("bundled", { bundleId: "b", bundleIndex: 0 })]));
    expect(await store.findBundles("a_1", ["b"])).toHaveLength(1);
    added.push(store.add([recordOf("newest")]));
    expect(await store.newest("a_1", 10)).toHaveLength(3);
    added.push(store.add([recordOf("open")]));
    expect(await store.open()).toHaveLength(4);
    added.push(store.add([recordOf("two")]));
    expect(await store.add([recordOf("two")])).toBe(false);
    added.push(store.add([recordOf("three")]));
    await store.put([recordOf("three", ended)]);
    expect(await Promise.all(added)).toEqual(added.map(() => true));
    await clock.advance(3000);
    expect(await database.find("a_1", ["three"])).toEqual([recordOf("three", ended)]);
    added.push(store.add([recordOf("four")]));
    await store.close();
    expect(await added.at(-1)).toBe(true);
    expect(await stored(database)).toEqual(["bundled", "four", "newest", "one", "open", "two"]);
  });

  it("is visible to every question", async () => {
    const { store } = await opened();
    const bundle = [0, 1].map((bundleIndex) =>
      recordOf(`b${bundleIndex}`, { bundleId: "b", bundleIndex }),
    );
    await store.add([recordOf("one")]);
    expect(await store.find("a_1", ["one"])).toEqual([recordOf("one")]);
    await store.add(bundle);
    expect(await store.findBundles("a_1", ["b"])).toEqual([
      { bundleId: "b", signatures: ["b0", "b1"] },
    ]);
    await store.add([recordOf("two")]);
    expect(await store.newest("a_1", 10)).toHaveLength(4);
    await store.add([recordOf("three")]);
    const reads = await Promise.all([store.open(), store.newest("a_1", 10), store.open()]);
    expect(reads.map((records) => records.length)).toEqual([5, 5, 5]);
    await store.close();
  });
});

describe("a new bundle", () => {
  const older = bundleRecordOf(["s1", "s2"]);
  const newer = bundleRecordOf(["s2", "s3"]);
  const ids = [older.bundleId, newer.bundleId];
  const known = [older, newer].map(({ bundleId, signatures }) => ({ bundleId, signatures }));
  const inBundles = async (database: SqlSubmissionStore) =>
    (await database.findBundles("a_1", ids)).toSorted(
      (a, b) => ids.indexOf(a.bundleId) - ids.indexOf(b.bundleId),
    );
  /** Acknowledges both; only the first one is new. */
  const submitBoth = async (store: JournaledSubmissionStore) => {
    expect(await store.add(recordsOfBundle(older), [older])).toBe(true);
    await store.put(recordsOfBundle(newer), [newer]);
  };

  it("survives a kill before its commit, also if a newer one has one of its transactions", async () => {
    const { folder, store } = await opened();
    await submitBoth(store);
    // Until the commit, only the journal has the older one.
    const after = await opened(afterKill(folder));
    expect(await inBundles(after.database)).toEqual(known);
    await after.store.close();
    await store.close();
  });

  it("is in the database when the journal no longer has it", async () => {
    const { path, clock, database, store } = await opened();
    await submitBoth(store);
    const landedRecords = [older, newer]
      .flatMap(recordsOfBundle)
      .map((one) => ({ ...one, ...ended }));
    await store.put(landedRecords);
    expect(store.waiting).toBe(0); // no row waits, but the older bundle does
    for (let turn = 0; turn < 3; turn++) await clock.advance(1000);
    await until(() => readJournal(path).length === 0);
    expect(await inBundles(database)).toEqual(known);
    await store.close();
  });

  it("is visible to a question at once, and stays after the end of the store", async () => {
    const { database, store } = await opened();
    await submitBoth(store);
    expect(await inBundles(database)).not.toEqual(known);
    expect((await store.findBundles("a_1", ids)).length).toBe(2);
    expect(await inBundles(database)).toEqual(known);
    const third = bundleRecordOf(["s4"]);
    await store.add(recordsOfBundle(third), [third]);
    await store.put([recordOf("s4", { ...ended, bundleId: "another" })]);
    await store.close();
    expect(await database.findBundles("a_1", [third.bundleId])).toHaveLength(1);
  });

  it("stays in the journal while the database fails", async () => {
    const { folder, clock, driver, store, failures } = await opened();
    await store.add(recordsOfBundle(older), [older]);
    await driver.query("PRAGMA query_only = ON", []);
    for (let turn = 0; turn < 4; turn++) await clock.advance(1000);
    await until(() => failures.length > 0);
    const after = await opened(afterKill(folder));
    expect(await inBundles(after.database)).toEqual(known.slice(0, 1));
    await driver.query("PRAGMA query_only = OFF", []);
    await store.close();
    await after.store.close();
  });
});

describe("a replay", () => {
  it("into a database of an earlier version has the submissions of its bundles", async () => {
    const { folder, store } = await opened();
    const bundle = bundleRecordOf(["s1", "s2"]);
    await store.add(recordsOfBundle(bundle), [bundle]);
    const path = join(afterKill(folder), databaseFileName);
    const driver = await files.driver({ path });
    await driver.transaction([{ sql: "DROP TABLE bundles", params: [] }], "durable");
    expect(await replayJournal(path, driver)).toBe(2);
    expect(await stored(new SqlSubmissionStore(driver, signatureCodec))).toEqual(["s1", "s2"]);
    await store.close();
  });

  it("does not replace newer rows, and changes nothing when repeated", async () => {
    const { folder, store } = await opened();
    await store.add([recordOf("one"), recordOf("two")]);
    await store.put([landed]);
    const copy = afterKill(folder);
    const driver = await files.driver({ path: join(copy, databaseFileName) });
    const database = new SqlSubmissionStore(driver, signatureCodec);
    for (let round = 0; round < 2; round++) {
      expect(await replayJournal(join(copy, databaseFileName), driver)).toBe(2);
      expect(await database.find("a_1", ["one"])).toEqual([landed]);
      expect(await stored(database)).toEqual(["two"]);
    }
    await store.close();
  });

  it("happens when a command or a service opens the folder of a killed service", async () => {
    const { folder, store } = await opened();
    await store.add([recordOf("one")]);
    const open = (directory: string, isService: boolean) =>
      Store.open({
        directory,
        isService,
        log: silent,
        clock: new ManualClock(),
        durableSubmissions: false,
      });
    for (const isService of [false, true]) {
      const copy = afterKill(folder);
      const after = files.closing(await open(copy, isService));
      expect(await after.submissions.open()).toEqual([recordOf("one")]);
      expect(readJournal(join(copy, databaseFileName)).length).toBe(isService ? 0 : 1);
    }
    await store.close();
  });
});

describe("an export", () => {
  it("contains what a killed service left", async () => {
    const { folder, store } = await opened();
    await store.add([recordOf("one")]);
    const copy = afterKill(folder);
    await replayLeftJournal(copy, { clock: systemClock, log: silent });
    const driver = await files.driver({ path: join(copy, databaseFileName) });
    expect(await stored(new SqlSubmissionStore(driver, signatureCodec))).toEqual(["one"]);
    await store.close();
  });
});

describe("a failure", () => {
  it("of the database keeps the rows, and new submissions wait for the database", async () => {
    const { clock, driver, store, failures, database, folder } = await opened();
    await store.add([recordOf("one")]);
    await driver.query("PRAGMA query_only = ON", []);
    await clock.advance(2000);
    await until(() => failures.length > 0);
    expect(store.isReady).toBe(false);
    await expect(store.add([recordOf("two")])).rejects.toMatchObject({ reason: "store_failed" });
    const after = await opened(afterKill(folder));
    expect(await stored(after.database)).toEqual(["one"]);
    await after.store.close();
    await driver.query("PRAGMA query_only = OFF", []);
    await clock.advance(1000);
    await until(() => store.isReady);
    expect(await stored(database)).toEqual(["one"]);
    expect(await store.add([recordOf("three")])).toBe(true);
    await store.close();
    expect(await stored(database)).toEqual(["one", "three"]);
  });

  it("of the journal is reported, and the submission waits for its commit", async () => {
    const { path, store, failures, database } = await opened();
    await store.add([recordOf("one")]);
    const setLimit = (bytes: number | "unlimited"): void => {
      execFileSync("prlimit", ["--pid", String(process.pid), `--fsize=${bytes}:unlimited`]);
    };
    const wire = new Uint8Array(60_000);
    for (let i = 0; i < 10; i++) await store.add([recordOf(`filler${i}`, { wire })]);
    setLimit(600_000); // the database's log is shorter
    try {
      expect(await store.add([recordOf("two", { wire })])).toBe(true);
    } finally {
      setLimit("unlimited");
    }
    expect(failures).toHaveLength(1);
    expect(await stored(database)).toEqual(["two"]);
    expect(readJournal(path)[0]?.rows).toHaveLength(11);
    expect(await store.add([recordOf("two")])).toBe(false); // the database has it
    await store.close();
  });

  it.each(["full", "short"] as const)(
    "of the journal lets all of a group wait for their commits: %s disk",
    async (disk) => {
      const calls = new CountedCalls();
      const { folder, store, failures, database } = await opened(files.folder(), calls);
      calls.disk = disk;
      const names = ["one", "two", "three"];
      const added = await Promise.all(names.map((name) => store.add([recordOf(name)])));
      expect(added).toEqual([true, true, true]);
      expect(failures).toHaveLength(1);
      expect(store.waiting).toBe(0);
      expect(await stored(database)).toEqual(names.toSorted());
      calls.disk = "free";
      expect(await store.add([recordOf("four")])).toBe(true);
      expect(store.waiting).toBe(1);
      const after = await opened(afterKill(folder));
      expect(await stored(after.database)).toEqual(["four", ...names].toSorted());
      await after.store.close();
      await store.close();
    },
  );

  it("of the journal at the end keeps what waits for its group", async () => {
    const calls = new CountedCalls();
    const { store, failures, database } = await opened(files.folder(), calls);
    calls.disk = "full";
    const added = ["one", "two"].map((name) => store.add([recordOf(name)]));
    await store.close();
    expect(await Promise.all(added)).toEqual([true, true]);
    expect(failures).toHaveLength(1);
    expect(await stored(database)).toEqual(["one", "two"]);
  });

  it("of a row is that of its submission alone", async () => {
    const { store, database } = await opened();
    const wrong = recordOf("wrong");
    Object.defineProperty(wrong, "events", { get: () => expect.fail("unreadable") });
    const added = [store.add([recordOf("one")]), store.add([wrong]), store.add([recordOf("two")])];
    expect((await Promise.allSettled(added)).map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "fulfilled",
    ]);
    await store.close();
    expect(await stored(database)).toEqual(["one", "two"]);
  });

  it("of space in memory does not happen: beyond the limit submissions wait for their commit", async () => {
    const { store, database } = await opened();
    const names = Array.from({ length: waitingMax }, (_, i) => `s${i}`);
    await store.add(names.map((name) => recordOf(name)));
    expect(store.waiting).toBe(waitingMax);
    expect(await store.add([recordOf("last")])).toBe(true);
    expect(await stored(database)).toEqual(["last"]);
    await store.close();
    expect(await stored(database)).toHaveLength(waitingMax + 1);
  });
});
