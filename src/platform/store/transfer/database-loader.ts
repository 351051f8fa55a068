// Loads rows from another database into an empty one, all or none.
//
// Used by import.ts. The database is marked first (mark.ts). It is then filled in pages, each in a
// transaction that checks the mark, and is complete when the mark is removed. Any interruption, even a
// kill, leaves a marked database, which the next load empties and fills again.

import { ShredwayError } from "../../../core/errors.ts";
import type { Row, SqlDriver, Statement } from "../driver.ts";
import { checkVersion, migrate, migrations, statementsOf, versionOf } from "../migrations.ts";
import { isMark, newMark, versionIn } from "./mark.ts";
import { insertionsOf, type Table, tablesAt } from "./tables.ts";

/** Rows that are removed at a time. */
const removeMax = 5000;

function failed(message: string): ShredwayError {
  return new ShredwayError("store_failed", `the store: ${message}`);
}

/** The version does not change: this checks it, and locks it until the transaction ends. */
function askFor(mark: number): Statement {
  const sql = "UPDATE schema_version SET version = $1 WHERE version = $1";
  return { sql, params: [BigInt(mark)], mustChange: true };
}

function change(from: number, to: number, condition = ""): Statement {
  const sql = `UPDATE schema_version SET version = $1 WHERE version = $2${condition}`;
  return { sql, params: [BigInt(to), BigInt(from)], mustChange: true };
}

async function tablesWithRows(driver: SqlDriver, tables: readonly Table[]): Promise<string[]> {
  const found = await Promise.all(
    tables.map(({ name }) => driver.query(`SELECT 1 FROM ${name} LIMIT 1`, [])),
  );
  return tables.filter((_, i) => (found[i]?.length ?? 0) > 0).map(({ name }) => name);
}

async function versionOrNone(driver: SqlDriver): Promise<number | null> {
  try {
    return await versionOf(driver);
  } catch {
    return null; // unreachable or without tables: the next call reports which
  }
}

interface DatabaseLoaderOptions {
  readonly driver: SqlDriver;
  readonly blobType: string;
  /** Schema version of the rows. */
  readonly version: number;
}

export class DatabaseLoader {
  /** In the order in which they are filled. */
  readonly tables: readonly Table[];
  /** An earlier load was interrupted; its rows were removed. */
  readonly wasInterrupted: boolean;
  readonly #driver: SqlDriver;
  readonly #version: number;
  /** The mark of this load: the version of the database until the end. */
  readonly #mark: number;

  /**
   * Throws ShredwayError: "store_newer" for a database of a newer version, "store_failed" for one that
   * is not empty. Then nothing was changed.
   */
  static async begin({
    driver,
    blobType,
    version,
  }: DatabaseLoaderOptions): Promise<DatabaseLoader> {
    if ((await versionOrNone(driver)) === null) {
      await migrate(driver, blobType, migrations.slice(0, version));
    }
    const found = await versionOf(driver);
    const wasInterrupted = isMark(found);
    const schema = wasInterrupted ? versionIn(found) : found;
    checkVersion(schema);
    const tables = tablesAt(schema);
    const mark = newMark(schema);
    if (!wasInterrupted) {
      const full = await tablesWithRows(driver, tables);
      if (full.length > 0) {
        throw failed(`expected an empty database, got one with rows in ${full.join(", ")}`);
      }
    }
    const none = wasInterrupted
      ? []
      : tables.map(({ name }) => ` AND NOT EXISTS (SELECT 1 FROM ${name})`);
    const marking = [change(found, mark, none.join(""))];
    if (!(await driver.transaction(marking, "durable")).isCommitted) {
      throw failed("another process is filling this database; stop it and retry");
    }
    const loader = new DatabaseLoader(driver, schema, mark, wasInterrupted);
    if (wasInterrupted) await loader.#empty();
    return schema === version ? loader : loader.#rebuilt(blobType, version);
  }

  private constructor(driver: SqlDriver, version: number, mark: number, wasInterrupted: boolean) {
    this.#driver = driver;
    this.#version = version;
    this.#mark = mark;
    this.tables = tablesAt(version);
    this.wasInterrupted = wasInterrupted;
  }

  /** Stores all of them, or none. Throws ShredwayError "store_failed". */
  async add(table: Table, rows: readonly Row[]): Promise<void> {
    await this.#run(insertionsOf(table, rows));
  }

  /**
   * Returns the changes of each. One durable transaction, because a server must not lose acknowledged
   * rows.
   */
  async #run(statements: readonly Statement[]): Promise<readonly number[]> {
    const statementsWithMark = [askFor(this.#mark), ...statements];
    const { isCommitted, changes } = await this.#driver.transaction(statementsWithMark, "durable");
    if (!isCommitted) throw failed("another process is filling this database; stop it and retry");
    return changes.slice(1);
  }

  /** Removes the mark; the database is then complete. */
  async finish(): Promise<void> {
    const done = [change(this.#mark, this.#version)];
    const { isCommitted } = await this.#driver.transaction(done, "durable");
    if (isCommitted || (await versionOf(this.#driver)) === this.#version) return;
    throw failed("another process is filling this database; stop it and retry");
  }

  /** Leaves an empty database. */
  async abandon(): Promise<void> {
    await this.#empty();
    await this.finish();
  }

  async #empty(): Promise<void> {
    for (const { name, key } of this.tables.toReversed()) {
      const columns = key.join(", ");
      const slice = `SELECT ${columns} FROM ${name} LIMIT ${removeMax}`;
      const sql = `DELETE FROM ${name} WHERE (${columns}) IN (${slice})`;
      while ((await this.#run([{ sql, params: [] }]))[0] === removeMax);
    }
  }

  /** The same empty database with the tables of another version. */
  async #rebuilt(blobType: string, version: number): Promise<DatabaseLoader> {
    const mark = newMark(version);
    const drops = this.tables.toReversed().map(({ name }) => `DROP TABLE ${name}`);
    const statements = [
      change(this.#mark, mark),
      ...drops.map((sql) => ({ sql, params: [] })),
      ...migrations.slice(0, version).flatMap((step) => statementsOf(step, blobType)),
    ];
    const { isCommitted } = await this.#driver.transaction(statements, "durable");
    if (!isCommitted) throw failed("another process is filling this database; stop it and retry");
    return new DatabaseLoader(this.#driver, version, mark, this.wasInterrupted);
  }
}
