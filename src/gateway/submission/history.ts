// History: statuses of an account's transactions and bundles.
//
// Memory answers first, because it is newer than the store.

import type { SubmissionIndex } from "./submission-index.ts";
import { bundleIdOf, statusOf } from "./tracked-transaction.ts";
import type { BundleStatus, SubmissionStore, TransactionStatus } from "./types.ts";

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

/** Signatures by bundle id, in order; bundles that are unknown are missing. */
async function signaturesOf(
  index: SubmissionIndex,
  store: Found,
  accountId: string,
  bundleIds: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const known = new Map<string, readonly string[]>();
  const missing: string[] = [];
  for (const bundleId of new Set(bundleIds)) {
    const bundle = index.bundle(accountId, bundleId);
    if (bundle) known.set(bundleId, bundle.signatures);
    else missing.push(bundleId);
  }
  if (missing.length === 0) return known;
  for (const { bundleId, signatures } of await store.findBundles(accountId, missing)) {
    // A part alone would say nothing about the bundle: it may have landed without the rest.
    if (bundleIdOf(signatures) === bundleId) known.set(bundleId, signatures);
  }
  return known;
}

/** In the order of `bundleIds`; null: the account has not submitted it, or not all of it is known any more. */
export async function historyOfBundles(
  index: SubmissionIndex,
  store: Found,
  accountId: string,
  bundleIds: readonly string[],
): Promise<(BundleStatus | null)[]> {
  const bundles = await signaturesOf(index, store, accountId, bundleIds);
  const wanted = [...new Set([...bundles.values()].flat())];
  const found = await historyOfTransactions(index, store, accountId, wanted);
  const statuses = new Map(wanted.map((signature, i) => [signature, found[i] ?? null]));
  return bundleIds.map((bundleId) => {
    const signatures = bundles.get(bundleId) ?? [];
    const transactions = signatures.flatMap((signature) => statuses.get(signature) ?? []);
    const isWhole = transactions.length > 0 && transactions.length === signatures.length;
    return isWhole ? { bundleId, transactions } : null;
  });
}
