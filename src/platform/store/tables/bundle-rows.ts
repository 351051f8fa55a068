// Bundles as rows of the database, and back.
//
// Used by submission-store.ts, which writes a bundle in the transaction of its submissions, and by the replay of
// the journal. The row of a submission has only its newest bundle; a row here has the signatures of all.

import type { BundleRecord } from "../../../gateway/submission/types.ts";
import { integerAt, type Row, type Statement, textAt } from "../driver.ts";

/** A bundle that is accepted again stays for the whole history again. */
const putBundle = `INSERT INTO bundles (account_id, bundle_id, accepted_ns, signatures)
  VALUES ($1, $2, $3, $4)
  ON CONFLICT (account_id, bundle_id) DO UPDATE SET accepted_ns = excluded.accepted_ns
  WHERE bundles.accepted_ns < excluded.accepted_ns`;

/** Deletes at most `limit` bundles that were accepted before $1. */
export function forgetBundles(limit: number): string {
  return `DELETE FROM bundles WHERE accepted_ns < $1 AND (account_id, bundle_id) IN
    (SELECT account_id, bundle_id FROM bundles WHERE accepted_ns < $1 LIMIT ${limit})`;
}

/**
 * The bundles of account $1 among `placeholders`, for `bundlesOf`: their own rows, and the submissions whose
 * newest bundle they are.
 */
export function selectBundles(placeholders: string): string {
  const where = `WHERE account_id = $1 AND bundle_id IN (${placeholders})`;
  return `SELECT bundle_id, -1, signatures FROM bundles ${where}
    UNION ALL SELECT bundle_id, bundle_index, signature FROM submissions ${where}`;
}

export function additionOfBundle(bundle: BundleRecord): Statement {
  const { accountId, bundleId, acceptedNs, signatures } = bundle;
  return { sql: putBundle, params: [accountId, bundleId, acceptedNs, signatures.join(",")] };
}

/** Rows of `selectBundles`. An own row is complete; the submissions alone may not be. */
export function bundlesOf(rows: readonly Row[]): Pick<BundleRecord, "bundleId" | "signatures">[] {
  const found = new Map<string, readonly string[]>();
  const complete = new Set<string>();
  const ordered = rows.toSorted((a, b) => Number(integerAt(a, 1) - integerAt(b, 1)));
  for (const row of ordered) {
    const [bundleId, index, text] = [textAt(row, 0), integerAt(row, 1), textAt(row, 2)];
    if (index < 0n) {
      found.set(bundleId, text.split(","));
      complete.add(bundleId);
    } else if (!complete.has(bundleId)) {
      found.set(bundleId, [...(found.get(bundleId) ?? []), text]);
    }
  }
  return [...found].map(([bundleId, signatures]) => ({ bundleId, signatures }));
}
