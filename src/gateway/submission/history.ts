// History: statuses of an account's transactions and bundles.
//
// Memory answers first, because it is newer than the store.

import type { SubmissionIndex } from "./submission-index.ts";
import { statusOf } from "./tracked-transaction.ts";
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

function bundleOf(bundleId: string, records: readonly SubmissionRecord[]): BundleStatus | null {
  if (records.length === 0) return null;
  const ordered = records.toSorted((a, b) => a.bundleIndex - b.bundleIndex);
  return { bundleId, transactions: ordered.map(statusOf) };
}

/** In the order of `bundleIds`; null: the account has not submitted it. */
export async function historyOfBundles(
  index: SubmissionIndex,
  store: Found,
  accountId: string,
  bundleIds: readonly string[],
): Promise<(BundleStatus | null)[]> {
  const known = bundleIds.map((bundleId): BundleStatus | null => {
    const views = index.bundle(accountId, bundleId);
    return views ? { bundleId, transactions: views.map(({ status }) => status) } : null;
  });
  const missing = [...new Set(bundleIds.filter((_, i) => known[i] === null))];
  if (missing.length === 0) return known;
  const records = await store.findBundles(accountId, missing);
  return known.map((bundle, i) => {
    const bundleId = bundleIds[i] ?? "";
    return (
      bundle ??
      bundleOf(
        bundleId,
        records.filter((record) => record.bundleId === bundleId),
      )
    );
  });
}
