// Admission: checks a request against the transactions in memory before it is planned.
//
// Pure lookups on the path of every call. A transaction that has landed is accepted again without being
// sent, as a node does it. One that can no longer land is refused.

import { ShredwayError } from "../../core/errors.ts";
import { hasLanded } from "./lifecycle.ts";
import type { PipelineLimits } from "./limits.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import type { Submission, TrackedTransaction } from "./tracked-transaction.ts";
import type { SubmitRequest } from "./types.ts";

/**
 * The request's transactions, if all of them have landed; null: none of them has ended. Throws
 * ShredwayError "no_route" if one of them ended so that the others can no longer land.
 */
export function landedBefore(
  index: SubmissionIndex,
  request: SubmitRequest,
): readonly TrackedTransaction[] | null {
  const ended = endedOf(index, request);
  if (ended.length === 0) return null;
  const dead = ended.find(({ end }) => !hasLanded(end));
  const duplicate = dead ?? (ended.length < request.transactions.length ? ended[0] : undefined);
  if (duplicate === undefined) return ended;
  throw endedError(duplicate.signature, duplicate.end?.kind, duplicate.end?.reason);
}

/** Transactions of the request that ended. Rejected ones are left out: they may be submitted again. */
export function endedOf(
  index: SubmissionIndex,
  { transactions }: SubmitRequest,
): TrackedTransaction[] {
  return transactions.flatMap(({ signature }) => {
    const tracked = index.ended(signature);
    return tracked && tracked.end?.kind !== "rejected" ? [tracked] : [];
  });
}

/** The error for a transaction that can no longer land, or not as part of this bundle. */
export function endedError(
  signature?: string,
  state?: string,
  reason?: string | null,
): ShredwayError {
  return new ShredwayError(
    "no_route",
    `transaction ${signature} has ended as ${state} (${reason}) and cannot land again; sign a new one`,
  );
}

/** Signatures of the request that the account has not submitted yet, as far as memory knows. */
export function unknownOf(
  index: SubmissionIndex,
  { accountId, transactions }: SubmitRequest,
): string[] {
  const unknown: string[] = [];
  for (const { signature } of transactions) {
    if (!index.open(signature)?.views.has(accountId)) unknown.push(signature);
  }
  return unknown;
}

/** The account's open submission that the request repeats; null: it is new. */
export function repeated(index: SubmissionIndex, request: SubmitRequest): Submission | null {
  const { accountId, transactions } = request;
  const [first] = transactions;
  const view = first && index.open(first.signature)?.views.get(accountId);
  if (!view || view.submission.sending.isOver) return null;
  return view.submission.isSameAs(request) ? view.submission : null;
}

/** Throws ShredwayError "overloaded", or "bundle_invalid" if a transaction occurs twice. */
export function checkLimits(
  index: SubmissionIndex,
  request: Pick<SubmitRequest, "accountId" | "transactions">,
  { openMax, openPerAccountMax }: Pick<PipelineLimits, "openMax" | "openPerAccountMax">,
): void {
  const { transactions, accountId } = request;
  const own = index.openCountOf(accountId);
  if (own + transactions.length > openPerAccountMax) {
    throw new ShredwayError(
      "overloaded",
      `too many open transactions of this account: ${own}, and ${transactions.length} more; limit ${openPerAccountMax}`,
    );
  }
  let fresh = 0;
  for (const { signature } of transactions) if (!index.open(signature)) fresh++;
  if (index.openCount + fresh > openMax) {
    throw new ShredwayError(
      "overloaded",
      `too many open transactions: ${index.openCount}, and ${fresh} more; limit ${openMax}`,
    );
  }
  if (transactions.length === 1) return;
  if (new Set(transactions.map(({ signature }) => signature)).size < transactions.length) {
    throw new ShredwayError("bundle_invalid", "the bundle contains a transaction twice");
  }
}

/** Number of the account's attempts for these transactions so far. */
export function attemptsBefore(
  index: SubmissionIndex,
  { accountId, transactions }: SubmitRequest,
): number {
  let attempts = 0;
  for (const { signature } of transactions) {
    const view = index.open(signature)?.views.get(accountId);
    attempts = Math.max(attempts, view?.submission.attempts ?? 0);
  }
  return attempts;
}
