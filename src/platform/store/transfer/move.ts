// An SQLite file's move to PostgreSQL while the service goes on with it.
//
// Called by store.ts. Everything is copied, then what changed meanwhile, again and again until little is
// left; then changes are held back for a moment, the rest is copied, the file gets another name, and the
// stores go on with the other database. That renaming is the one moment in which it is decided: before,
// the file holds, whatever PostgreSQL has in part (it is marked, transfer-mark.ts); after, PostgreSQL does.

import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../core/clock.ts";
import { messageOf, ShredwayError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/log.ts";
import { databaseFileName } from "../data-folder.ts";
import { integerAt, type SqlDriver } from "../driver.ts";
import { migrations, versionOf } from "../migrations.ts";
import type { Hold, MovableDriver } from "../movable-driver.ts";
import { openSqliteSnapshot, pagesOf, SqliteConnection } from "../snapshot.ts";
import { ChangeList } from "./changes.ts";
import { DatabaseLoader } from "./database-loader.ts";
import { isMark, versionIn } from "./mark.ts";
import { movedPath, movingPath, type OpenDatabase } from "./place.ts";

/** Changes wait at most so long; then the move is taken back. */
const holdMsMax = 3000;
/** For the file's lock, behind a command that writes. */
const lockMs = 500;
/** Little enough to hold changes back for it. */
const fewRows = 500;
const roundsMax = 20;
/** Longer than others wait for the file's lock: what they ask for ends in an error, not in the old file. */
const keptLockedMs = 6000;
const finishAgainMs = 1000;

export interface MoveOptions {
  /** Over `source`. */
  readonly movable: MovableDriver;
  readonly source: SqlDriver;
  readonly directory: string;
  readonly openTarget: () => Promise<OpenDatabase>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes it back, while it is not decided; ends the waiting after it. */
  readonly signal: AbortSignal;
  /** Default: 3 s. */
  readonly holdMs?: number;
}

export interface MoveSummary {
  readonly rows: number;
  /** How long changes waited. */
  readonly heldMs: number;
  /** The file, under its new name. */
  readonly movedPath: string;
  readonly warnings: readonly string[];
  /** Settles when nothing is left to do. */
  readonly rest: Promise<void>;
}

const note = `The database beside this file is being moved to PostgreSQL, or was to be: it holds until it has
another name. Remove this file to leave it behind (docs/backup.md).
`;

function failed(message: string): ShredwayError {
  return new ShredwayError("store_failed", `the move to PostgreSQL: ${message}`);
}

function syncFolder(directory: string): void {
  const folder = openSync(directory, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** At the start, where PostgreSQL is named: what a killed service had decided and not yet told it. */
export async function finishMove(driver: SqlDriver, directory: string): Promise<void> {
  const mark = await versionOf(driver).catch(() => 0);
  if (!isMark(mark) || !existsSync(movedPath(directory, mark))) return;
  const sql = "UPDATE schema_version SET version = $1 WHERE version = $2";
  const params = [BigInt(versionIn(mark)), BigInt(mark)];
  await driver.transaction([{ sql, params }], "durable");
  rmSync(movingPath(directory), { force: true });
}

class Move {
  readonly #options: MoveOptions;
  readonly #target: OpenDatabase;
  readonly #filling: DatabaseLoader;
  readonly #endWatch: () => void;
  #changes: ChangeList | undefined;
  #hold: Hold | undefined;
  #lock: SqliteConnection | undefined;
  #wasForeign = false;

  constructor(options: MoveOptions, target: OpenDatabase, filling: DatabaseLoader) {
    this.#options = options;
    this.#target = target;
    this.#filling = filling;
    this.#endWatch = options.source.onForeignChange(() => {
      this.#wasForeign = true;
    });
  }

  async run(): Promise<MoveSummary> {
    const { source } = this.#options;
    this.#changes = await ChangeList.begin(source, this.#filling.tables);
    const rows = await this.#copy();
    for (let round = 1; ; round++) {
      this.#checkGoingOn();
      if ((await this.#changes.carry(this.#filling)) <= fewRows) break;
      if (round === roundsMax) throw failed("expected fewer changes, got more than can be carried");
    }
    const heldMs = await this.#exchange(this.#changes);
    const { warnings } = this.#target;
    return { rows, heldMs, movedPath: this.#movedPath, warnings, rest: this.#finish() };
  }

  /** As if nothing had been; what cannot be undone in PostgreSQL stays marked. */
  async takeBack(): Promise<void> {
    this.#endWatch();
    await this.#lock?.end();
    this.#hold?.release();
    const { log } = this.#options;
    const told = (error: unknown): void => log.debug(`after a move: ${messageOf(error)}`);
    await this.#changes?.end().catch(told);
    await this.#filling.abandon().catch(told);
    await this.#target.driver.close();
  }

  get #path(): string {
    return join(this.#options.directory, databaseFileName);
  }

  get #movedPath(): string {
    return movedPath(this.#options.directory, this.#filling.mark);
  }

  #checkGoingOn(): void {
    if (this.#options.signal.aborted) throw failed("expected to go on, got the end of the service");
    if (!this.#wasForeign) return;
    throw failed("expected a file that nobody else changes, got a change by a command; try again");
  }

  async #copy(): Promise<number> {
    const snapshot = await openSqliteSnapshot(this.#path);
    let rows = 0;
    try {
      for (const table of this.#filling.tables) {
        for await (const page of pagesOf(snapshot, table)) {
          this.#checkGoingOn();
          await this.#filling.add(table, page);
          rows += page.length;
        }
      }
      return rows;
    } finally {
      await snapshot.close();
    }
  }

  /** The last part: how long it took, in milliseconds. */
  async #exchange(changes: ChangeList): Promise<number> {
    const { movable, clock, log, directory, holdMs = holdMsMax } = this.#options;
    // Opened before, for that takes a while.
    const lock = await SqliteConnection.open({ path: this.#path, busyMs: lockMs, kind: "writer" });
    this.#lock = lock;
    await this.#options.source.query("PRAGMA wal_checkpoint(PASSIVE)", []); // most of it, ahead
    const beganNs = clock.monotonicNs();
    // The file's writer must not meet the lock any more when it goes on.
    const hold = await movable.hold(holdMs, () => void lock.end());
    this.#hold = hold;
    await this.#lockFile(lock, hold);
    await changes.carry(this.#filling, true); // with its answers comes whether others changed anything
    this.#checkGoingOn();
    await this.#compareCounts();
    this.#checkGoingOn();
    this.#checkHeld(hold);
    renameSync(this.#path, this.#movedPath);
    try {
      syncFolder(directory);
    } catch (error) {
      log.error(`${directory}: could not be brought to the disk: ${messageOf(error)}`);
    }
    hold.exchange(this.#target.driver);
    return Number((clock.monotonicNs() - beganNs) / 1_000_000n);
  }

  #checkHeld(hold: Hold): void {
    const { holdMs = holdMsMax } = this.#options;
    if (hold.isOver) throw failed(`expected to be done in ${holdMs} ms, got no end`);
  }

  /** Everything is in the one file, and nobody else writes. */
  async #lockFile(lock: SqliteConnection, hold: Hold): Promise<void> {
    for (;;) {
      // By the writer's connection: another one's would look to it like a change by others.
      await this.#options.source.query("PRAGMA wal_checkpoint(TRUNCATE)", []);
      this.#checkHeld(hold);
      await lock.query("BEGIN IMMEDIATE", []);
      if ((statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
      await lock.query("ROLLBACK", []); // others were quicker
    }
  }

  async #compareCounts(): Promise<void> {
    const countOf = async (driver: SqlDriver, name: string): Promise<bigint> => {
      const [row = []] = await driver.query(`SELECT COUNT(*) FROM ${name}`, []);
      return integerAt(row, 0);
    };
    const { source } = this.#options;
    const counting = this.#filling.tables.map(async ({ name }) => {
      const both = [countOf(source, name), countOf(this.#target.driver, name)];
      const [here, there] = await Promise.all(both);
      if (here !== there) throw failed(`expected ${here} rows of ${name}, got ${there}`);
    });
    await Promise.all(counting);
  }

  /** It is decided: whatever fails is tried again, here or at the next start. */
  async #finish(): Promise<void> {
    const { source, clock, log, signal, directory } = this.#options;
    this.#endWatch();
    for (;;) {
      try {
        await this.#filling.finish();
        rmSync(movingPath(directory), { force: true });
        break;
      } catch (error) {
        log.warn(`the move to PostgreSQL is done, but for its mark: ${messageOf(error)}`);
        if (signal.aborted) break;
        await clock.sleep(finishAgainMs, signal);
      }
    }
    await source.close();
    await clock.sleep(keptLockedMs, signal);
    await this.#lock?.close();
  }
}

/**
 * Throws ShredwayError "store_failed" when it was taken back: then everything goes on as before, and it
 * may be tried again.
 */
export async function moveToPostgres(options: MoveOptions): Promise<MoveSummary> {
  const { directory, log } = options;
  writeFileSync(movingPath(directory), note, { mode: 0o600 });
  syncFolder(directory);
  const target = await options.openTarget();
  let filling: DatabaseLoader;
  try {
    const { driver, blobType } = target;
    filling = await DatabaseLoader.begin({ driver, blobType, version: migrations.length });
  } catch (error) {
    await target.driver.close();
    throw error;
  }
  if (filling.wasInterrupted) {
    log.warn(
      "PostgreSQL had the part of a database that an interrupted import or move left: removed",
    );
  }
  await options.source.query("SELECT 1", []); // what others changed before is told before
  const move = new Move(options, target, filling);
  try {
    return await move.run();
  } catch (error) {
    await move.takeBack();
    throw error;
  }
}
