// Submissions in the database.
//
// Implements SubmissionStore over any SqlDriver. Changes are on disk when a call settles, unless the
// operator chose speed. Each row belongs to one node, and only that node changes it. The caller decides
// that a node is dead. The tip of a landed transaction is written with its end, so that a kill of the
// process cannot separate them.

import type {
  BundleRecord,
  SubmissionLister,
  SubmissionRecord,
  SubmissionStore,
} from "../../../gateway/submission/types.ts";
import {
  type Durability,
  type Row,
  type SqlDriver,
  type SqlValue,
  type Statement,
  type TransactionEnd,
  textAt,
} from "../driver.ts";
import { additionOfBundle, bundlesOf, forgetBundles, selectBundles } from "./bundle-rows.ts";
import { additionOf } from "./landed-tip-store.ts";
import type { SignatureCodec } from "./signature-codec.ts";
import { recordOf, recordOrRemains, rowOf, submissionColumns } from "./submission-rows.ts";

/** The columns of `rowOf`. */
export const columns: readonly string[] = [...submissionColumns.split(/,\s*/), "node"];
const insert = `INSERT INTO submissions (${columns.join(", ")})
  VALUES (${columns.map((_, i) => `$${i + 1}`).join(", ")})
  ON CONFLICT (account_id, signature)`;
const addRecord = `${insert} DO NOTHING`;
const putRecord = `${insert} DO UPDATE SET
  ${columns
    .slice(2)
    .map((column) => `${column} = excluded.${column}`)
    .join(", ")}
  WHERE submissions.state = 'rejected' OR (submissions.node = excluded.node
    AND submissions.state IN ('open', excluded.state))`;
const select = `SELECT ${submissionColumns} FROM submissions`;
const inOrder = "ORDER BY received_ns, account_id, bundle_id, bundle_index";
const selectOpen = `${select} WHERE state = 'open' ${inOrder}`;
const selectOpenOf = `${select} WHERE state = 'open' AND node = $1 ${inOrder}`;
const selectOpenNodes =
  "SELECT DISTINCT node FROM submissions WHERE state = 'open' AND node <> $1 ORDER BY node";
const takeRow = `UPDATE submissions SET node = $1
  WHERE account_id = $2 AND signature = $3 AND node = $4 AND state = 'open'`;
/** In slices, so that other calls do not wait long; a bundle is never split. */
const takeMax = 500;
/** In slices, so that other calls do not wait long. */
const forgetMax = 500;
const forgetEnded = `DELETE FROM submissions WHERE (account_id, signature) IN
  (SELECT account_id, signature FROM submissions WHERE ended_ns < $1 LIMIT ${forgetMax})`;
const forgetAccepted = forgetBundles(forgetMax);

const selectSignatures = `SELECT account_id, signature FROM submissions
  WHERE (account_id, signature) > ($1, $2) ORDER BY account_id, signature LIMIT $3`;

const nsPerMs = 1_000_000n;

/** Number of ended submissions that are read for an account's newest ones. */
const endsReadMax = 5000;
// The account as an expression, so that the planner does not read all submissions of the account: it
// uses the index of open or of ended ones.
const ofAccount = "account_id || '' = $1";
const selectNewestOpen = `${select} WHERE state = 'open' AND ${ofAccount}
  ORDER BY received_ns DESC LIMIT $2`;
const selectNewestEnded = `${select} WHERE ${ofAccount} AND ended_ns >= (
    SELECT COALESCE(MIN(ended_ns), 0) FROM (
      SELECT ended_ns FROM submissions WHERE ended_ns IS NOT NULL
      ORDER BY ended_ns DESC LIMIT ${endsReadMax}) AS newest)
  ORDER BY ended_ns DESC LIMIT $2`;

/** Number of signatures in one query. Few sizes: each is a separate prepared text. */
const listSizes = [1, 8, 64] as const;
const listMax = 64;

/** Queries by size; their lists begin with $2. */
function listQueries(queryOf: (placeholders: string) => string): ReadonlyMap<number, string> {
  return new Map(
    listSizes.map((size) => {
      const placeholders = Array.from({ length: size }, (_, i) => `$${i + 2}`).join(", ");
      return [size, queryOf(placeholders)];
    }),
  );
}

const bySignature = listQueries(
  (placeholders) => `${select} WHERE account_id = $1 AND signature IN (${placeholders})
    ORDER BY bundle_id, bundle_index`,
);
const byBundle = listQueries(selectBundles);
const noBundles: readonly BundleRecord[] = [];

function* slicesOf(records: readonly SubmissionRecord[]): Generator<SubmissionRecord[]> {
  let slice: SubmissionRecord[] = [];
  for (const record of records) {
    const last = slice.at(-1);
    const isBundle = record.bundleId !== null && record.bundleId === last?.bundleId;
    if (slice.length >= takeMax && !(isBundle && record.accountId === last.accountId)) {
      yield slice;
      slice = [];
    }
    slice.push(record);
  }
  if (slice.length > 0) yield slice;
}

type SubmissionKey = Pick<SubmissionRecord, "accountId" | "signature">;

export class SqlSubmissionStore implements SubmissionStore, SubmissionLister {
  readonly #driver: SqlDriver;
  readonly #node: string;
  readonly #durability: Durability;
  readonly #signatures: SignatureCodec;

  /** `node`: name of this process; "" if the database is not shared. */
  constructor(
    driver: SqlDriver,
    signatures: SignatureCodec,
    node = "",
    durability: Durability = "durable",
  ) {
    this.#driver = driver;
    this.#signatures = signatures;
    this.#node = node;
    this.#durability = durability;
  }

  async put(
    records: readonly SubmissionRecord[],
    bundles: readonly BundleRecord[] = noBundles,
  ): Promise<void> {
    if (records.length === 0 && bundles.length === 0) return;
    const statements = records.map((record) => ({
      sql: putRecord,
      params: rowOf(record, this.#node),
    }));
    await this.#write([...statements, ...this.#tipsOf(records), ...bundles.map(additionOfBundle)]);
  }

  async add(
    records: readonly SubmissionRecord[],
    bundles: readonly BundleRecord[] = noBundles,
  ): Promise<boolean> {
    const statements = records.map((record) => ({
      sql: addRecord,
      params: rowOf(record, this.#node),
      mustChange: true,
    }));
    const additions = [...this.#tipsOf(records), ...bundles.map(additionOfBundle)];
    const { isCommitted } = await this.#write([...statements, ...additions]);
    return isCommitted;
  }

  /** The values of a record in the order of `columns`. */
  rowOf(record: SubmissionRecord): SqlValue[] {
    return rowOf(record, this.#node);
  }

  /** Inserts rows of `rowOf`, except those whose (account, signature) exists. */
  async addRows(rows: readonly (readonly SqlValue[])[]): Promise<void> {
    await this.#write(rows.map((params) => ({ sql: addRecord, params })));
  }

  /** The next signatures in the order of the primary key, at most `limit`. */
  async signaturesAfter(last: SubmissionKey, limit: number): Promise<readonly SubmissionKey[]> {
    const params = [last.accountId, last.signature, BigInt(limit)];
    const rows = await this.#driver.query(selectSignatures, params);
    return rows.map((row) => ({ accountId: textAt(row, 0), signature: textAt(row, 1) }));
  }

  async open(): Promise<SubmissionRecord[]> {
    if (this.#node === "") return (await this.#driver.query(selectOpen, [])).map(recordOrRemains);
    await this.adopt(""); // rows that were imported from an SQLite file
    return this.#openOf(this.#node);
  }

  async openNodes(): Promise<string[]> {
    if (this.#node === "") return [];
    const rows = await this.#driver.query(selectOpenNodes, [this.#node]);
    return rows.map((row) => textAt(row, 0));
  }

  async adopt(node: string): Promise<SubmissionRecord[]> {
    if (node === this.#node) return [];
    const adopted: SubmissionRecord[] = [];
    for (const slice of slicesOf(await this.#openOf(node))) {
      const statements = slice.map(
        ({ accountId, signature }): Statement => ({
          sql: takeRow,
          params: [this.#node, accountId, signature, node],
        }),
      );
      const { changes } = await this.#write(statements);
      adopted.push(...slice.filter((_, i) => changes[i] === 1));
    }
    return adopted;
  }

  async find(accountId: string, signatures: readonly string[]): Promise<SubmissionRecord[]> {
    return (await this.#findAll(bySignature, accountId, signatures)).map(recordOf);
  }

  async findBundles(accountId: string, bundleIds: readonly string[]) {
    return bundlesOf(await this.#findAll(byBundle, accountId, bundleIds));
  }

  async newest(accountId: string, limit: number): Promise<SubmissionRecord[]> {
    const params = [accountId, BigInt(limit)];
    const rows = await Promise.all([
      this.#driver.query(selectNewestOpen, params),
      this.#driver.query(selectNewestEnded, params),
    ]);
    return rows
      .flat()
      .map(recordOf)
      .toSorted((a, b) => (a.receivedNs < b.receivedNs ? 1 : -1))
      .slice(0, limit);
  }

  async forgetEndedBefore(ns: bigint): Promise<number> {
    const forgotten = await this.#forget({ sql: forgetEnded, params: [ns] });
    await this.#forget({ sql: forgetAccepted, params: [ns] });
    return forgotten;
  }

  async #forget(statement: Statement): Promise<number> {
    let forgotten = 0;
    for (;;) {
      const { changes } = await this.#driver.transaction([statement], "survives-kill");
      const [count = 0] = changes;
      forgotten += count;
      if (count < forgetMax) return forgotten;
    }
  }

  #tipsOf(records: readonly SubmissionRecord[]): Statement[] {
    return records.flatMap(({ signature, landedTip }) => {
      if (!landedTip) return [];
      const { lamports, observedNs } = landedTip;
      const tip = { signature, lamports, landedMs: Number(observedNs / nsPerMs) };
      return [additionOf(tip, this.#signatures)];
    });
  }

  /** Other nodes need no notification of submissions. */
  #write(statements: readonly Statement[]): Promise<TransactionEnd> {
    return this.#driver.transaction(statements, this.#durability, []);
  }

  async #openOf(node: string): Promise<SubmissionRecord[]> {
    return (await this.#driver.query(selectOpenOf, [node])).map(recordOrRemains);
  }

  async #findAll(
    queries: ReadonlyMap<number, string>,
    accountId: string,
    names: readonly string[],
  ): Promise<Row[]> {
    const wanted = [...new Set(names)];
    const answers: Promise<readonly Row[]>[] = [];
    for (let begin = 0; begin < wanted.length; begin += listMax) {
      const part = wanted.slice(begin, begin + listMax);
      const size = listSizes.find((fitting) => fitting >= part.length) ?? listMax;
      const last = part.at(-1) ?? "";
      const filled = [...part, ...Array.from({ length: size - part.length }, () => last)];
      answers.push(this.#driver.query(queries.get(size) ?? "", [accountId, ...filled]));
    }
    return (await Promise.all(answers)).flat();
  }
}
