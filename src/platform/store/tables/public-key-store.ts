// Public keys of accounts in the database, with the audit trail of their registrations and removals.
//
// Implements PublicKeyStore over any SqlDriver. The account's row is locked during a change, so that the
// limit per account and the numbers of the audit trail are exact while several processes write. Rows are
// validated when they are read, because an operator may have edited the database, or a newer version may have
// written them. An invalid row affects only its own public key.

import { quote, ShredwayError } from "../../../core/errors.ts";
import {
  type PublicKeyActor,
  type PublicKeyEvent,
  type PublicKeyRows,
  type PublicKeyStore,
  publicKeyEventKinds,
  publicKeyPurposes,
  type RegisteredPublicKey,
} from "../../../gateway/accounts/public-key-types.ts";
import type { UnusablePublicKey } from "../../../gateway/accounts/unusable-keys.ts";
import {
  integerAt,
  type Row,
  type SqlDriver,
  type Statement,
  type TransactionEnd,
  textAt,
  textOrNullAt,
  wordAt,
} from "../driver.ts";
import { onNewsOf, publicKeysTopic as topic } from "../topics.ts";
import { anyText, sortRows } from "../usable-rows.ts";

/** Lines of the audit trail that an account keeps. */
const eventsMax = 1000n;

const selectAll = `SELECT p.public_key, p.purpose, p.account_id, p.key_id, p.registered_ms, a.name
  FROM public_keys p JOIN accounts a ON a.id = p.account_id
  ORDER BY p.registered_ms, p.public_key`;
const selectOwner = "SELECT account_id FROM public_keys WHERE public_key = $1";
const lockAccount = "UPDATE accounts SET name = name WHERE id = $1";
// PostgreSQL needs explicit types in a SELECT.
const insert = `INSERT INTO public_keys (public_key, purpose, account_id, key_id, registered_ms)
  SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text), CAST($5 AS bigint)
  WHERE (SELECT COUNT(*) FROM public_keys WHERE account_id = $3) < CAST($6 AS bigint)
  ON CONFLICT DO NOTHING`;
const remove = "DELETE FROM public_keys WHERE public_key = $1 AND account_id = $2";
// Both read the row of the public key: before its removal, or after its insertion.
const insertEvent = `INSERT INTO public_key_events
    (account_id, number, at_ms, kind, public_key, purpose, key_id)
  SELECT p.account_id,
    COALESCE((SELECT MAX(e.number) FROM public_key_events e WHERE e.account_id = p.account_id), 0) + 1,
    CAST($3 AS bigint), CAST($4 AS text), p.public_key, p.purpose, CAST($5 AS text)
  FROM public_keys p WHERE p.public_key = $1 AND p.account_id = $2`;
const pruneEvents = `DELETE FROM public_key_events WHERE account_id = $1
  AND number <= (SELECT MAX(e.number) FROM public_key_events e WHERE e.account_id = $1) - $2`;
const selectEvents = `SELECT account_id, number, at_ms, kind, public_key, purpose, key_id
  FROM public_key_events ORDER BY at_ms, account_id, number`;

function publicKeyOf(row: Row): RegisteredPublicKey {
  return {
    publicKey: textAt(row, 0),
    purpose: wordAt(row, 1, publicKeyPurposes, "purposes"),
    accountId: textAt(row, 2),
    keyId: textAt(row, 3),
    registeredMs: Number(integerAt(row, 4)),
    accountName: textAt(row, 5),
  };
}

function unusableKeyOf(row: Row, problem: string): UnusablePublicKey {
  return {
    publicKey: anyText(row, 0),
    accountId: anyText(row, 2),
    accountName: anyText(row, 5),
    problem,
  };
}

/** All public keys of a database with the newest schema. */
export async function readPublicKeyRows(
  database: Pick<SqlDriver, "query">,
): Promise<PublicKeyRows> {
  const rows = await database.query(selectAll, []);
  const { usable, unusable } = sortRows(rows, publicKeyOf, unusableKeyOf);
  return { publicKeys: usable, unusable };
}

function eventOf(row: Row): PublicKeyEvent {
  return {
    accountId: textAt(row, 0),
    number: Number(integerAt(row, 1)),
    atMs: Number(integerAt(row, 2)),
    kind: wordAt(row, 3, publicKeyEventKinds, "kinds"),
    publicKey: textAt(row, 4),
    purpose: textAt(row, 5),
    keyId: textOrNullAt(row, 6),
  };
}

interface Change {
  readonly accountId: string;
  readonly publicKey: string;
  readonly kind: PublicKeyEvent["kind"];
  readonly actor: PublicKeyActor;
}

/** The line of the audit trail, and the removal of old ones. */
function eventStatements({ accountId, publicKey, kind, actor }: Change): Statement[] {
  const params = [publicKey, accountId, BigInt(actor.nowMs), kind, actor.keyId];
  return [
    { sql: insertEvent, params, mustChange: true },
    { sql: pruneEvents, params: [accountId, eventsMax] },
  ];
}

export class SqlPublicKeyStore implements PublicKeyStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async all(): Promise<readonly RegisteredPublicKey[]> {
    return (await this.read()).publicKeys;
  }

  read(): Promise<PublicKeyRows> {
    return readPublicKeyRows(this.#driver);
  }

  async add(
    key: RegisteredPublicKey,
    actor: PublicKeyActor,
    perAccountMax: number,
  ): Promise<"added" | "taken" | "too_many"> {
    const { publicKey, purpose, accountId, keyId, registeredMs } = key;
    const fields = [publicKey, purpose, accountId, keyId, BigInt(registeredMs)];
    const end = await this.#change([
      { sql: lockAccount, params: [accountId], mustChange: true },
      { sql: insert, params: [...fields, BigInt(perAccountMax)], mustChange: true },
      ...eventStatements({ accountId, publicKey, kind: "registered", actor }),
    ]);
    if (end.isCommitted) return "added";
    if (end.changes.length === 0) {
      const message = `the store: expected account ${quote(accountId)}, got none`;
      throw new ShredwayError("store_failed", message);
    }
    const [owner] = await this.#driver.query(selectOwner, [publicKey]);
    return owner ? "taken" : "too_many";
  }

  async remove(accountId: string, publicKey: string, actor: PublicKeyActor): Promise<boolean> {
    const end = await this.#change([
      { sql: lockAccount, params: [accountId], mustChange: true },
      ...eventStatements({ accountId, publicKey, kind: "removed", actor }),
      { sql: remove, params: [publicKey, accountId], mustChange: true },
    ]);
    return end.isCommitted;
  }

  async events(): Promise<PublicKeyEvent[]> {
    return (await this.#driver.query(selectEvents, [])).map(eventOf);
  }

  onForeignChange(listener: () => void): () => void {
    return onNewsOf(this.#driver, topic, () => listener());
  }

  #change(statements: readonly Statement[]): Promise<TransactionEnd> {
    return this.#driver.transaction(statements, "durable", [topic]);
  }
}
