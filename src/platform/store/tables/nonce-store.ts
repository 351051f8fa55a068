// Managed nonces in the database: the nonce account of each key.
//
// Implements ManagedNonceStore over any SqlDriver. The database guarantees one account per key and one
// key per account, because several processes may write at once. Rows are never deleted, so an index is
// never used twice. Rows are validated when they are read.

import { ShredwayError } from "../../../core/errors.ts";
import type { ManagedNonce, ManagedNonceStore } from "../../../gateway/nonces/types.ts";
import { integerAt, type Row, type SqlDriver, textAt, wordAt } from "../driver.ts";
import { onNewsOf } from "../topics.ts";

const topic = "nonces";

const columns = "number, key_id, account_id, address, state, created_ms";
const selectAll = `SELECT ${columns} FROM managed_nonces ORDER BY number`;
const selectOne = `SELECT ${columns} FROM managed_nonces WHERE key_id = $1`;
const insert = `INSERT INTO managed_nonces (${columns}) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT DO NOTHING`;
const markReady = "UPDATE managed_nonces SET state = 'ready' WHERE number = $1";
const states = ["making", "ready"] as const;

function nonceOf(row: Row): ManagedNonce {
  return {
    index: Number(integerAt(row, 0)),
    keyId: textAt(row, 1),
    accountId: textAt(row, 2),
    address: textAt(row, 3),
    state: wordAt(row, 4, states, "states"),
    createdMs: Number(integerAt(row, 5)),
  };
}

export class SqlManagedNonceStore implements ManagedNonceStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async all(): Promise<ManagedNonce[]> {
    return (await this.#driver.query(selectAll, [])).map(nonceOf);
  }

  async find(keyId: string): Promise<ManagedNonce | null> {
    const [row] = await this.#driver.query(selectOne, [keyId]);
    return row ? nonceOf(row) : null;
  }

  async add({ index, keyId, accountId, address, state, createdMs }: ManagedNonce) {
    const params = [BigInt(index), keyId, accountId, address, state, BigInt(createdMs)];
    const statement = { sql: insert, params, mustChange: true };
    const end = await this.#driver.transaction([statement], "durable", [topic]);
    return end.isCommitted;
  }

  async setReady(index: number): Promise<void> {
    const statement = { sql: markReady, params: [BigInt(index)], mustChange: true };
    const end = await this.#driver.transaction([statement], "durable", [topic]);
    if (end.isCommitted) return;
    throw new ShredwayError("store_failed", `the store: expected nonce ${index}, got none`);
  }

  onForeignChange(listener: () => void): () => void {
    return onNewsOf(this.#driver, topic, () => listener());
  }
}
