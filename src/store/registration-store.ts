// Registrations of tips in the database.
//
// The RegistrationStore of tips/registration-types.ts, over any SqlDriver. Everything is durable before
// it is told, and each change is one statement, so that those of one request, and of many, share one
// wait for the disk. Whether a signature was registered before, the database decides: it alone sees all
// requests in one order.

import { quote, ShredwayError } from "../core/errors.ts";
import {
  type Registration,
  type RegistrationStore,
  registrationReasons,
  registrationStates,
  type Settlement,
} from "../tips/registration-types.ts";
import {
  bytesAt,
  bytesOrNullAt,
  integerAt,
  integerOrNullAt,
  numberOrNullAt,
  type Row,
  type SqlDriver,
  type SqlValue,
  textAt,
  wordAt,
  wordOrNullAt,
} from "./driver.ts";
import type { SignatureCodec } from "./signature-codec.ts";

const columns = `signature, account_id, lamports, slot, registered_ms, lifetime, nonce_account,
  state, settled_ms, counted_lamports, counted_order, reason`;
const insert = `INSERT INTO registrations (${columns})
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
  ON CONFLICT (signature) DO NOTHING`;
const settlePending = `UPDATE registrations SET state = $2, settled_ms = $3, counted_lamports = $4,
  counted_order = $5, reason = $6 WHERE signature = $1 AND state = 'pending'`;
const selectPending = `SELECT ${columns} FROM registrations WHERE state = 'pending'
  AND registered_ms >= $1 AND (registered_ms > $1 OR signature > $2)
  ORDER BY registered_ms, signature LIMIT $3`;
// Those of one millisecond come together: whoever asks on with the last time misses none.
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

/** Signatures that one query asks for. Few sizes: each is a text of its own, prepared once. */
const listSizes = [1, 25] as const;
const listMax = 25;
const selectOwners = new Map(
  listSizes.map((size) => {
    const places = Array.from({ length: size }, (_, i) => `$${i + 1}`).join(", ");
    return [size, `SELECT signature, account_id FROM registrations WHERE signature IN (${places})`];
  }),
);

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
    return this.#change(insert, [
      this.#bytesOf(registration.signature),
      registration.accountId,
      registration.lamports,
      // A database's integers have a sign; of a u64 the upper half becomes the negative ones.
      BigInt.asIntN(64, registration.slot),
      BigInt(registration.registeredMs),
      registration.lifetime,
      registration.nonceAccount,
      registration.state,
      integerOf(registration.settledMs),
      registration.countedLamports,
      registration.countedOrder,
      registration.reason,
    ]);
  }

  async settle(signature: string, settlement: Settlement): Promise<boolean> {
    const { state, settledMs, countedLamports, countedOrder, reason } = settlement;
    return this.#change(settlePending, [
      this.#bytesOf(signature),
      state,
      integerOf(settledMs),
      countedLamports,
      countedOrder,
      reason,
    ]);
  }

  async owners(signatures: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const wanted = [...new Set(signatures)].map((signature) => this.#bytesOf(signature));
    const answers: Promise<readonly Row[]>[] = [];
    for (let begin = 0; begin < wanted.length; begin += listMax) {
      const part = wanted.slice(begin, begin + listMax);
      const size = listSizes.find((fitting) => fitting >= part.length) ?? listMax;
      const last = part.at(-1) ?? noSignature;
      const filled = [...part, ...Array.from({ length: size - part.length }, () => last)];
      answers.push(this.#driver.query(selectOwners.get(size) ?? "", filled));
    }
    const rows = (await Promise.all(answers)).flat();
    return new Map(rows.map((row) => [this.#codec.encode(bytesAt(row, 0)), textAt(row, 1)]));
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
    // A row that a tool has spoilt must not prevent a start: it stays what it is.
    return rows.flatMap((row) => {
      try {
        return [this.#registrationOf(row)];
      } catch {
        return [];
      }
    });
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

  async #change(sql: string, params: readonly SqlValue[]): Promise<boolean> {
    const { changes } = await this.#driver.transaction([{ sql, params }], "durable");
    return changes[0] === 1;
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
