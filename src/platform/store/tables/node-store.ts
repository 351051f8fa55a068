// Nodes in the database: the settings that the nodes on one database compare.
//
// Implements NodeStore over any SqlDriver. One row per node name; rows stay after a node has stopped,
// so that the addresses that it offered remain known.

import { integerAt, type Row, type SqlDriver, textAt } from "../driver.ts";
import { onNewsOf } from "../topics.ts";

/** One row. `settings` is JSON that node-settings.ts reads and writes. */
export interface StoredNode {
  readonly name: string;
  readonly settings: string;
}

export interface NodeStore {
  /** Durable when it settles. */
  put(node: StoredNode): Promise<void>;
  all(): Promise<StoredNode[]>;
  /** Wall clock of the database server. Only a shared database has one. */
  databaseTimeMs(): Promise<number>;
  onForeignChange(listener: () => void): () => void;
}

const topic = "nodes";
export const nodesQuery = "SELECT name, settings FROM nodes ORDER BY name";
/** PostgreSQL only. */
export const timeQuery = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)";
const putNode = `INSERT INTO nodes (name, settings) VALUES ($1, $2)
  ON CONFLICT (name) DO UPDATE SET settings = excluded.settings`;

export function nodeOf(row: Row): StoredNode {
  return { name: textAt(row, 0), settings: textAt(row, 1) };
}

export class SqlNodeStore implements NodeStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async put({ name, settings }: StoredNode): Promise<void> {
    await this.#driver.transaction([{ sql: putNode, params: [name, settings] }], "durable", [
      topic,
    ]);
  }

  async all(): Promise<StoredNode[]> {
    return (await this.#driver.query(nodesQuery, [])).map(nodeOf);
  }

  async databaseTimeMs(): Promise<number> {
    const [row = []] = await this.#driver.query(timeQuery, []);
    return Number(integerAt(row, 0));
  }

  onForeignChange(listener: () => void): () => void {
    return onNewsOf(this.#driver, topic, () => listener());
  }
}
