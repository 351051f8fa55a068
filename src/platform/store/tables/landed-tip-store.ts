// Landed tips and their last snapshot in the database.
//
// Implements LandedTipStore over any SqlDriver. Changes survive a kill of the process; a loss of power
// loses at most a second of statistics. Signatures are stored as bytes. Rows are validated when they are
// read, because an operator may have edited the database.

import { isShredwayError, quote, ShredwayError } from "../../../core/errors.ts";
import { isJsonObject, type Json, readJson, writeJson } from "../../../core/json-rpc/json-text.ts";
import { quartersMax } from "../../../tips/tip-history.ts";
import type {
  LandedTip,
  LandedTipStore,
  TipQuarter,
  TipSnapshot,
} from "../../../tips/tip-types.ts";
import { tipLamportsMax } from "../../../tips/tip-window.ts";
import {
  bytesAt,
  integerAt,
  integerOrNullAt,
  type Row,
  type SqlDriver,
  type Statement,
  textAt,
} from "../driver.ts";
import type { SignatureCodec } from "./signature-codec.ts";

const addTip = `INSERT INTO landed_tips (signature, lamports, landed_ms) VALUES ($1, $2, $3)
  ON CONFLICT (signature) DO NOTHING`;
const removeTip = "DELETE FROM landed_tips WHERE signature = $1";
const select = "SELECT signature, lamports, landed_ms FROM landed_tips";
const selectSince = `${select} WHERE landed_ms >= $1 ORDER BY landed_ms, signature LIMIT $2`;
const selectBehind = `${select} WHERE landed_ms >= $1 AND (landed_ms, signature) > ($3, $4)
  ORDER BY landed_ms, signature LIMIT $2`;
/** In slices, so that other calls do not wait long. */
const forgetMax = 5000;
const forgetTips = `DELETE FROM landed_tips WHERE signature IN
  (SELECT signature FROM landed_tips WHERE landed_ms < $1 LIMIT ${forgetMax})`;
// One row whose id is the quarter hour: nodes that store theirs at the same time agree on it. A clock
// that was ahead must not block the others for long.
const removeSnapshot = "DELETE FROM tip_snapshots WHERE id < $1 OR id > CAST($1 AS bigint) + 1";
const addSnapshot = `INSERT INTO tip_snapshots (id, snapshot)
  SELECT CAST($1 AS bigint), CAST($2 AS text) WHERE NOT EXISTS (SELECT 1 FROM tip_snapshots)
  ON CONFLICT (id) DO NOTHING`;
const selectSnapshot = "SELECT snapshot FROM tip_snapshots ORDER BY id DESC LIMIT 1";
const quarterColumns = "quarter, time_ms, tip_count, p25, p50, p75, p95, p99";
/**
 * The first entry of a quarter hour stays, so that nodes agree. An entry that was stored before that of an
 * earlier quarter hour comes from a clock that was ahead, and is replaced.
 */
const addQuarter = `INSERT INTO tip_quarters (${quarterColumns}, number)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, (SELECT COALESCE(MAX(number), 0) + 1 FROM tip_quarters))
  ON CONFLICT (quarter) DO UPDATE SET
    time_ms = excluded.time_ms, tip_count = excluded.tip_count, p25 = excluded.p25,
    p50 = excluded.p50, p75 = excluded.p75, p95 = excluded.p95, p99 = excluded.p99,
    number = excluded.number
  WHERE EXISTS (SELECT 1 FROM tip_quarters AS earlier
    WHERE earlier.quarter < tip_quarters.quarter AND earlier.number > tip_quarters.number)`;
/** Deletes nothing before, because the clock of this node may be wrong and the rows those of others. */
const quarterRowsMax = 2 * quartersMax;
const removeQuarters = `DELETE FROM tip_quarters WHERE (quarter <= $1 OR quarter > $2)
  AND (SELECT COUNT(*) FROM tip_quarters) > ${quarterRowsMax}`;
const selectQuarters = `SELECT ${quarterColumns} FROM tip_quarters
  WHERE quarter >= $1 AND quarter <= $2 ORDER BY quarter LIMIT ${quartersMax}`;

function unexpected(expected: string, got: unknown): ShredwayError {
  return new ShredwayError("store_failed", `the store: expected ${expected}, got ${quote(got)}`);
}

function integerOf(value: Json | undefined, name: string): bigint {
  if (typeof value === "bigint" && value >= 0n) return value;
  if (Number.isSafeInteger(value)) return BigInt(Number(value));
  throw unexpected(`an integer as ${name} of the snapshot`, value);
}

/** The range of a Date. */
const timeMsMax = 8.64e15;

function timeOf(value: Json | undefined, name: string): number {
  const timeMs = Number(integerOf(value, name));
  if (Math.abs(timeMs) <= timeMsMax) return timeMs;
  throw unexpected(`a time as ${name} of the snapshot`, value);
}

function snapshotOf(text: string): TipSnapshot {
  const read = readJson(text, 2);
  const fields = isJsonObject(read) ? read : {};
  const { percentiles: given, isStale } = fields;
  const percentiles = isJsonObject(given) ? given : {};
  const percentile = (name: string): bigint => integerOf(percentiles[name], name);
  if (typeof isStale !== "boolean") throw unexpected("isStale of the snapshot", isStale);
  return {
    timeMs: timeOf(fields["timeMs"], "timeMs"),
    percentiles: {
      p25: percentile("p25"),
      p50: percentile("p50"),
      p75: percentile("p75"),
      p95: percentile("p95"),
      p99: percentile("p99"),
    },
    emaP50: integerOf(fields["emaP50"], "emaP50"),
    count: Number(integerOf(fields["count"], "count")),
    windowStartMs: timeOf(fields["windowStartMs"], "windowStartMs"),
    isStale,
  };
}

function quarterOf(row: Row): TipQuarter {
  const count = Number(integerAt(row, 2));
  const percentile = (at: number): bigint => integerOf(integerAt(row, at), "percentile");
  const isEmpty = integerOrNullAt(row, 3) === null;
  return {
    quarter: Number(integerAt(row, 0)),
    timeMs: timeOf(integerAt(row, 1), "time_ms"),
    count,
    percentiles: isEmpty
      ? null
      : {
          p25: percentile(3),
          p50: percentile(4),
          p75: percentile(5),
          p95: percentile(6),
          p99: percentile(7),
        },
  };
}

/** Adds a tip; does nothing if its signature is known. */
export function additionOf(
  { signature, lamports, landedMs }: LandedTip,
  signatures: SignatureCodec,
): Statement {
  const bytes = bytesOf(signature, signatures);
  const bounded = lamports < tipLamportsMax ? lamports : tipLamportsMax;
  return { sql: addTip, params: [bytes, bounded, BigInt(landedMs)] };
}

function bytesOf(signature: string, signatures: SignatureCodec): Uint8Array {
  const bytes = signatures.decode(signature);
  if (bytes) return bytes;
  throw unexpected("a signature in base58", signature);
}

export class SqlLandedTipStore implements LandedTipStore {
  readonly #driver: SqlDriver;
  readonly #signatures: SignatureCodec;

  constructor(driver: SqlDriver, signatures: SignatureCodec) {
    this.#driver = driver;
    this.#signatures = signatures;
  }

  /** Removes first: a tip in both lists is added again. */
  async write(added: readonly LandedTip[], removed: readonly string[]): Promise<void> {
    const removals = removed.map((signature) => ({
      sql: removeTip,
      params: [this.#bytesOf(signature)],
    }));
    const additions = added.map((tip) => additionOf(tip, this.#signatures));
    if (removals.length + additions.length === 0) return;
    await this.#driver.transaction([...removals, ...additions], "survives-kill");
  }

  async since(sinceMs: number, behind: LandedTip | null, limit: number): Promise<LandedTip[]> {
    const params = [BigInt(sinceMs), BigInt(limit)];
    const rows = behind
      ? await this.#driver.query(selectBehind, [
          ...params,
          BigInt(behind.landedMs),
          this.#bytesOf(behind.signature),
        ])
      : await this.#driver.query(selectSince, params);
    return rows.map((row) => this.#tipOf(row));
  }

  async forgetBefore(ms: number): Promise<void> {
    const statement = { sql: forgetTips, params: [BigInt(ms)] };
    for (;;) {
      const { changes } = await this.#driver.transaction([statement], "survives-kill");
      if ((changes[0] ?? 0) < forgetMax) return;
    }
  }

  async keepSnapshot(snapshot: TipSnapshot, quarter: number): Promise<void> {
    const id = BigInt(quarter);
    const statements = [
      { sql: removeSnapshot, params: [id] },
      { sql: addSnapshot, params: [id, writeJson(snapshot)] },
    ];
    await this.#driver.transaction(statements, "survives-kill");
  }

  async lastSnapshot(): Promise<TipSnapshot | null> {
    const [row] = await this.#driver.query(selectSnapshot, []);
    if (!row) return null;
    try {
      return snapshotOf(textAt(row, 0));
    } catch (cause) {
      if (isShredwayError(cause, "store_failed")) throw cause;
      throw new ShredwayError("store_failed", "the store: expected a snapshot as JSON", { cause });
    }
  }

  async keepQuarter({ quarter, timeMs, count, percentiles }: TipQuarter): Promise<void> {
    const { p25 = null, p50 = null, p75 = null, p95 = null, p99 = null } = percentiles ?? {};
    const id = BigInt(quarter);
    const values = [id, BigInt(timeMs), BigInt(count), p25, p50, p75, p95, p99];
    const kept = BigInt(quartersMax);
    const statements = [
      { sql: addQuarter, params: values },
      { sql: removeQuarters, params: [id - kept, id + kept] },
    ];
    await this.#driver.transaction(statements, "survives-kill");
  }

  async quarters(from: number, to: number): Promise<TipQuarter[]> {
    const rows = await this.#driver.query(selectQuarters, [BigInt(from), BigInt(to)]);
    return rows.map(quarterOf);
  }

  #tipOf(row: Row): LandedTip {
    return {
      signature: this.#signatures.encode(bytesAt(row, 0)),
      lamports: integerAt(row, 1),
      landedMs: Number(integerAt(row, 2)),
    };
  }

  #bytesOf(signature: string): Uint8Array {
    return bytesOf(signature, this.#signatures);
  }
}
