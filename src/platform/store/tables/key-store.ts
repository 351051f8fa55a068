// Accounts and API keys in the database.
//
// Implements KeyStore over any SqlDriver. Every change is durable before the call settles, and notifies
// other processes. Rows are validated when they are read, because an operator may have edited the
// database, or a newer version may have written them. An invalid row affects only its own key.

import { randomBytes } from "node:crypto";
import { parseAddressRange } from "../../../core/addresses/addresses.ts";
import { quote, ShredwayError } from "../../../core/errors.ts";
import {
  type Account,
  type ApiKey,
  type KeyRows,
  type KeyStore,
  scopes,
} from "../../../gateway/accounts/types.ts";
import type { UnusableKey } from "../../../gateway/accounts/unusable-keys.ts";
import {
  bytesAt,
  integerAt,
  integerOrNullAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type Statement,
  type TransactionEnd,
  textAt,
  wordOf,
} from "../driver.ts";
import { onNewsOf, publicKeysTopic } from "../topics.ts";
import { anyText, sortRows } from "../usable-rows.ts";

const topic = "keys";

const keyColumns = `id, account_id, hash, hint, label, scopes, requests_per_second, burst,
  allowed_ranges, created_ns, expires_ns, revoked_ns`;
const insertKey = `INSERT INTO api_keys (${keyColumns})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;
const selectKeys = `SELECT ${keyColumns
  .split(/,\s*/)
  .map((column) => `k.${column}`)
  .join(", ")}, a.name FROM api_keys k JOIN accounts a ON a.id = k.account_id
  ORDER BY k.created_ns, k.id`;
// A rotation never extends the life of a key that expires earlier.
const expireKey = `UPDATE api_keys
  SET expires_ns = CASE WHEN expires_ns < $2 THEN expires_ns ELSE $2 END
  WHERE id = $1 AND revoked_ns IS NULL`;
const expireKeyOnce = `${expireKey} AND expires_ns IS NULL`;
const revokeKey = "UPDATE api_keys SET revoked_ns = COALESCE(revoked_ns, $2) WHERE id = $1";
const movePublicKeys = "UPDATE public_keys SET key_id = $2 WHERE key_id = $1";
const insertAccount = `INSERT INTO accounts (id, name, created_ns) VALUES ($1, $2, $3)
  ON CONFLICT (name) DO NOTHING`;
const accountColumns = "SELECT id, name, created_ns FROM accounts";

function accountOf(row: Row): Account {
  return { id: textAt(row, 0), name: textAt(row, 1), createdNs: integerAt(row, 2) };
}

function listOf(text: string): string[] {
  return text === "" ? [] : text.split(",");
}

/** SHA-256 of the key's text. */
const hashBytes = 32;

function hashOf(row: Row): Uint8Array {
  const hash = bytesAt(row, 2);
  if (hash.length === hashBytes) return hash;
  throw new ShredwayError(
    "store_failed",
    `the store: expected a hash of ${hashBytes} bytes, got ${hash.length}`,
  );
}

/** Throws ShredwayError "value_invalid". */
function rangesOf(row: Row): string[] {
  const ranges = listOf(textAt(row, 8));
  for (const range of ranges) parseAddressRange(range);
  return ranges;
}

function keyOf(row: Row): ApiKey {
  return {
    id: textAt(row, 0),
    accountId: textAt(row, 1),
    hash: hashOf(row),
    hint: textAt(row, 3),
    label: textAt(row, 4),
    scopes: listOf(textAt(row, 5)).map((text) => wordOf(text, scopes, "scopes")),
    requestsPerSecond: numberOrNullAt(row, 6),
    burst: numberOrNullAt(row, 7),
    allowedRanges: rangesOf(row),
    createdNs: integerAt(row, 9),
    expiresNs: integerOrNullAt(row, 10),
    revokedNs: integerOrNullAt(row, 11),
    accountName: textAt(row, 12),
  };
}

function unusableKeyOf(row: Row, problem: string): UnusableKey {
  const isRevoked = row[11] !== null;
  const [id, accountId, accountName] = [anyText(row, 0), anyText(row, 1), anyText(row, 12)];
  return { id, accountId, accountName, isRevoked, problem };
}

/** All API keys of a database with the newest schema. */
export async function readKeyRows(database: Pick<SqlDriver, "query">): Promise<KeyRows> {
  const rows = await database.query(selectKeys, []);
  const { usable, unusable } = sortRows(rows, keyOf, unusableKeyOf);
  return { keys: usable, unusable };
}

function insertionOf(key: ApiKey): Statement {
  return {
    sql: insertKey,
    params: [
      key.id,
      key.accountId,
      key.hash,
      key.hint,
      key.label,
      key.scopes.join(","),
      key.requestsPerSecond === null ? null : BigInt(key.requestsPerSecond),
      key.burst === null ? null : BigInt(key.burst),
      key.allowedRanges.join(","),
      key.createdNs,
      key.expiresNs,
      key.revokedNs,
    ],
  };
}

function unknownKey(id: string, expected: string): ShredwayError {
  return new ShredwayError(
    "key_unknown",
    `unknown key ${quote(id)}; expected the id of ${expected} (shredway keys list shows them)`,
  );
}

export class SqlKeyStore implements KeyStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async keys(): Promise<readonly ApiKey[]> {
    return (await this.read()).keys;
  }

  read(): Promise<KeyRows> {
    return readKeyRows(this.#driver);
  }

  async accounts(): Promise<Account[]> {
    const rows = await this.#driver.query(`${accountColumns} ORDER BY created_ns, id`, []);
    return rows.map(accountOf);
  }

  async ensureAccount(name: string, nowNs: bigint): Promise<Account> {
    const id = `a_${randomBytes(6).toString("hex")}`;
    await this.#change([{ sql: insertAccount, params: [id, name, nowNs] }]);
    const [row] = await this.#driver.query(`${accountColumns} WHERE name = $1`, [name]);
    if (row) return accountOf(row);
    throw new ShredwayError("store_failed", `the store: expected account ${quote(name)}, got none`);
  }

  async addKey(key: ApiKey): Promise<void> {
    await this.#change([insertionOf(key)]);
  }

  async replaceKey(
    oldId: string,
    expiresNs: bigint,
    key: ApiKey,
    { onlyOnce } = { onlyOnce: false },
  ): Promise<void> {
    const sql = onlyOnce ? expireKeyOnce : expireKey;
    const expiry = { sql, params: [oldId, expiresNs], mustChange: true };
    const move = { sql: movePublicKeys, params: [oldId, key.id] };
    const topics = [topic, publicKeysTopic];
    const end = await this.#change([expiry, insertionOf(key), move], topics);
    if (end.isCommitted) return;
    throw unknownKey(oldId, `a key that is not revoked${onlyOnce ? " or rotated" : ""}`);
  }

  async revokeKey(id: string, nowNs: bigint): Promise<void> {
    const revocation = { sql: revokeKey, params: [id, nowNs], mustChange: true };
    const end = await this.#change([revocation]);
    if (!end.isCommitted) throw unknownKey(id, "a key");
  }

  onForeignChange(listener: () => void): () => void {
    return onNewsOf(this.#driver, topic, () => listener());
  }

  #change(statements: readonly Statement[], topics = [topic]): Promise<TransactionEnd> {
    return this.#driver.transaction(statements, "durable", topics);
  }
}
