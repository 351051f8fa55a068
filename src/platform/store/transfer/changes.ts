// Which rows of an SQLite file changed while it was copied: triggers of this connection alone write it
// down, in memory; nothing in the file is other than before.
//
// Used by transfer-move.ts. What other processes change is not seen here: the file's driver tells that
// there was something.

import {
  integerOrNullAt,
  type Row,
  type SqlDriver,
  type SqlValue,
  type Statement,
} from "../driver.ts";
import type { DatabaseLoader } from "./database-loader.ts";
import { putting, removal, rowQuery, type Table } from "./tables.ts";

/** Keys whose rows are read, and written, at a time. */
const partMax = 500;

interface Part {
  readonly table: Table;
  readonly key: readonly SqlValue[];
  /** Undefined: it is gone. */
  readonly row: Row | undefined;
}

function listName({ name }: Table): string {
  return `moving_${name}`;
}

function triggersOf(table: Table): string[] {
  const { name, key } = table;
  const noting = (side: "OLD" | "NEW"): string =>
    `INSERT INTO ${listName(table)} VALUES (${key.map((column) => `${side}.${column}`).join(", ")});`;
  const events = {
    INSERT: noting("NEW"),
    UPDATE: `${noting("OLD")} ${noting("NEW")}`,
    DELETE: noting("OLD"),
  };
  return Object.entries(events).map(
    ([event, action]) =>
      `CREATE TEMP TRIGGER ${listName(table)}_${event} AFTER ${event} ON main.${name} BEGIN ${action} END`,
  );
}

export class ChangeList {
  readonly #driver: SqlDriver;
  readonly #tables: readonly Table[];

  /** From now on every change by `driver` is written down. Throws ShredwayError "store_failed". */
  static async begin(driver: SqlDriver, tables: readonly Table[]): Promise<ChangeList> {
    const texts = tables.flatMap((table) => [
      `CREATE TEMP TABLE ${listName(table)} (${table.key.join(", ")})`,
      ...triggersOf(table),
    ]);
    await driver.transaction(
      texts.map((sql) => ({ sql, params: [] })),
      "survives-kill",
    );
    return new ChangeList(driver, tables);
  }

  private constructor(driver: SqlDriver, tables: readonly Table[]) {
    this.#driver = driver;
    this.#tables = tables;
  }

  /**
   * Brings what changed since the last time into the other database. Resolves to how many rows.
   * `isLast`: nothing changes any more, and nothing may be written.
   */
  async carry(filling: DatabaseLoader, isLast = false): Promise<number> {
    // Asked for in one turn, so of one moment: what a row refers to changed not after it.
    const ends = await Promise.all(
      this.#tables.map((table) =>
        this.#driver.query(`SELECT MAX(rowid) FROM temp.${listName(table)}`, []),
      ),
    );
    const taken = this.#tables.map((table, i) => ({
      table,
      end: integerOrNullAt(ends[i]?.[0] ?? [null], 0) ?? 0n,
    }));
    const lists = await Promise.all(taken.map(({ table, end }) => this.#rowsOf(table, end)));
    await this.#carryAll(filling, lists);
    if (!isLast) {
      const forgetting = taken.map(({ table, end }) => ({
        sql: `DELETE FROM temp.${listName(table)} WHERE rowid <= $1`,
        params: [end],
      }));
      await this.#driver.transaction(forgetting, "survives-kill");
    }
    return lists.flat().length;
  }

  async end(): Promise<void> {
    const texts = this.#tables.flatMap((table) => [
      ...["INSERT", "UPDATE", "DELETE"].map(
        (event) => `DROP TRIGGER temp.${listName(table)}_${event}`,
      ),
      `DROP TABLE temp.${listName(table)}`,
    ]);
    await this.#driver.transaction(
      texts.map((sql) => ({ sql, params: [] })),
      "survives-kill",
    );
  }

  async #rowsOf(table: Table, end: bigint): Promise<Part[]> {
    if (end === 0n) return [];
    const list = `SELECT DISTINCT ${table.key.join(", ")} FROM temp.${listName(table)} WHERE rowid <= $1`;
    const keys = await this.#driver.query(list, [end]);
    const sql = rowQuery(table);
    const parts: Part[] = [];
    for (let at = 0; at < keys.length; at += partMax) {
      const some = keys.slice(at, at + partMax);
      const found = await Promise.all(some.map((key) => this.#driver.query(sql, key)));
      parts.push(...some.map((key, i) => ({ table, key, row: found[i]?.[0] })));
    }
    return parts;
  }

  /** First what is gone, so that others may have taken its place. */
  async #carryAll(filling: DatabaseLoader, lists: readonly (readonly Part[])[]): Promise<void> {
    const removals = lists
      .toReversed()
      .flat()
      .filter(({ row }) => row === undefined)
      .map(({ table, key }): Statement => ({ sql: removal(table), params: key }));
    const puts = lists
      .flat()
      .flatMap(({ table, row }): Statement[] =>
        row ? [{ sql: putting(table), params: row }] : [],
      );
    const all = [...removals, ...puts];
    for (let at = 0; at < all.length; at += partMax) await filling.run(all.slice(at, at + partMax));
  }
}
