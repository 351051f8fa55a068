// Imports an export file into an empty database. It reads the file twice: once to check every byte, once
// to load the rows.
//
// Called by the command import. Nothing is changed before the file is known to be complete and valid. If
// the database rejects a row (a duplicate key), it is emptied again. After a kill, the next import
// empties it (database-loader.ts).

import { createHash } from "node:crypto";
import { closeSync } from "node:fs";
import { open } from "node:fs/promises";
import { messageOf, quote, reworded, ShredwayError } from "../../../core/errors.ts";
import { openRegularFile } from "../../../core/files.ts";
import { isRefusedChange, type Row, type SqlDriver } from "../driver.ts";
import { migrate, migrations } from "../migrations.ts";
import { DatabaseLoader } from "./database-loader.ts";
import {
  checkTable,
  exportStart,
  type Head,
  headOf,
  type Line,
  LineError,
  parseLine,
  rowOf,
  type Tail,
  tailOf,
} from "./format.ts";
import { type Table, tablesAt } from "./tables.ts";

/** Far above the longest row; limits the read of an invalid file. */
const lineBytesMax = 64 * 1024 * 1024;
const chunkBytes = 1024 * 1024;
/** Rows of one transaction. */
const pageRows = 1000;

interface NumberedLine {
  readonly number: number;
  /** Without the line break. */
  readonly bytes: Uint8Array;
}

function refuse(path: string, number: number, message: string): ShredwayError {
  return new ShredwayError("store_failed", `${path}, line ${number}: ${message}`);
}

async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  closeSync(openRegularFile(path)); // a regular file, which cannot block
  const file = await open(path);
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes));
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Throws ShredwayError "store_failed" for the first bytes of another kind of file. */
function checkFormat(path: string, first: Buffer): void {
  const begin = first.toString("latin1", 0, exportStart.length);
  if (exportStart.startsWith(begin)) return;
  throw refuse(
    path,
    1,
    `the file is not an export of Shredway: it begins with ${quote(begin)}, expected ${exportStart}; ` +
      `import a file that "shredway export" wrote`,
  );
}

async function* linesOf(path: string): AsyncGenerator<NumberedLine[]> {
  let rest: Buffer = Buffer.alloc(0);
  let number = 1;
  for await (const chunk of chunksOf(path)) {
    if (number === 1 && rest.length === 0) checkFormat(path, chunk);
    const all = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    const lines: NumberedLine[] = [];
    let begin = 0;
    for (let end = all.indexOf(10); end >= 0; end = all.indexOf(10, begin)) {
      lines.push({ number: number++, bytes: all.subarray(begin, end) });
      begin = end + 1;
    }
    rest = all.subarray(begin);
    if (rest.length > lineBytesMax) {
      throw refuse(path, number, `expected at most ${lineBytesMax} bytes, got more`);
    }
    yield lines;
  }
  if (rest.length > 0) throw refuse(path, number, "the file ends within a line");
}

interface ImportedRow {
  readonly table: Table;
  readonly row: Row;
  readonly number: number;
}

/** The state of a file's lines: their order and completeness. */
class Reading {
  head: Head | undefined;
  tail: Tail | undefined;
  readonly counts = new Map<string, number>();
  readonly #hash = createHash("sha256");
  #tables: readonly Table[] = [];
  #at = -1;

  /** The row of the line, if it is a row. Throws LineError, ShredwayError "store_newer". */
  take(bytes: Uint8Array): { readonly table: Table; readonly row: Row } | undefined {
    if (this.tail) throw new LineError("found a line after the end; expected the end of the file");
    const line = parseLine(bytes);
    const found = this.#takeLine(line);
    this.#hash.update(bytes).update("\n");
    return found;
  }

  #takeLine(line: Line): { readonly table: Table; readonly row: Row } | undefined {
    if (!this.head) {
      this.head = headOf(line, migrations.length);
      this.#tables = tablesAt(this.head.schemaVersion);
      return undefined;
    }
    const table = this.#tables[this.#at];
    if (Array.isArray(line)) {
      if (!table) throw new LineError("expected the beginning of a table, got a row");
      this.counts.set(table.name, (this.counts.get(table.name) ?? 0) + 1);
      return { table, row: rowOf(line, table) };
    }
    if ("end" in line) {
      this.#end(tailOf(line));
    } else {
      const next = this.#tables[++this.#at];
      checkTable(line, next);
      if (next) this.counts.set(next.name, 0);
    }
    return undefined;
  }

  #end(tail: Tail): void {
    const missing = this.#tables[this.#at + 1];
    if (missing) throw new LineError(`expected the table ${missing.name}, got the end`);
    const sha256 = this.#hash.copy().digest("hex");
    if (sha256 !== tail.sha256) {
      throw new LineError(
        `wrong checksum ${sha256}; expected SHA-256 ${tail.sha256}: the file was modified`,
      );
    }
    for (const [name, count] of this.counts) {
      if (tail.rows.get(name) === count) continue;
      throw new LineError(`expected ${tail.rows.get(name) ?? "no"} rows of ${name}, got ${count}`);
    }
    if (tail.rows.size !== this.counts.size)
      throw new LineError("expected counts of these tables alone");
    this.tail = tail;
  }
}

/** Rows in the order of the file, in chunks. Throws ShredwayError. */
async function* rowsOf(path: string, reading: Reading): AsyncGenerator<ImportedRow[]> {
  let last = 0;
  for await (const lines of linesOf(path)) {
    const rows: ImportedRow[] = [];
    for (const { number, bytes } of lines) {
      last = number;
      try {
        const found = reading.take(bytes);
        if (found) rows.push({ ...found, number });
      } catch (error) {
        if (error instanceof LineError) throw refuse(path, number, error.message);
        if (error instanceof ShredwayError) {
          throw reworded(error, `${path}, line ${number}: ${error.message}`);
        }
        throw error;
      }
    }
    if (rows.length > 0) yield rows;
  }
  if (!reading.tail) throw refuse(path, last + 1, "the file ends before the end of the export");
}

interface CheckedExport {
  readonly head: Head;
  readonly tail: Tail;
}

/** Reads the file once. Throws ShredwayError: "store_failed" with the line, "store_newer". */
export async function checkExport(
  path: string,
  onProgress: (rows: number) => void = () => {},
): Promise<CheckedExport> {
  const reading = new Reading();
  let count = 0;
  try {
    for await (const rows of rowsOf(path, reading)) {
      count += rows.length;
      onProgress(count);
    }
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    throw new ShredwayError("store_failed", `${path}: ${messageOf(cause)}`, { cause });
  }
  const { head, tail } = reading;
  if (head && tail) return { head, tail };
  throw refuse(path, 1, "expected an export, got none");
}

interface ImportOptions {
  readonly path: string;
  readonly checked: CheckedExport;
  readonly driver: SqlDriver;
  readonly blobType: string;
  readonly onProgress?: (rows: number) => void;
}

interface ImportSummary {
  /** Rows of an interrupted import were removed first. */
  readonly wasInterrupted: boolean;
}

/**
 * Fills the empty database of `driver`, and migrates it to the newest schema. Throws ShredwayError
 * "store_failed", "store_newer"; then the database is empty again, or marked as partly filled if it is
 * unreachable.
 */
export async function importDatabase(options: ImportOptions): Promise<ImportSummary> {
  const { path, checked, driver, blobType, onProgress } = options;
  const { schemaVersion } = checked.head;
  const loader = await DatabaseLoader.begin({ driver, blobType, version: schemaVersion });
  try {
    const reading = new Reading();
    let count = 0;
    for await (const rows of rowsOf(path, reading)) {
      for (const page of pagesOfOneTable(rows)) {
        await add(loader, path, page);
        count += page.length;
        onProgress?.(count);
      }
    }
    if (reading.tail?.sha256 !== checked.tail.sha256) {
      throw new ShredwayError("store_failed", `${path}: the file changed after it was checked`);
    }
  } catch (error) {
    await loader.abandon().catch(() => {}); // the mark stays in this case
    throw error;
  }
  await loader.finish();
  await migrate(driver, blobType);
  return { wasInterrupted: loader.wasInterrupted };
}

function* pagesOfOneTable(rows: readonly ImportedRow[]): Generator<readonly ImportedRow[]> {
  for (let at = 0; at < rows.length; ) {
    const table = rows[at]?.table;
    let end = at + 1;
    while (end < rows.length && end - at < pageRows && rows[end]?.table === table) end++;
    yield rows.slice(at, end);
    at = end;
  }
}

async function add(
  loader: DatabaseLoader,
  path: string,
  page: readonly ImportedRow[],
): Promise<void> {
  const [first] = page;
  if (!first) return;
  try {
    await loader.add(
      first.table,
      page.map(({ row }) => row),
    );
  } catch (refused) {
    if (!isRefusedChange(refused)) throw refused; // the row may be duplicated
    // One by one, to find the row.
    for (const { table, row, number } of page) {
      try {
        await loader.add(table, [row]);
      } catch (error) {
        throw refuse(path, number, `a row of ${table.name}: ${messageOf(error)}`);
      }
    }
  }
}
