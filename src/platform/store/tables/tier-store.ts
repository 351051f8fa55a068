// Tiers in the database: states, audit trail, progress and pending work of the tier engine.
//
// Implements TierStore over any SqlDriver. Counted tips are registrations, which registration-store.ts
// writes. A checkpoint is one transaction, durable when it settles. It first updates the clock's row if
// that still has its epoch; of two nodes that both claim to be the leader, only the later one can write.

import { quote, ShredwayError } from "../../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  readJson,
  writeJson,
} from "../../../core/json-rpc/json-text.ts";
import {
  type CountedTip,
  type TierChanges,
  type TierCheckpoint,
  type TierEvent,
  type TierNews,
  type TierNewsListener,
  type TierRule,
  type TierState,
  type TierStore,
  tierEventKinds,
} from "../../../shreds/tiers/types.ts";
import {
  integerAt,
  integerOrNullAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type Statement,
  textAt,
  textOrNullAt,
  wordAt,
} from "../driver.ts";
import { onNewsOf } from "../topics.ts";

/** The first term begins before any checkpoint. */
const selectClock = `SELECT evaluated_ms, counted_order, tiers FROM tier_clock
  WHERE id = 1 AND (evaluated_ms <> 0 OR counted_order <> 0 OR checkpoint <> 0)`;
const selectTerm = "SELECT epoch, checkpoint FROM tier_clock WHERE id = 1";
const beginFirstTerm = `INSERT INTO tier_clock (id, evaluated_ms, counted_order, epoch)
  VALUES (1, 0, 0, 1) ON CONFLICT (id) DO NOTHING`;
const beginTerm = "UPDATE tier_clock SET epoch = $1 WHERE id = 1 AND epoch = $2";
const moveClock = `UPDATE tier_clock
  SET evaluated_ms = $1, counted_order = $2, checkpoint = checkpoint + 1, tiers = $4
  WHERE id = 1 AND epoch = $3`;
const stateColumns = "account_id, tier, grace_since_ms, sum_lamports, event_count";
/** Rows of one read; blocks the event loop for a few milliseconds only. */
const statesPerRead = 5000;
const selectStates = `SELECT ${stateColumns} FROM tier_states WHERE account_id > $1
  ORDER BY account_id LIMIT ${statesPerRead}`;
/** In the order of their changes; concurrent changes come later, or in the next read. */
const selectChanged = `SELECT ${stateColumns}, checkpoint FROM tier_states
  WHERE (checkpoint, account_id) > ($1, $2) ORDER BY checkpoint, account_id LIMIT ${statesPerRead}`;
// The number that this transaction assigned to the clock; the caller need not know it.
const putState = `INSERT INTO tier_states (${stateColumns}, checkpoint)
  VALUES ($1, $2, $3, $4, $5, (SELECT checkpoint FROM tier_clock WHERE id = 1))
  ON CONFLICT (account_id) DO UPDATE SET
    tier = excluded.tier, grace_since_ms = excluded.grace_since_ms,
    sum_lamports = excluded.sum_lamports, event_count = excluded.event_count,
    checkpoint = excluded.checkpoint`;
const eventColumns = "account_id, number, at_ms, kind, tier_from, tier_to, sum_lamports";
// The row may exist: a commit whose answer was lost is written again.
const addEvent = `INSERT INTO tier_events (${eventColumns}) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (account_id, number) DO NOTHING`;
const selectEvents = `SELECT ${eventColumns} FROM tier_events
  WHERE account_id = $1 AND number < $2 ORDER BY number DESC LIMIT $3`;
const countedColumns = "counted_order, account_id, counted_lamports, registered_ms, settled_ms";
/** The conditions of the partial indexes; without them, neither database uses the indexes. */
export const selectCounted = `SELECT ${countedColumns} FROM registrations
  WHERE state = 'counted' AND counted_order > $1 ORDER BY counted_order LIMIT $2`;
export const selectLeaving = `SELECT ${countedColumns} FROM registrations
  WHERE state = 'counted' AND (registered_ms, counted_order) > ($1, $2) AND registered_ms <= $3
  ORDER BY registered_ms, counted_order LIMIT $4`;
/** Claimed tips count for their account until `claimed_order`. They are few. */
const claimedColumns =
  "counted_order, account_id, counted_lamports, registered_ms, settled_ms, claimed_order";
const selectClaimedAfter = `SELECT ${claimedColumns} FROM claimed_registrations
  WHERE counted_order > $1 OR (counted_order IS NOT NULL AND claimed_order > $1)
  ORDER BY counted_order`;
const selectClaimedLeaving = `SELECT ${claimedColumns} FROM claimed_registrations
  WHERE counted_order IS NOT NULL AND (registered_ms, counted_order) > ($1, $2)
  AND registered_ms <= $3 ORDER BY registered_ms, counted_order LIMIT $4`;
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

function claimedOf(row: Row): CountedTip {
  const claimedOrder = integerOrNullAt(row, 5);
  return { ...countedOf(row), ...(claimedOrder !== null && { claimedOrder }) };
}

/** Each order once: a tip may have been claimed between two reads. */
function mergedOf(tips: readonly CountedTip[], claimed: readonly CountedTip[]): CountedTip[] {
  return [...new Map([...tips, ...claimed].map((tip) => [tip.order, tip])).values()];
}

/** Larger sums exist only without a node, and give no higher tier than this one. */
const sumMax = 2n ** 63n - 1n;

function storedSum(sumLamports: bigint): bigint {
  return sumLamports > sumMax ? sumMax : sumLamports;
}

function tierOf(value: Json): TierRule {
  const { name, thresholdLamports } = isJsonObject(value) ? value : {};
  const isSafe = typeof thresholdLamports === "number" && Number.isSafeInteger(thresholdLamports);
  const lamports = isSafe ? BigInt(thresholdLamports) : thresholdLamports;
  if (typeof name === "string" && typeof lamports === "bigint") {
    return { name, thresholdLamports: lamports };
  }
  throw new ShredwayError("store_failed", `the store: expected a tier, got ${quote(value)}`);
}

function tiersOf(text: string | null): TierRule[] | null {
  const tiers = text === null ? [] : readJson(text, 2);
  if (isJsonArray(tiers)) return text === null ? null : tiers.map(tierOf);
  throw new ShredwayError(
    "store_failed",
    `the store: expected a list of tiers, got ${quote(text)}`,
  );
}

function puttingOf({
  accountId,
  tier,
  graceSinceMs,
  sumLamports,
  eventCount,
}: TierState): Statement {
  const sinceMs = graceSinceMs === null ? null : BigInt(graceSinceMs);
  return { sql: putState, params: [accountId, tier, sinceMs, storedSum(sumLamports), eventCount] };
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
    params: [accountId, number, BigInt(atMs), kind, from, to, storedSum(sumLamports)],
  };
}

const topic = "tiers";
const noTier = "-";
/** Number of accounts in one notification text; others are read. */
const plain = /^[\w.-]{1,200}$/;
/** Above this number all states are read, which is faster. */
const newsMax = 2000;

function newsOf({ states, events }: TierCheckpoint): string[] {
  const moved = new Set(
    events.filter(({ from, to }) => from !== to).map(({ accountId }) => accountId),
  );
  if (moved.size > newsMax) return [topic];
  const news = states.flatMap(({ accountId, tier, eventCount }) => {
    if (!moved.has(accountId)) return [];
    const isPlain = plain.test(accountId) && (tier === null || plain.test(tier));
    return isPlain && tier !== noTier
      ? [`${topic} ${accountId} ${tier ?? noTier} ${eventCount}`]
      : [topic];
  });
  return news.length > 0 ? news : [topic];
}

function readNews(text: string): TierNews | null {
  const [accountId = "", tier = "", count = ""] = text.split(" ");
  if (accountId === "" || tier === "" || !/^\d{1,19}$/.test(count)) return null;
  return { accountId, tier: tier === noTier ? null : tier, eventCount: BigInt(count) };
}

export class SqlTierStore implements TierStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async takeOver(): Promise<bigint> {
    for (;;) {
      const [term] = await this.#driver.query(selectTerm, []);
      const epoch = term ? integerAt(term, 0) : 0n;
      const begin = term
        ? { sql: beginTerm, params: [epoch + 1n, epoch] }
        : { sql: beginFirstTerm, params: [] };
      // If several processes read the same epoch, one of them gets the next.
      const statements = [{ ...begin, mustChange: true }];
      const { isCommitted } = await this.#driver.transaction(statements, "durable", [topic]);
      if (isCommitted) return epoch + 1n;
    }
  }

  async epoch(): Promise<bigint> {
    return (await this.#term()).epoch;
  }

  async load(): ReturnType<TierStore["load"]> {
    const [clock] = await this.#driver.query(selectClock, []);
    if (!clock) return null;
    const states = await this.#allStates();
    return {
      evaluatedMs: Number(integerAt(clock, 0)),
      countedOrder: integerAt(clock, 1),
      tiers: tiersOf(textOrNullAt(clock, 2)),
      states,
    };
  }

  async checkpoint(checkpoint: TierCheckpoint, epoch: bigint): Promise<boolean> {
    const { evaluatedMs, countedOrder, tiers, states, events } = checkpoint;
    const params = [BigInt(evaluatedMs), countedOrder, epoch, writeJson(tiers)];
    const clock = { sql: moveClock, params, mustChange: true };
    const statements = [clock, ...states.map(puttingOf), ...events.map(additionOf)];
    const news = newsOf(checkpoint);
    return (await this.#driver.transaction(statements, "durable", news)).isCommitted;
  }

  async statesChangedAfter(checkpoint: bigint | null): Promise<TierChanges> {
    const term = await this.#term();
    if (checkpoint === null) return { ...term, states: await this.#allStates() };
    if (term.checkpoint === checkpoint) return { ...term, states: [] };
    const states: TierState[] = [];
    let behind: [bigint, string] = [checkpoint + 1n, ""];
    for (;;) {
      const rows = await this.#driver.query(selectChanged, behind);
      for (const row of rows) states.push(stateOf(row));
      const last = rows.at(-1);
      if (!last || rows.length < statesPerRead) return { ...term, states };
      behind = [integerAt(last, 5), textAt(last, 0)];
    }
  }

  onNews(listener: TierNewsListener): () => void {
    return onNewsOf(this.#driver, topic, (texts) => {
      listener(texts === null ? null : texts.map(readNews).filter((news) => news !== null));
    });
  }

  async countedAfter(order: bigint, limit: number): Promise<CountedTip[]> {
    const rows = await this.#driver.query(selectCounted, [order, BigInt(limit)]);
    // After the read of the others, because a claim in between moves a tip here.
    const moved = (await this.#driver.query(selectClaimedAfter, [order])).map(claimedOf);
    const tips = rows.map(countedOf);
    if (moved.length === 0) return tips;
    const lastOrder = tips.length < limit ? integerMax : (tips.at(-1)?.order ?? order);
    const claimedBy = new Map(moved.map((tip) => [tip.claimedOrder, tip]));
    return mergedOf(
      tips.map((tip) => {
        const from = claimedBy.get(tip.order);
        return from
          ? { ...tip, claimedFrom: { accountId: from.accountId, order: from.order } }
          : tip;
      }),
      moved.filter((tip) => tip.order > order && tip.order <= lastOrder),
    ).toSorted((a, b) => (a.order < b.order ? -1 : 1));
  }

  async leavingAfter(
    behind: { readonly registeredMs: number; readonly order: bigint },
    untilMs: number,
    limit: number,
  ): Promise<CountedTip[]> {
    const { registeredMs, order } = behind;
    const params = [BigInt(registeredMs), order, BigInt(untilMs), BigInt(limit)];
    const tips = (await this.#driver.query(selectLeaving, params)).map(countedOf);
    // After the read of the others, because a claim in between moves a tip here.
    const claimed = (await this.#driver.query(selectClaimedLeaving, params)).map(claimedOf);
    if (claimed.length === 0) return tips;
    return mergedOf(tips, claimed)
      .toSorted((a, b) => a.registeredMs - b.registeredMs || (a.order < b.order ? -1 : 1))
      .slice(0, limit);
  }

  async events(accountId: string, before: bigint | null, limit: number): Promise<TierEvent[]> {
    const params = [accountId, before ?? integerMax, BigInt(limit)];
    return (await this.#driver.query(selectEvents, params)).map(eventOf);
  }

  async #term(): Promise<Omit<TierChanges, "states">> {
    const [term] = await this.#driver.query(selectTerm, []);
    return { epoch: term ? integerAt(term, 0) : 0n, checkpoint: term ? integerAt(term, 1) : 0n };
  }

  async #allStates(): Promise<TierState[]> {
    const states: TierState[] = [];
    for (;;) {
      const rows = await this.#driver.query(selectStates, [states.at(-1)?.accountId ?? ""]);
      for (const row of rows) states.push(stateOf(row));
      if (rows.length < statesPerRead) return states;
    }
  }
}
