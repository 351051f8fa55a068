// Registrations of tips in the database.
//
// Implements RegistrationStore over any SqlDriver. Everything is durable before the call settles. Each
// change is one statement, so the changes of many requests share one disk sync. The database decides
// whether a signature was registered before, because only it sees all requests in one order. A counted
// tip is stored only in its term: the statement locks the clock's row against a later term until the
// commit, and checks the epoch then.

import { quote, ShredwayError } from "../../../core/errors.ts";
import {
  type Registration,
  type RegistrationNewsListener,
  type RegistrationStore,
  registrationReasons,
  registrationStates,
  type Settlement,
} from "../../../shreds/registrations/registration-types.ts";
import {
  bytesAt,
  bytesOrNullAt,
  integerAt,
  integerOrNullAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type SqlValue,
  type Statement,
  textAt,
  wordAt,
  wordOrNullAt,
} from "../driver.ts";
import { onNewsOf } from "../topics.ts";
import type { SignatureCodec } from "./signature-codec.ts";

const columns = `signature, account_id, lamports, slot, registered_ms, lifetime, nonce_account,
  state, settled_ms, counted_lamports, counted_order, reason`;
const insert = `INSERT INTO registrations (${columns})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
  ON CONFLICT (signature) DO NOTHING`;
/**
 * Locks the row of the clock, and changes a row only if the term is over. An update without an effect
 * would also work, but would leave a dead row version for every tip.
 */
const holdTerm = `INSERT INTO tier_clock (id, evaluated_ms, counted_order, epoch) VALUES (1, 0, 0, 0)
  ON CONFLICT (id) DO UPDATE SET epoch = tier_clock.epoch WHERE tier_clock.epoch <> $1`;
const isTerm = (place: string): string =>
  `EXISTS (SELECT 1 FROM tier_clock WHERE id = 1 AND epoch = ${place})`;
// The empty half gives PostgreSQL the types of the other one.
const insertCounted = `INSERT INTO registrations (${columns})
  SELECT * FROM (
    SELECT ${columns} FROM registrations WHERE 1 = 0
    UNION ALL SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS added
  WHERE ${isTerm("$13")}
  ON CONFLICT (signature) DO NOTHING`;
const settlePending = `UPDATE registrations SET state = $2, settled_ms = $3, counted_lamports = $4,
  counted_order = $5, reason = $6 WHERE signature = $1 AND state = 'pending' AND ${isTerm("$7")}`;
const selectPending = `SELECT ${columns} FROM registrations WHERE state = 'pending'
  AND registered_ms >= $1 AND (registered_ms > $1 OR signature > $2)
  ORDER BY registered_ms, signature LIMIT $3`;
// Registrations of one millisecond are returned together, so continuing after the last time misses none.
const selectOfAccount = `SELECT ${columns} FROM registrations
  WHERE account_id = $1 AND registered_ms < $2 AND registered_ms >= (
    SELECT MIN(registered_ms) FROM (
      SELECT registered_ms FROM registrations WHERE account_id = $1 AND registered_ms < $2
      ORDER BY registered_ms DESC LIMIT $3) AS newest)
  ORDER BY registered_ms DESC, signature`;
const selectLastOrder = `SELECT counted_order FROM registrations WHERE counted_order IS NOT NULL
  ORDER BY counted_order DESC LIMIT 1`;

const signatureBytes = 64;
const latestMs = 2n ** 63n - 1n;
const noSignature = new Uint8Array(0);

/** Number of signatures in one query. Few sizes: each is a separate prepared text. */
const listSizes = [1, 25] as const;
const listMax = 25;

function textsBySize(select: string): ReadonlyMap<number, string> {
  return new Map(
    listSizes.map((size) => {
      const placeholders = Array.from({ length: size }, (_, i) => `$${i + 1}`).join(", ");
      return [size, `${select} signature IN (${placeholders})`];
    }),
  );
}

const selectOwners = textsBySize("SELECT signature, account_id FROM registrations WHERE");
const selectPendingOf = textsBySize(
  `SELECT ${columns} FROM registrations WHERE state = 'pending' AND`,
);
const topic = "registrations";
/** Counted tips reach other processes as tiers. */
const noNews: readonly string[] = [];

function integerOf(value: number | null): bigint | null {
  return value === null ? null : BigInt(value);
}

export class SqlRegistrationStore implements RegistrationStore {
  readonly #driver: SqlDriver;
  readonly #codec: SignatureCodec;

  constructor(driver: SqlDriver, codec: SignatureCodec) {
    this.#driver = driver;
    this.#codec = codec;
  }

  async add(registration: Registration): Promise<boolean> {
    const statement = { sql: insert, params: this.#paramsOf(registration) };
    const news = [`${topic} ${registration.signature}`];
    const { changes } = await this.#driver.transaction([statement], "durable", news);
    return changes[0] === 1;
  }

  addCounted(registration: Registration, epoch: bigint): Promise<boolean | null> {
    const params = [...this.#paramsOf(registration), epoch];
    return this.#inTerm({ sql: insertCounted, params }, epoch, noNews);
  }

  async settle(signature: string, settlement: Settlement, epoch: bigint): Promise<boolean | null> {
    const { state, settledMs, countedLamports, countedOrder, reason } = settlement;
    const bytes = this.#bytesOf(signature);
    const how = [state, integerOf(settledMs), countedLamports, countedOrder, reason];
    const params = [bytes, ...how, epoch];
    return this.#inTerm({ sql: settlePending, params }, epoch, [`${topic} ${signature}`]);
  }

  async owners(signatures: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#ofSignatures(selectOwners, signatures);
    return new Map(rows.map((row) => [this.#codec.encode(bytesAt(row, 0)), textAt(row, 1)]));
  }

  async pendingOf(signatures: readonly string[]): Promise<Registration[]> {
    return this.#readable(await this.#ofSignatures(selectPendingOf, signatures));
  }

  async pending(
    behind: Pick<Registration, "registeredMs" | "signature"> | null,
    limit: number,
  ): Promise<Registration[]> {
    const rows = await this.#driver.query(selectPending, [
      behind ? BigInt(behind.registeredMs) : 0n,
      behind ? this.#bytesOf(behind.signature) : noSignature,
      BigInt(limit),
    ]);
    return this.#readable(rows);
  }

  async ofAccount(
    accountId: string,
    beforeMs: number | null,
    limit: number,
  ): Promise<Registration[]> {
    const before = beforeMs === null ? latestMs : BigInt(beforeMs);
    const params = [accountId, before, BigInt(limit)];
    const rows = await this.#driver.query(selectOfAccount, params);
    return rows.map((row) => this.#registrationOf(row));
  }

  async lastOrder(): Promise<bigint> {
    const [row] = await this.#driver.query(selectLastOrder, []);
    return row ? integerAt(row, 0) : 0n;
  }

  onNews(listener: RegistrationNewsListener): () => void {
    return onNewsOf(this.#driver, topic, listener);
  }

  async #inTerm(
    statement: Statement,
    epoch: bigint,
    news: readonly string[],
  ): Promise<boolean | null> {
    const hold = { sql: holdTerm, params: [epoch] };
    const { changes } = await this.#driver.transaction([hold, statement], "durable", news);
    return changes[0] === 0 ? changes[1] === 1 : null;
  }

  #paramsOf(registration: Registration): SqlValue[] {
    return [
      this.#bytesOf(registration.signature),
      registration.accountId,
      registration.lamports,
      // Integers of a database are signed, so the upper half of a u64 is stored as negative.
      BigInt.asIntN(64, registration.slot),
      BigInt(registration.registeredMs),
      registration.lifetime,
      registration.nonceAccount,
      registration.state,
      integerOf(registration.settledMs),
      registration.countedLamports,
      registration.countedOrder,
      registration.reason,
    ];
  }

  async #ofSignatures(
    texts: ReadonlyMap<number, string>,
    signatures: readonly string[],
  ): Promise<Row[]> {
    const wanted = [...new Set(signatures)].map((signature) => this.#bytesOf(signature));
    const answers: Promise<readonly Row[]>[] = [];
    for (let begin = 0; begin < wanted.length; begin += listMax) {
      const part = wanted.slice(begin, begin + listMax);
      const size = listSizes.find((fitting) => fitting >= part.length) ?? listMax;
      const last = part.at(-1) ?? noSignature;
      const filled = [...part, ...Array.from({ length: size - part.length }, () => last)];
      answers.push(this.#driver.query(texts.get(size) ?? "", filled));
    }
    return (await Promise.all(answers)).flat();
  }

  /** A damaged row must not prevent startup; it stays unchanged. */
  #readable(rows: readonly Row[]): Registration[] {
    return rows.flatMap((row) => {
      try {
        return [this.#registrationOf(row)];
      } catch {
        return [];
      }
    });
  }

  #bytesOf(signature: string): Uint8Array {
    const bytes = this.#codec.decode(signature);
    if (bytes?.length === signatureBytes) return bytes;
    throw new ShredwayError(
      "store_failed",
      `the store: expected a signature of ${signatureBytes} bytes in base58, got ${quote(signature)}`,
    );
  }

  #registrationOf(row: Row): Registration {
    return {
      signature: this.#codec.encode(bytesAt(row, 0)),
      accountId: textAt(row, 1),
      lamports: integerAt(row, 2),
      slot: BigInt.asUintN(64, integerAt(row, 3)),
      registeredMs: Number(integerAt(row, 4)),
      lifetime: bytesAt(row, 5),
      nonceAccount: bytesOrNullAt(row, 6),
      state: wordAt(row, 7, registrationStates, "states"),
      settledMs: numberOrNullAt(row, 8),
      countedLamports: integerOrNullAt(row, 9),
      countedOrder: integerOrNullAt(row, 10),
      reason: wordOrNullAt(row, 11, registrationReasons, "reasons"),
    };
  }
}
