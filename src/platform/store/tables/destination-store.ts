// Destinations of accounts in the database.
//
// Implements DestinationStore over any SqlDriver. The database decides the owner of an address and the
// limit per account, because several processes may write at once. Rows are validated when they are read,
// because an operator may have edited the database.

import { quote, ShredwayError } from "../../../core/errors.ts";
import {
  type AccountDestination,
  type DestinationStore,
  destinationStates,
  pauseReasons,
  proofKinds,
} from "../../../shreds/destinations/destination-types.ts";
import {
  integerAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type SqlValue,
  type Statement,
  type TransactionEnd,
  textAt,
  wordAt,
  wordOrNullAt,
} from "../driver.ts";
import { onNewsOf } from "../topics.ts";

const topic = "destinations";

const columns = `id, account_id, region, address, created_ms, state, proved_ms, proved_by,
  proof_ends_ms, paused_ms, pause_reason, recovered`;
const select = `SELECT ${columns
  .split(/,\s*/)
  .map((column) => `d.${column}`)
  .join(", ")}, a.name FROM destinations d JOIN accounts a ON a.id = d.account_id`;
const selectAll = `${select} ORDER BY d.created_ms, d.id`;
const selectOne = `${select} WHERE d.id = $1`;
// Locks the account's row until the end. Without it, two concurrent counts on PostgreSQL would both be
// below the limit.
const lockAccount = "UPDATE accounts SET name = name WHERE id = $1";
// PostgreSQL needs explicit types in a SELECT.
const insert = `INSERT INTO destinations (${columns})
  SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), CAST($4 AS text),
    CAST($5 AS bigint), CAST($6 AS text), CAST($7 AS bigint), CAST($8 AS text),
    CAST($9 AS bigint), CAST($10 AS bigint), CAST($11 AS text), CAST($12 AS bigint)
  WHERE (SELECT COUNT(*) FROM destinations WHERE account_id = $2) < CAST($13 AS bigint)
  ON CONFLICT DO NOTHING`;
const selectOwner = "SELECT account_id FROM destinations WHERE address = $1";
const update = `UPDATE destinations SET state = $2, proved_ms = $3, proved_by = $4,
    proof_ends_ms = $5, paused_ms = $6, pause_reason = $7, recovered = $8
  WHERE id = $1 AND state = $9 AND proved_ms IS NOT DISTINCT FROM $10
    AND proved_by IS NOT DISTINCT FROM $11 AND proof_ends_ms IS NOT DISTINCT FROM $12
    AND paused_ms IS NOT DISTINCT FROM $13 AND pause_reason IS NOT DISTINCT FROM $14
    AND recovered = $15`;
const remove = "DELETE FROM destinations WHERE id = $1";

function destinationOf(row: Row): AccountDestination {
  return {
    id: textAt(row, 0),
    accountId: textAt(row, 1),
    region: textAt(row, 2),
    address: textAt(row, 3),
    createdMs: Number(integerAt(row, 4)),
    state: wordAt(row, 5, destinationStates, "states"),
    provedMs: numberOrNullAt(row, 6),
    provedBy: wordOrNullAt(row, 7, proofKinds, "proofs"),
    proofEndsMs: numberOrNullAt(row, 8),
    pausedMs: numberOrNullAt(row, 9),
    pauseReason: wordOrNullAt(row, 10, pauseReasons, "reasons"),
    recovered: integerAt(row, 11) !== 0n,
    accountName: textAt(row, 12),
  };
}

function milliseconds(value: number | null): bigint | null {
  return value === null ? null : BigInt(value);
}

/** State, proof, pause and choices, in the order of the columns. */
function changingOf(destination: AccountDestination): SqlValue[] {
  const { state, provedMs, provedBy, proofEndsMs, pausedMs, pauseReason, recovered } = destination;
  return [
    state,
    milliseconds(provedMs),
    provedBy,
    milliseconds(proofEndsMs),
    milliseconds(pausedMs),
    pauseReason,
    recovered ? 1n : 0n,
  ];
}

export class SqlDestinationStore implements DestinationStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async all(): Promise<AccountDestination[]> {
    return (await this.#driver.query(selectAll, [])).map(destinationOf);
  }

  async find(id: string): Promise<AccountDestination | null> {
    const [row] = await this.#driver.query(selectOne, [id]);
    return row ? destinationOf(row) : null;
  }

  async add(
    destination: AccountDestination,
    perAccountMax: number,
  ): Promise<"added" | "address_taken" | "too_many"> {
    const { id, accountId, region, address, createdMs } = destination;
    const fields = [id, accountId, region, address, BigInt(createdMs), ...changingOf(destination)];
    const end = await this.#change(id, [
      { sql: lockAccount, params: [accountId], mustChange: true },
      { sql: insert, params: [...fields, BigInt(perAccountMax)], mustChange: true },
    ]);
    if (end.isCommitted) return "added";
    if (end.changes.length === 0) {
      const message = `the store: expected account ${quote(accountId)}, got none`;
      throw new ShredwayError("store_failed", message);
    }
    const [owner] = await this.#driver.query(selectOwner, [address]);
    return owner ? "address_taken" : "too_many";
  }

  async update(destination: AccountDestination, before: AccountDestination): Promise<boolean> {
    const params = [destination.id, ...changingOf(destination), ...changingOf(before)];
    return (await this.#change(destination.id, [{ sql: update, params, mustChange: true }]))
      .isCommitted;
  }

  async remove(id: string): Promise<boolean> {
    return (await this.#change(id, [{ sql: remove, params: [id], mustChange: true }])).isCommitted;
  }

  onForeignChange(listener: (ids: readonly string[] | null) => void): () => void {
    return onNewsOf(this.#driver, topic, listener);
  }

  /** Notifies other processes of the changed destination. */
  #change(id: string, statements: readonly Statement[]): Promise<TransactionEnd> {
    return this.#driver.transaction(statements, "durable", [`${topic} ${id}`]);
  }
}
