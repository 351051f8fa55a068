// Public keys of signed statements in the database.
//
// Implements SigningKeyStore over any SqlDriver. Rows are never deleted. A key that returns, for example
// from a backup, is in use again.

import type { SigningKeyStore, StoredSigningKey } from "../../../gateway/receipts/types.ts";
import {
  bytesAt,
  integerAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type SqlValue,
  textAt,
} from "../driver.ts";
import { onNewsOf } from "../topics.ts";

const topic = "signing_keys";

const columns = "kid, public_key, node, created_ms";
const selectAll = `SELECT ${columns}, retired_ms FROM signing_keys ORDER BY created_ms, kid`;
const insert = `INSERT INTO signing_keys (${columns}) VALUES ($1, $2, $3, $4)
  ON CONFLICT (kid) DO NOTHING`;
const use = `INSERT INTO signing_keys (${columns}) VALUES ($1, $2, $3, $4)
  ON CONFLICT (kid) DO UPDATE SET retired_ms = NULL, node = excluded.node`;
const retireOthers = `UPDATE signing_keys SET retired_ms = $1
  WHERE node = $2 AND kid <> $3 AND retired_ms IS NULL`;

type NewKey = Omit<StoredSigningKey, "retiredMs">;

function keyOf(row: Row): StoredSigningKey {
  return {
    kid: textAt(row, 0),
    publicKey: bytesAt(row, 1),
    node: textAt(row, 2),
    createdMs: Number(integerAt(row, 3)),
    retiredMs: numberOrNullAt(row, 4),
  };
}

function paramsOf({ kid, publicKey, node, createdMs }: NewKey): SqlValue[] {
  return [kid, publicKey, node, BigInt(createdMs)];
}

export class SqlSigningKeyStore implements SigningKeyStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async all(): Promise<StoredSigningKey[]> {
    return (await this.#driver.query(selectAll, [])).map(keyOf);
  }

  async add(key: NewKey): Promise<void> {
    const statement = { sql: insert, params: paramsOf(key) };
    await this.#driver.transaction([statement], "durable", [topic]);
  }

  async use(key: NewKey): Promise<void> {
    const retired = [BigInt(key.createdMs), key.node, key.kid];
    const statements = [
      { sql: use, params: paramsOf(key) },
      { sql: retireOthers, params: retired },
    ];
    await this.#driver.transaction(statements, "durable", [topic]);
  }

  onForeignChange(listener: () => void): () => void {
    return onNewsOf(this.#driver, topic, () => listener());
  }
}
