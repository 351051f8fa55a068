// Tiers in the database: states, audit trail, how far the engine had come, and what it has yet to do.
//
// The TierStore of tiers/types.ts, over any SqlDriver. Tips that count are registrations, which
// registration-store.ts writes. A checkpoint is one transaction, durable when it settles.

import {
  type CountedTip,
  type TierCheckpoint,
  type TierEvent,
  type TierState,
  type TierStore,
  tierEventKinds,
} from "../tiers/types.ts";
import {
  integerAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type Statement,
  textAt,
  textOrNullAt,
  wordAt,
} from "./driver.ts";

const selectClock = "SELECT evaluated_ms, counted_order FROM tier_clock WHERE id = 1";
const putClock = `INSERT INTO tier_clock (id, evaluated_ms, counted_order) VALUES (1, $1, $2)
  ON CONFLICT (id) DO UPDATE SET
    evaluated_ms = excluded.evaluated_ms, counted_order = excluded.counted_order`;
const stateColumns = "account_id, tier, grace_since_ms, sum_lamports, event_count";
/** Of one read: the event loop is held up for some milliseconds, not for all of them. */
const statesPerRead = 5000;
const selectStates = `SELECT ${stateColumns} FROM tier_states WHERE account_id > $1
  ORDER BY account_id LIMIT ${statesPerRead}`;
const putState = `INSERT INTO tier_states (${stateColumns}) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (account_id) DO UPDATE SET
    tier = excluded.tier, grace_since_ms = excluded.grace_since_ms,
    sum_lamports = excluded.sum_lamports, event_count = excluded.event_count`;
const eventColumns = "account_id, number, at_ms, kind, tier_from, tier_to, sum_lamports";
// It may be there: a commit whose news were lost is written again.
const addEvent = `INSERT INTO tier_events (${eventColumns}) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (account_id, number) DO NOTHING`;
const selectEvents = `SELECT ${eventColumns} FROM tier_events
  WHERE account_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3`;
const countedColumns = "counted_order, account_id, counted_lamports, registered_ms, settled_ms";
/** The words of the partial indexes: without them neither database takes them. */
export const selectCounted = `SELECT ${countedColumns} FROM registrations
  WHERE state = 'counted' AND counted_order > $1 ORDER BY counted_order LIMIT $2`;
export const selectLeaving = `SELECT ${countedColumns} FROM registrations
  WHERE state = 'counted' AND (registered_ms, counted_order) > ($1, $2) AND registered_ms <= $3
  ORDER BY registered_ms, counted_order LIMIT $4`;
const integerMax = 2n ** 63n - 1n;

function stateOf(row: Row): TierState {
  return {
    accountId: textAt(row, 0),
    tier: textOrNullAt(row, 1),
    graceSinceMs: numberOrNullAt(row, 2),
    sumLamports: integerAt(row, 3),
    eventCount: integerAt(row, 4),
  };
}

function eventOf(row: Row): TierEvent {
  return {
    accountId: textAt(row, 0),
    number: integerAt(row, 1),
    atMs: Number(integerAt(row, 2)),
    kind: wordAt(row, 3, tierEventKinds, "events"),
    from: textOrNullAt(row, 4),
    to: textOrNullAt(row, 5),
    sumLamports: integerAt(row, 6),
  };
}

function countedOf(row: Row): CountedTip {
  return {
    order: integerAt(row, 0),
    accountId: textAt(row, 1),
    lamports: integerAt(row, 2),
    registeredMs: Number(integerAt(row, 3)),
    countedMs: Number(integerAt(row, 4)),
  };
}

/** Larger sums exist only where no node is asked, and buy no more than this one. */
const sumMax = 2n ** 63n - 1n;

function kept(sumLamports: bigint): bigint {
  return sumLamports > sumMax ? sumMax : sumLamports;
}

function puttingOf({
  accountId,
  tier,
  graceSinceMs,
  sumLamports,
  eventCount,
}: TierState): Statement {
  const sinceMs = graceSinceMs === null ? null : BigInt(graceSinceMs);
  return { sql: putState, params: [accountId, tier, sinceMs, kept(sumLamports), eventCount] };
}

function additionOf({
  accountId,
  number,
  atMs,
  kind,
  from,
  to,
  sumLamports,
}: TierEvent): Statement {
  return {
    sql: addEvent,
    params: [accountId, number, BigInt(atMs), kind, from, to, kept(sumLamports)],
  };
}

export class SqlTierStore implements TierStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async load(): ReturnType<TierStore["load"]> {
    const [clock] = await this.#driver.query(selectClock, []);
    if (!clock) return null;
    const states: TierState[] = [];
    for (;;) {
      const rows = await this.#driver.query(selectStates, [states.at(-1)?.accountId ?? ""]);
      for (const row of rows) states.push(stateOf(row));
      if (rows.length < statesPerRead) break;
    }
    return { evaluatedMs: Number(integerAt(clock, 0)), countedOrder: integerAt(clock, 1), states };
  }

  async checkpoint(checkpoint: TierCheckpoint): Promise<void> {
    const { evaluatedMs, countedOrder, states, events } = checkpoint;
    const clock = { sql: putClock, params: [BigInt(evaluatedMs), countedOrder] };
    const statements = [clock, ...states.map(puttingOf), ...events.map(additionOf)];
    await this.#driver.transaction(statements, "durable");
  }

  async countedAfter(order: bigint, limit: number): Promise<CountedTip[]> {
    const rows = await this.#driver.query(selectCounted, [order, BigInt(limit)]);
    return rows.map(countedOf);
  }

  async leavingAfter(
    behind: { readonly registeredMs: number; readonly order: bigint },
    untilMs: number,
    limit: number,
  ): Promise<CountedTip[]> {
    const { registeredMs, order } = behind;
    const params = [BigInt(registeredMs), order, BigInt(untilMs), BigInt(limit)];
    return (await this.#driver.query(selectLeaving, params)).map(countedOf);
  }

  async events(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]> {
    const params = [accountId, before ?? integerMax, BigInt(limit)];
    return (await this.#driver.query(selectEvents, params)).map(eventOf);
  }
}
