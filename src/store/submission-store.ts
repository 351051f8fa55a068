// Submissions in the database.
//
// The SubmissionStore of submission/types.ts, over any SqlDriver. Changes survive a kill of the
// process; a loss of power may take the last ones, for a wait for the disk would stand between a
// transaction and its leader.

import type { SubmissionRecord, SubmissionStore } from "../submission/types.ts";
import type { Row, SqlDriver } from "./driver.ts";
import { recordOf, recordOrRemains, rowOf, submissionColumns } from "./submission-rows.ts";

const columns = submissionColumns.split(/,\s*/);
const insert = `INSERT INTO submissions (${columns.join(", ")})
  VALUES (${columns.map((_, i) => `$${i + 1}`).join(", ")})
  ON CONFLICT (account_id, signature)`;
const addRecord = `${insert} DO NOTHING`;
const putRecord = `${insert} DO UPDATE SET
  ${columns
    .slice(2)
    .map((column) => `${column} = excluded.${column}`)
    .join(", ")}
  WHERE submissions.state IN ('open', 'rejected') OR submissions.state = excluded.state`;
const select = `SELECT ${submissionColumns} FROM submissions`;
const selectOpen = `${select} WHERE state = 'open' ORDER BY received_ns, account_id, bundle_id, bundle_index`;
/** In slices, so that nobody waits long behind it. */
const forgetMax = 500;
const forgetEnded = `DELETE FROM submissions WHERE (account_id, signature) IN
  (SELECT account_id, signature FROM submissions WHERE ended_ns < $1 LIMIT ${forgetMax})`;

/** Names that one query asks for. Few sizes: each is a text of its own, prepared once. */
const listSizes = [1, 8, 64] as const;
const listMax = 64;

function listQuery(column: "signature" | "bundle_id", size: number): string {
  const places = Array.from({ length: size }, (_, i) => `$${i + 2}`).join(", ");
  return `${select} WHERE account_id = $1 AND ${column} IN (${places})
    ORDER BY bundle_id, bundle_index`;
}

const bySignature = new Map(listSizes.map((size) => [size, listQuery("signature", size)]));
const byBundle = new Map(listSizes.map((size) => [size, listQuery("bundle_id", size)]));

export class SqlSubmissionStore implements SubmissionStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async put(records: readonly SubmissionRecord[]): Promise<void> {
    if (records.length === 0) return;
    const statements = records.map((record) => ({ sql: putRecord, params: rowOf(record) }));
    await this.#driver.transaction(statements, "survives-kill");
  }

  async add(records: readonly SubmissionRecord[]): Promise<boolean> {
    const statements = records.map((record) => ({
      sql: addRecord,
      params: rowOf(record),
      mustChange: true,
    }));
    const { isCommitted } = await this.#driver.transaction(statements, "survives-kill");
    return isCommitted;
  }

  async open(): Promise<SubmissionRecord[]> {
    return (await this.#driver.query(selectOpen, [])).map(recordOrRemains);
  }

  find(accountId: string, signatures: readonly string[]): Promise<SubmissionRecord[]> {
    return this.#findAll(bySignature, accountId, signatures);
  }

  findBundles(accountId: string, bundleIds: readonly string[]): Promise<SubmissionRecord[]> {
    return this.#findAll(byBundle, accountId, bundleIds);
  }

  async forgetEndedBefore(ns: bigint): Promise<number> {
    const statement = { sql: forgetEnded, params: [ns] };
    let forgotten = 0;
    for (;;) {
      const { changes } = await this.#driver.transaction([statement], "survives-kill");
      const [count = 0] = changes;
      forgotten += count;
      if (count < forgetMax) return forgotten;
    }
  }

  async #findAll(
    queries: ReadonlyMap<number, string>,
    accountId: string,
    names: readonly string[],
  ): Promise<SubmissionRecord[]> {
    const wanted = [...new Set(names)];
    const answers: Promise<readonly Row[]>[] = [];
    for (let begin = 0; begin < wanted.length; begin += listMax) {
      const part = wanted.slice(begin, begin + listMax);
      const size = listSizes.find((fitting) => fitting >= part.length) ?? listMax;
      const last = part.at(-1) ?? "";
      const filled = [...part, ...Array.from({ length: size - part.length }, () => last)];
      answers.push(this.#driver.query(queries.get(size) ?? "", [accountId, ...filled]));
    }
    return (await Promise.all(answers)).flat().map(recordOf);
  }
}
