// Stored facts about the tips and tiers of one account, as `shredway audit` reads them.
//
// Read-only. Rows are returned as they are stored; the audit compares them with its own computation.

import type { TierEvent, TierState } from "../../../shreds/tiers/types.ts";
import { tierEventKinds } from "../../../shreds/tiers/types.ts";
import {
  bytesAt,
  integerAt,
  integerOrNullAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  textAt,
  textOrNullAt,
  wordAt,
} from "../driver.ts";
import type { SignatureCodec } from "./signature-codec.ts";

/** One registration of the account, also one that another account claimed since. */
export interface AuditedRegistration {
  /** Base58. */
  readonly signature: string;
  readonly lamports: bigint;
  readonly slot: bigint;
  readonly registeredMs: number;
  readonly state: string;
  readonly settledMs: number | null;
  readonly countedLamports: bigint | null;
  readonly countedOrder: bigint | null;
  readonly reason: string | null;
  /** Null: no other account claimed it. */
  readonly claim: {
    readonly atMs: number;
    /** When the claim counted, which took the tip out of the sum; null: it did not. */
    readonly counted: { readonly order: bigint; readonly ms: number } | null;
  } | null;
}

/** The tier at the last checkpoint of the engine; consistent, because one statement reads it. */
interface AuditedState {
  readonly evaluatedMs: number;
  readonly countedOrder: bigint;
  /** Null: the account never had a tip. */
  readonly state: Omit<TierState, "accountId"> | null;
}

const columns = `r.signature, r.lamports, r.slot, r.registered_ms, r.state, r.settled_ms,
  r.counted_lamports, r.counted_order, r.reason`;
const page = `WHERE r.account_id = $1 AND r.registered_ms >= $2
  AND (r.registered_ms, r.signature) > ($2, $3)
  ORDER BY r.registered_ms, r.signature LIMIT $4`;
const selectOwn = `SELECT ${columns} FROM registrations r ${page}`;
const selectClaimed = `SELECT ${columns}, r.claimed_ms, r.claimed_order,
  (SELECT n.settled_ms FROM registrations n WHERE n.counted_order = r.claimed_order)
  FROM claimed_registrations r ${page}`;
const ownColumns = 9;
const selectState = `SELECT c.evaluated_ms, c.counted_order, s.tier, s.grace_since_ms, s.sum_lamports,
  s.event_count FROM tier_clock c LEFT JOIN tier_states s ON s.account_id = $1 WHERE c.id = 1`;
const selectEvents = `SELECT number, at_ms, kind, tier_from, tier_to, sum_lamports FROM tier_events
  WHERE account_id = $1 AND number > $2 ORDER BY number LIMIT $3`;
const rowsPerRead = 2000;
const noSignature = new Uint8Array(0);

export class SqlAuditStore {
  readonly #driver: Pick<SqlDriver, "query">;
  readonly #codec: SignatureCodec;

  constructor(driver: Pick<SqlDriver, "query">, codec: SignatureCodec) {
    this.#driver = driver;
    this.#codec = codec;
  }

  /** Null: no tip was ever counted in this database. */
  async state(accountId: string): Promise<AuditedState | null> {
    const [row] = await this.#driver.query(selectState, [accountId]);
    if (!row) return null;
    const sumLamports = integerOrNullAt(row, 4);
    const state = sumLamports !== null && {
      tier: textOrNullAt(row, 2),
      graceSinceMs: numberOrNullAt(row, 3),
      sumLamports,
      eventCount: integerAt(row, 5),
    };
    return {
      evaluatedMs: Number(integerAt(row, 0)),
      countedOrder: integerAt(row, 1),
      state: state || null,
    };
  }

  /** Every event of the account, ascending. */
  async events(accountId: string): Promise<TierEvent[]> {
    const events: TierEvent[] = [];
    for (;;) {
      const last = events.at(-1)?.number ?? 0n;
      const rows = await this.#driver.query(selectEvents, [accountId, last, BigInt(rowsPerRead)]);
      for (const row of rows) events.push(eventOf(accountId, row));
      if (rows.length < rowsPerRead) return events;
    }
  }

  /** Registrations from `sinceMs` on, in pages, in the order of time. */
  async *registrations(accountId: string, sinceMs: number): AsyncGenerator<AuditedRegistration[]> {
    // In this order, because a claim between the reads moves a row to the second table.
    yield* this.#pages(selectOwn, accountId, sinceMs);
    yield* this.#pages(selectClaimed, accountId, sinceMs);
  }

  async *#pages(
    sql: string,
    accountId: string,
    sinceMs: number,
  ): AsyncGenerator<AuditedRegistration[]> {
    let behind: [bigint, Uint8Array] = [BigInt(sinceMs), noSignature];
    for (;;) {
      const rows = await this.#driver.query(sql, [accountId, ...behind, BigInt(rowsPerRead)]);
      yield rows.map((row) => this.#registrationOf(row));
      const last = rows.at(-1);
      if (!last || rows.length < rowsPerRead) return;
      behind = [integerAt(last, 3), bytesAt(last, 0)];
    }
  }

  #registrationOf(row: Row): AuditedRegistration {
    return {
      signature: this.#codec.encode(bytesAt(row, 0)),
      lamports: integerAt(row, 1),
      slot: BigInt.asUintN(64, integerAt(row, 2)),
      registeredMs: Number(integerAt(row, 3)),
      state: textAt(row, 4),
      settledMs: numberOrNullAt(row, 5),
      countedLamports: integerOrNullAt(row, 6),
      countedOrder: integerOrNullAt(row, 7),
      reason: textOrNullAt(row, 8),
      claim: row.length === ownColumns ? null : claimOf(row),
    };
  }
}

function claimOf(row: Row): AuditedRegistration["claim"] {
  const order = integerOrNullAt(row, ownColumns + 1);
  const ms = numberOrNullAt(row, ownColumns + 2);
  return {
    atMs: Number(integerAt(row, ownColumns)),
    counted: order === null || ms === null ? null : { order, ms },
  };
}

function eventOf(accountId: string, row: Row): TierEvent {
  return {
    accountId,
    number: integerAt(row, 0),
    atMs: Number(integerAt(row, 1)),
    kind: wordAt(row, 2, tierEventKinds, "events"),
    from: textOrNullAt(row, 3),
    to: textOrNullAt(row, 4),
    sumLamports: integerAt(row, 5),
  };
}
