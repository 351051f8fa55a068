// Submission journal: two files beside an SQLite database with the submissions that were acknowledged
// before their commit.
//
// Written by journaled-submission-store.ts, read by Store.open after a kill. A write call passes rows to the
// kernel, as a commit without a disk sync does. New rows are appended to the active file while the database
// takes the rows of the other one, so each file is cleared within seconds.
// A file starts with a line that names its columns; frames follow: length, CRC-32, rows.

import {
  closeSync,
  fchmodSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { crc32 } from "node:zlib";
import { quote } from "../../../core/errors.ts";
import { isObject } from "../../../core/values.ts";
import type { SqlValue } from "../driver.ts";
import { decodeRows, FrameWriter, frameHeadBytes } from "./frames.ts";

const formatVersion = 1;
const names = ["1", "2"] as const;

/** The rows of one file that a process left behind. */
export interface JournalRows {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly SqlValue[])[];
}

function pathOf(databasePath: string, name: string): string {
  return `${databasePath}-submissions-${name}`;
}

/** Removes the files of a database that does not exist any more. */
export function forgetJournal(databasePath: string): void {
  for (const name of names) rmSync(pathOf(databasePath, name), { force: true });
}

function headOf(columns: readonly string[]): Buffer {
  return Buffer.from(`${JSON.stringify({ version: formatVersion, columns })}\n`);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** Throws for a file that another version of the program wrote: its rows must not be lost. */
function columnsOf(path: string, line: string): string[] {
  const fields = parsed(line);
  const columns: unknown =
    isObject(fields) && fields["version"] === formatVersion ? fields["columns"] : null;
  const isName = (column: unknown): column is string =>
    typeof column === "string" && /^[a-z_]+$/.test(column);
  if (Array.isArray(columns) && columns.every(isName)) return columns;
  throw new Error(
    `${path}: expected a journal of format ${formatVersion}, got ${quote(line)}; start the version that ` +
      "wrote it once, or move the file away to lose its submissions",
  );
}

/** The rows of whole frames: a frame that the process did not finish was not acknowledged. */
function rowsOf(bytes: Buffer, begin: number): SqlValue[][] {
  const rows: SqlValue[][] = [];
  let at = begin;
  while (at + frameHeadBytes <= bytes.length) {
    const end = at + frameHeadBytes + bytes.readUInt32LE(at);
    if (end > bytes.length) break;
    const payload = bytes.subarray(at + frameHeadBytes, end);
    if (crc32(payload) !== bytes.readUInt32LE(at + 4)) break;
    rows.push(...decodeRows(payload));
    at = end;
  }
  return rows;
}

/** The calls of the system that write a file; the tests' fail. */
export interface JournalCalls {
  /** Returns how many bytes were written. */
  write(fd: number, bytes: Uint8Array): number;
  truncate(fd: number, size: number): void;
}

const systemCalls: JournalCalls = { write: writeSync, truncate: ftruncateSync };

/** The rows that an earlier process left, in no particular order. Throws the errors of the files. */
export function readJournal(databasePath: string): JournalRows[] {
  const found: JournalRows[] = [];
  for (const name of names) {
    let bytes: Buffer;
    try {
      bytes = readFileSync(pathOf(databasePath, name));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") continue;
      throw error;
    }
    const headEnd = bytes.indexOf("\n");
    if (headEnd < 0) continue; // the process ended inside the first line, so there are no rows
    const columns = columnsOf(pathOf(databasePath, name), bytes.toString("utf8", 0, headEnd));
    const rows = rowsOf(bytes, headEnd + 1);
    if (rows.length > 0) found.push({ columns, rows });
  }
  return found;
}

/** One file, open for appending. */
class JournalFile {
  readonly #fd: number;
  readonly #path: string;
  readonly #calls: JournalCalls;
  readonly #headBytes: number;
  #size: number;
  /** Set when bytes of an unfinished frame may be at the end: rows behind them could not be read. */
  #isBroken = false;

  constructor(path: string, head: Buffer, calls: JournalCalls) {
    this.#calls = calls;
    this.#path = path;
    this.#fd = openSync(path, "a", 0o600);
    try {
      fchmodSync(this.#fd, 0o600);
      calls.truncate(this.#fd, 0);
      calls.write(this.#fd, head);
      this.#size = fstatSync(this.#fd).size;
      if (this.#size !== head.length)
        throw new Error("expected space for the first line, got none");
    } catch (error) {
      closeSync(this.#fd);
      throw error;
    }
    this.#headBytes = head.length;
  }

  get isEmpty(): boolean {
    return this.#size === this.#headBytes && !this.#isBroken;
  }

  /** Throws if not all bytes could be written; then none count. */
  append(frame: Uint8Array): void {
    if (this.#isBroken) throw new Error("an earlier write left an unfinished frame");
    if (fstatSync(this.#fd).nlink === 0)
      throw new Error(`${this.#path} was removed while the service runs; restart the service`);
    this.#isBroken = true;
    let written = 0;
    try {
      written = this.#calls.write(this.#fd, frame);
    } catch (error) {
      this.#cutTo(this.#size);
      throw error;
    }
    if (written !== frame.length) {
      this.#cutTo(this.#size);
      throw new Error(`expected ${frame.length} bytes to be written, got ${written}`);
    }
    this.#size += written;
    this.#isBroken = false;
  }

  clear(): void {
    this.#cutTo(this.#headBytes);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #cutTo(size: number): void {
    this.#calls.truncate(this.#fd, size);
    this.#size = size;
    this.#isBroken = false;
  }
}

export class SubmissionJournal {
  readonly #frame = new FrameWriter();
  #active: JournalFile;
  #other: JournalFile;

  /** Clears the files: read them before. Throws the errors of the files. */
  constructor(databasePath: string, columns: readonly string[], calls = systemCalls) {
    const head = headOf(columns);
    this.#active = new JournalFile(pathOf(databasePath, names[0]), head, calls);
    try {
      this.#other = new JournalFile(pathOf(databasePath, names[1]), head, calls);
    } catch (error) {
      this.#active.close();
      throw error;
    }
  }

  /** Whether neither file has rows. */
  get isEmpty(): boolean {
    return this.#active.isEmpty && this.#other.isEmpty;
  }

  /**
   * The rows survive a kill when it returns: all of them or, if it throws, none. Returns the bytes of each
   * row, which are valid until the next call.
   */
  append(rows: readonly (readonly SqlValue[])[]): readonly Uint8Array[] {
    const frame = this.#frame.encode(rows);
    this.#active.append(frame.bytes);
    return frame.rows;
  }

  /** Makes the other file active. False while it still has rows. */
  turn(): boolean {
    if (!this.#other.isEmpty) return false;
    [this.#active, this.#other] = [this.#other, this.#active];
    return true;
  }

  /** The database has every row that was appended before the last `turn`. */
  clearOther(): void {
    this.#other.clear();
  }

  /** The database has every row. */
  clear(): void {
    this.#active.clear();
    this.#other.clear();
  }

  close(): void {
    this.#active.close();
    this.#other.close();
  }
}
