// The simulated disk: real SQLite on a real file, in this thread, with commits at simulated times.
//
// The driver sees the thread that it expects. A batch waits for the disk before it is committed. A crash loses
// what waits, or cuts the write of it at any byte; the next start recovers from the files as they are then.
// While the disk fails, commits fail, and the journal gets errors of the system or writes a part.

import { EventEmitter } from "node:events";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import type { Timer } from "../../src/core/clock.ts";
import type { SeededRandom } from "../../src/core/seeded-random.ts";
import {
  type Batch,
  type BatchItem,
  type BatchResult,
  decodeBatch,
  encodeBatch,
  type Failure,
  TextNumbers,
} from "../../src/platform/store/batch.ts";
import type { JournalCalls } from "../../src/platform/store/journal/submission-journal.ts";
import { SqliteDatabase, type SqliteOptions } from "../../src/platform/store/sqlite/database.ts";
import type { WorkerAnswer, WorkerRequest } from "../../src/platform/store/sqlite/worker.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import { tearJournals } from "./torn-journal.ts";

/**
 * full: no commit has space. pages: the database file cannot grow, and SQLite itself refuses what needs a page.
 * sync: the commit cannot be synchronized, and may be found after a crash.
 */
export const diskFailures = ["full", "pages", "sync"] as const;
export type DiskFailure = (typeof diskFailures)[number];

const commitNs = 500_000;
const answerNs = 50_000;
/** After the disk works again, the service has written everything within this time. */
const caughtUpMs = 5_000;
const unlimitedPages = 1_073_741_823;

const failures: Readonly<Record<Exclude<DiskFailure, "pages">, Failure>> = {
  full: { code: "SQLITE_FULL", message: "database or disk is full" },
  sync: { code: "SQLITE_IOERR_FSYNC", message: "disk I/O error" },
};

export class SimulatedDisk {
  readonly #time: SimulatedTime;
  readonly #root: string;
  #lives = 0;
  /** The files of the present life. */
  folder: string;
  readonly #threads = new Set<DiskThread>();
  /** The failures in progress, the newest last. */
  #failing: { readonly failure: DiskFailure; readonly random: SeededRandom }[] = [];
  #failsSinceMs: number | null = null;
  #silentUntilMs = Number.NEGATIVE_INFINITY;
  /** When the last failure ends, or ended. */
  failedUntilMs = 0;
  /** In addition to the usual duration of a commit. */
  delayNs = 0;

  /** `root`: an empty folder. */
  constructor(time: SimulatedTime, root: string) {
    this.#time = time;
    this.#root = root;
    this.folder = join(root, "0");
    mkdirSync(this.folder);
  }

  get databasePath(): string {
    return join(this.folder, "shredway.db");
  }

  /** For SqliteDriverOptions.start. */
  readonly start = (options: SqliteOptions): Worker => {
    const thread = new DiskThread(this.#time, options, {
      delayNs: () => commitNs + this.delayNs,
      failure: () => this.drawFailure(),
    });
    this.#threads.add(thread);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the driver uses these members only
    return thread as unknown as Worker;
  };

  readonly journalCalls: JournalCalls = {
    write: (fd, bytes) => {
      const random = this.#failing.at(-1)?.random;
      if (!random?.happens(0.7)) return writeSync(fd, bytes);
      if (random.happens(0.5)) throw systemError("ENOSPC");
      return writeSync(fd, bytes.subarray(0, random.below(bytes.length)));
    },
    truncate: (fd, size) => {
      if (this.#failing.at(-1)?.random.happens(0.3)) throw systemError("EIO");
      ftruncateSync(fd, size);
    },
  };

  /** Commits last longer for this time. */
  slow(delayMs: number, forMs: number): void {
    this.delayNs += delayMs * 1e6;
    this.#time.at(this.#time.nowNs + forMs * 1e6, () => {
      this.delayNs -= delayMs * 1e6;
    });
  }

  /** Commits fail for this time, each with a probability that `random` draws. */
  fail(failure: DiskFailure, forMs: number, random: SeededRandom): void {
    const failing = { failure, random };
    this.#failing.push(failing);
    this.#failFor(forMs);
    this.#time.at(this.#time.nowNs + forMs * 1e6, () => {
      this.#failing = this.#failing.filter((each) => each !== failing);
    });
  }

  /** The database does not answer for this time, and calls may fail, also those that only read. */
  interrupt(forMs: number): void {
    this.#failFor(forMs);
    this.#silentUntilMs = Math.max(this.#silentUntilMs, this.#time.nowMs + forMs);
  }

  /** Whether a call that only reads may report a failure now. */
  get wasSilentLately(): boolean {
    return this.#time.nowMs <= this.#silentUntilMs + caughtUpMs;
  }

  #failFor(forMs: number): void {
    if (this.workedBeforeMs === this.#time.nowMs) this.#failsSinceMs = this.#time.nowMs;
    this.failedUntilMs = Math.max(this.failedUntilMs, this.#time.nowMs + forMs);
  }

  /** Whether a call may report a failure now. */
  get hasFailedLately(): boolean {
    return this.workedBeforeMs < this.#time.nowMs || this.#failing.length > 0;
  }

  /** The service has written everything of the time before; without a failure: now. */
  get workedBeforeMs(): number {
    const { nowMs } = this.#time;
    const hasCaughtUp = nowMs > this.failedUntilMs + caughtUpMs;
    return hasCaughtUp ? nowMs : (this.#failsSinceMs ?? nowMs);
  }

  /** All processes are killed. */
  crash(random: SeededRandom): void {
    // Its connection stays open until the garbage collection, and must not change the files of the next life.
    const former = this.folder;
    this.folder = join(this.#root, `${++this.#lives}`);
    mkdirSync(this.folder);
    for (const file of readdirSync(former))
      if (!file.endsWith("-shm")) copyFileSync(join(former, file), join(this.folder, file));
    for (const thread of this.#threads) thread.leave(this.databasePath, random);
    tearJournals(this.databasePath, random);
    this.end();
    rmSync(former, { recursive: true });
  }

  /** The run is over. */
  end(): void {
    for (const thread of this.#threads) thread.kill();
    this.#threads.clear();
  }

  /** Drawn for each commit; null: it works. */
  drawFailure(): DiskFailure | null {
    const failing = this.#failing.at(-1);
    return failing?.random.happens(0.7) ? failing.failure : null;
  }
}

function systemError(code: string): Error {
  return Object.assign(new Error(`simulated ${code}`), { code });
}

/** 0 for a file that does not exist. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Empty for a file that does not exist. */
function bytesOf(path: string): Buffer {
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}

interface DiskState {
  readonly delayNs: () => number;
  /** Drawn for each commit; null: it works. */
  readonly failure: () => DiskFailure | null;
}

class DiskThread extends EventEmitter {
  readonly #time: SimulatedTime;
  readonly #disk: DiskState;
  readonly #path: string;
  readonly #waiting = new Set<Timer>();
  readonly #database: SqliteDatabase;
  /** The texts of the driver, and the numbers that the database has for them. */
  readonly #driverTexts: string[] = [];
  readonly #texts = new TextNumbers();
  /** The items of the batch that waits for the disk. */
  #underWay: readonly BatchItem[] | null = null;
  /** The transactions of the newest commit, if it failed to be synchronized. */
  #unsynchronized: readonly BatchItem[] = [];
  #isOver = false;

  constructor(time: SimulatedTime, options: SqliteOptions, disk: DiskState) {
    super();
    this.#time = time;
    this.#disk = disk;
    this.#path = options.path;
    this.#database = new SqliteDatabase(options);
    const foreignVersion = this.#database.foreignVersion();
    this.#later(answerNs, () => this.#answer({ kind: "opened", foreignVersion }));
  }

  postMessage(request: WorkerRequest): void {
    if (request.kind === "batch") this.#take(request.batch);
    else
      this.#later(this.#disk.delayNs(), () => {
        this.#close();
        this.#answer({ kind: "closed", failure: null });
        this.emit("exit", 0);
      });
  }

  #take(batch: Batch): void {
    this.#driverTexts.push(...batch.texts);
    const items = decodeBatch(batch).map(({ isRead, statements }) => ({
      isRead,
      statements: statements.map(({ text, params, mustChange }) => ({
        sql: this.#driverTexts[text] ?? "",
        params,
        mustChange,
      })),
    }));
    const { isDurable } = batch;
    this.#underWay = items;
    this.#later(this.#disk.delayNs(), () => {
      this.#underWay = null;
      const result = this.#commit(items, isDurable);
      this.#later(answerNs, () => this.#answer({ kind: "result", result }));
    });
  }

  #commit(items: readonly BatchItem[], isDurable: boolean): BatchResult {
    const writes = items.filter(({ isRead }) => !isRead);
    const failure = writes.length > 0 ? this.#disk.failure() : null;
    if (failure === null || failure === "pages") {
      if (writes.length > 0) this.#unsynchronized = [];
      if (failure === "pages") this.#limitPages(1); // SQLite takes the present size for it
      const result = this.#run(items, isDurable);
      if (failure === "pages") this.#limitPages(unlimitedPages);
      return result;
    }
    this.#unsynchronized = failure === "sync" ? writes : [];
    const { reads, foreignVersion } = this.#run(items.filter(({ isRead }) => isRead));
    return { reads, writes: writes.map(() => failures[failure]), foreignVersion };
  }

  #run(items: readonly BatchItem[], isDurable = false): BatchResult {
    return this.#database.run(encodeBatch(items, this.#texts, isDurable));
  }

  #limitPages(pages: number): void {
    const statements = [{ sql: `PRAGMA max_page_count = ${pages}`, params: [] }];
    this.#run([{ isRead: true, statements }]);
  }

  kill(): void {
    for (const timer of this.#waiting) timer.cancel();
    this.#waiting.clear();
    this.removeAllListeners();
    this.#close();
  }

  #close(): void {
    if (!this.#isOver) this.#database.close();
    this.#isOver = true;
  }

  /** Writes the files of `to` as a process leaves them that is killed, perhaps in a write. */
  leave(to: string, random: SeededRandom): void {
    const log = `${this.#path}-wal`;
    const commits = `${this.#path}-commits`;
    if (this.#unsynchronized.length > 0 && random.happens(0.5)) this.#run(this.#unsynchronized);
    const before = { log: sizeOf(log), commits: bytesOf(commits) };
    if (this.#underWay && random.happens(0.7)) this.#run(this.#underWay);
    const after = sizeOf(log);
    const end = before.log + random.below(after - before.log + 1);
    const rest = random.fillBytes(new Uint8Array(random.happens(0.3) ? random.below(5_000) : 0));
    if (existsSync(log)) copyFileSync(log, `${to}-wal`);
    else writeFileSync(`${to}-wal`, "");
    truncateSync(`${to}-wal`, end);
    appendFileSync(`${to}-wal`, rest);
    // It is written after the commit.
    if (end < after) writeFileSync(`${to}-commits`, before.commits);
    else writeFileSync(`${to}-commits`, bytesOf(commits));
  }

  #answer(answer: WorkerAnswer): void {
    this.emit("message", answer);
  }

  #later(delayNs: number, action: () => void): void {
    const timer = this.#time.at(this.#time.nowNs + delayNs, () => {
      this.#waiting.delete(timer);
      action();
    });
    this.#waiting.add(timer);
  }
}
