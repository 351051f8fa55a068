// Registrations of tips in the database.
//
// Implements RegistrationStore over any SqlDriver. Everything is durable before the call settles. Each
// change is one statement, so the changes of many requests share one disk sync. The database decides
// whether a signature was registered before, because only it sees all requests in one order. A counted
// tip is stored only in its term: the statement locks the clock's row against a later term until the
// commit, and checks the epoch then.

import { quote, ShredwayError } from "../../../core/errors.ts";
import {
  type ClaimResult,
  proofKinds,
  type Registration,
  type RegistrationNewsListener,
  type RegistrationStore,
  registrationReasons,
  registrationStates,
  type SettledTip,
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
  textOrNullAt,
  wordAt,
  wordOrNullAt,
} from "../driver.ts";
import { onNewsOf } from "../topics.ts";
import type { SignatureCodec } from "./signature-codec.ts";

const columns = `signature, account_id, lamports, slot, registered_ms, lifetime, nonce_account,
  state, settled_ms, counted_lamports, counted_order, reason, proof`;
const insert = `INSERT INTO registrations (${columns})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
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
    UNION ALL SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS added
  WHERE ${isTerm("$14")}
  ON CONFLICT (signature) DO NOTHING`;
const settlePending = `UPDATE registrations SET state = $2, settled_ms = $3, counted_lamports = $4,
  counted_order = $5, reason = $6
  WHERE signature = $1 AND state = 'pending' AND account_id = $8 AND ${isTerm("$7")}`;
/** Only if the settlement before it took effect: then no other row has its order. */
const endClaimed = `UPDATE claimed_registrations SET claimed_order = $2 WHERE signature = $1
  AND EXISTS (SELECT 1 FROM registrations WHERE signature = $1 AND counted_order = $2)`;
// A claim: the row is locked, copied if another account had it, and then changed.
const lockUnproved = `UPDATE registrations SET proof = proof WHERE signature = $1 AND proof IS NULL`;
const isClaimable = `signature = $1 AND proof IS NULL AND account_id <> $2
  AND (state = 'dropped' OR registered_ms > $3)`;
const isOwn = `signature = $1 AND proof IS NULL AND account_id = $2 AND state <> 'dropped'`;
/** A claim of a registration that was deleted since; the signature was then registered again. */
const removeOldClaim = `DELETE FROM claimed_registrations WHERE signature = $1
  AND EXISTS (SELECT 1 FROM registrations WHERE ${isClaimable})`;
const copyClaimed = `INSERT INTO claimed_registrations (${columns}, claimed_ms)
  SELECT ${columns}, $4 FROM registrations WHERE ${isClaimable}`;
const takeClaimed = `UPDATE registrations SET account_id = $2, proof = $4, slot = $5, lamports = $6,
  registered_ms = CASE WHEN state = 'dropped' THEN $7 ELSE registered_ms END,
  counted_lamports = CASE WHEN state = 'counted' THEN counted_lamports ELSE NULL END,
  state = 'pending', settled_ms = NULL, counted_order = NULL, reason = NULL WHERE ${isClaimable}`;
const proveOwn = `UPDATE registrations SET proof = $3 WHERE ${isOwn}`;
/** Rows: whether another account's is claimable, and whether it is an own one. */
const selectClaimable = `SELECT CASE WHEN ${isClaimable} THEN 1 ELSE 0 END,
  CASE WHEN ${isOwn} THEN 1 ELSE 0 END FROM registrations WHERE signature = $1`;
/** The counted tips that pending registrations replace. */
const claimedColumns = `(SELECT c.account_id FROM claimed_registrations c
    WHERE c.signature = registrations.signature AND c.counted_order IS NOT NULL),
  (SELECT c.counted_order FROM claimed_registrations c WHERE c.signature = registrations.signature)`;
const selectOrder = `SELECT counted_order FROM registrations WHERE counted_order = $1
  UNION ALL SELECT counted_order FROM claimed_registrations WHERE counted_order = $1`;
const selectPending = `SELECT ${columns}, ${claimedColumns} FROM registrations WHERE state = 'pending'
  AND registered_ms >= $1 AND (registered_ms > $1 OR signature > $2)
  ORDER BY registered_ms, signature LIMIT $3`;
// Registrations of one millisecond are returned together, so continuing after the last time misses none.
const selectOfAccount = (table: string, all: string) => `SELECT ${all} FROM ${table}
  WHERE account_id = $1 AND registered_ms < $2 AND registered_ms >= (
    SELECT MIN(registered_ms) FROM (
      SELECT registered_ms FROM ${table} WHERE account_id = $1 AND registered_ms < $2
      ORDER BY registered_ms DESC LIMIT $3) AS newest)
  ORDER BY registered_ms DESC, signature`;
const selectOwn = selectOfAccount("registrations", columns);
const selectLost = selectOfAccount("claimed_registrations", `${columns}, claimed_ms`);
const selectLastOrder = `SELECT MAX(counted_order) FROM (
  SELECT MAX(counted_order) AS counted_order FROM registrations WHERE counted_order IS NOT NULL
  UNION ALL SELECT MAX(counted_order) AS counted_order FROM claimed_registrations) AS orders`;

const columnCount = 13;
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
  `SELECT ${columns}, ${claimedColumns} FROM registrations WHERE state = 'pending' AND`,
);
const topic = "registrations";
/** Counted tips reach other processes as tiers. */
const noNews: readonly string[] = [];

/** As the account that lost the tip sees it. */
function lostTo(registration: Registration, claimedMs: number): Registration {
  const lost = { state: "dropped", reason: "claimed", settledMs: claimedMs } as const;
  return { ...registration, ...lost, countedLamports: null };
}

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
    return this.#inTerm([{ sql: insertCounted, params }], epoch, noNews);
  }

  async claim(registration: Registration, sinceMs: number): Promise<ClaimResult> {
    const { signature, accountId, proof, lamports, registeredMs } = registration;
    const bytes = this.#bytesOf(signature);
    const slot = BigInt.asIntN(64, registration.slot);
    const nowMs = BigInt(registeredMs);
    const which = [bytes, accountId, BigInt(sinceMs)];
    const statements = [
      { sql: insert, params: this.#paramsOf(registration) },
      { sql: lockUnproved, params: [bytes] },
      { sql: removeOldClaim, params: which },
      { sql: copyClaimed, params: [...which, nowMs] },
      { sql: takeClaimed, params: [...which, proof, slot, lamports, nowMs] },
      { sql: proveOwn, params: [bytes, accountId, proof] },
    ];
    const news = [`${topic} ${signature}`];
    const { changes } = await this.#driver.transaction(statements, "durable", news);
    const [added, , , , taken, proved] = changes;
    if (added === 1) return "added";
    if (taken === 1) return "claimed";
    return proved === 1 ? "proved" : "refused";
  }

  async claimable(
    { signature, accountId }: Pick<Registration, "signature" | "accountId">,
    sinceMs: number,
  ): Promise<ClaimResult> {
    const params = [this.#bytesOf(signature), accountId, BigInt(sinceMs)];
    const [row] = await this.#driver.query(selectClaimable, params);
    if (!row) return "added";
    if (integerAt(row, 0) === 1n) return "claimed";
    return integerAt(row, 1) === 1n ? "proved" : "refused";
  }

  async settle(tip: SettledTip, settlement: Settlement, epoch: bigint): Promise<boolean | null> {
    const { state, settledMs, countedLamports, countedOrder, reason } = settlement;
    const { signature, accountId, claimedFrom } = tip;
    const bytes = this.#bytesOf(signature);
    const how = [state, integerOf(settledMs), countedLamports, countedOrder, reason];
    const statements = [{ sql: settlePending, params: [bytes, ...how, epoch, accountId] }];
    if (claimedFrom) statements.push({ sql: endClaimed, params: [bytes, countedOrder] });
    return this.#inTerm(statements, epoch, [`${topic} ${signature}`]);
  }

  async hasOrder(order: bigint): Promise<boolean> {
    return (await this.#driver.query(selectOrder, [order])).length > 0;
  }

  async owners(signatures: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#ofSignatures(selectOwners, signatures);
    return new Map(rows.map((row) => [this.#codec.encode(bytesAt(row, 0)), textAt(row, 1)]));
  }

  async pendingOf(signatures: readonly string[]): Promise<Registration[]> {
    return this.#pendingOf(await this.#ofSignatures(selectPendingOf, signatures));
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
    return this.#pendingOf(rows);
  }

  async ofAccount(
    accountId: string,
    beforeMs: number | null,
    limit: number,
  ): Promise<Registration[]> {
    const before = beforeMs === null ? latestMs : BigInt(beforeMs);
    const params = [accountId, before, BigInt(limit)];
    // In this order, because a claim between the reads moves a row to the second table.
    const own = await this.#driver.query(selectOwn, params);
    const lost = await this.#driver.query(selectLost, params);
    if (lost.length === 0) return own.map((row) => this.#registrationOf(row));
    const bySignature = new Map(
      [...own, ...lost].map((row) => {
        const registration = this.#registrationOf(row);
        const { signature } = registration;
        const claimedMs = row.length > columnCount ? numberOrNullAt(row, columnCount) : null;
        const isLost = claimedMs !== null;
        return [signature, isLost ? lostTo(registration, claimedMs) : registration];
      }),
    );
    const newest = [...bySignature.values()].toSorted((a, b) => b.registeredMs - a.registeredMs);
    const lastMs = newest[limit - 1]?.registeredMs ?? Number.NEGATIVE_INFINITY;
    return newest.filter(({ registeredMs }) => registeredMs >= lastMs);
  }

  async lastOrder(): Promise<bigint> {
    const [row] = await this.#driver.query(selectLastOrder, []);
    return row ? (integerOrNullAt(row, 0) ?? 0n) : 0n;
  }

  onNews(listener: RegistrationNewsListener): () => void {
    return onNewsOf(this.#driver, topic, listener);
  }

  async #inTerm(
    statements: readonly Statement[],
    epoch: bigint,
    news: readonly string[],
  ): Promise<boolean | null> {
    const hold = { sql: holdTerm, params: [epoch] };
    const { changes } = await this.#driver.transaction([hold, ...statements], "durable", news);
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
      registration.proof,
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
  #pendingOf(rows: readonly Row[]): Registration[] {
    return rows.flatMap((row) => {
      try {
        const registration = this.#registrationOf(row);
        const accountId = textOrNullAt(row, columnCount);
        if (accountId === null) return [registration];
        const claimedFrom = { accountId, order: integerAt(row, columnCount + 1) };
        return [{ ...registration, claimedFrom }];
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
      proof: wordOrNullAt(row, 12, proofKinds, "proofs"),
    };
  }
}
