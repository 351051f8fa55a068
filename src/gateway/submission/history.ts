// History: statuses of an account's transactions and bundles.
//
// Memory answers first, because it is newer than the store.

import type { SubmissionIndex } from "./submission-index.ts";
import { bundleIdOf, statusOf } from "./tracked-transaction.ts";
import type {
  BundleStatus,
  SubmissionRecord,
  SubmissionStore,
  TransactionStatus,
} from "./types.ts";

type Found = Pick<SubmissionStore, "find" | "findBundles">;

/** In the order of `signatures`; null: the account has not submitted it. */
export async function historyOfTransactions(
  index: SubmissionIndex,
  store: Found,
  accountId: string,
  signatures: readonly string[],
): Promise<(TransactionStatus | null)[]> {
  const known = signatures.map((signature) => index.view(accountId, signature)?.status ?? null);
  const missing = [...new Set(signatures.filter((_, i) => known[i] === null))];
  if (missing.length === 0) return known;
  const records = await store.find(accountId, missing);
  const found = new Map(records.map((record) => [record.signature, statusOf(record)]));
  return known.map((status, i) => status ?? found.get(signatures[i] ?? "") ?? null);
}

/**
 * null: a transaction is missing, because a newer bundle with it has its record. The others alone would say
 * nothing about the bundle: they may have landed without it.
 */
function wholeBundle(
  bundleId: string,
  transactions: readonly TransactionStatus[],
): BundleStatus | null {
  const isWhole = bundleIdOf(transactions.map(({ signature }) => signature)) === bundleId;
  return isWhole ? { bundleId, transactions } : null;
}

function storedBundle(bundleId: string, records: readonly SubmissionRecord[]): BundleStatus | null {
  const ordered = records
    .filter((record) => record.bundleId === bundleId)
    .toSorted((a, b) => a.bundleIndex - b.bundleIndex);
  return wholeBundle(bundleId, ordered.map(statusOf));
}

/** In the order of `bundleIds`; null: the account has not submitted it, or not all of it is known any more. */
export async function historyOfBundles(
  index: SubmissionIndex,
  store: Found,
  accountId: string,
  bundleIds: readonly string[],
): Promise<(BundleStatus | null)[]> {
  const known = bundleIds.map((bundleId): BundleStatus | null => {
    const views = index.bundle(accountId, bundleId);
    return views
      ? wholeBundle(
          bundleId,
          views.map(({ status }) => status),
        )
      : null;
  });
  const missing = [...new Set(bundleIds.filter((_, i) => known[i] === null))];
  if (missing.length === 0) return known;
  const records = await store.findBundles(accountId, missing);
  return known.map((bundle, i) => bundle ?? storedBundle(bundleIds[i] ?? "", records));
}
