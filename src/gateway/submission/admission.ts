// Admission: what does memory say to a request before it is planned?
//
// Pure look-ups, on the path of every call. A transaction that has landed is accepted again without
// being sent, as a node does it; one that can never land any more is refused, for no route takes it.

import { ShredwayError } from "../../core/errors.ts";
import { hasLanded } from "./lifecycle.ts";
import type { PipelineLimits } from "./limits.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import type { Submission, TrackedTransaction } from "./tracked-transaction.ts";
import type { SubmitRequest } from "./types.ts";

/**
 * All transactions of the request when all of them landed before; null: none of them has ended.
 * Throws ShredwayError "no_route" when one of them ended in a way that leaves no hope for the others.
 */
export function landedBefore(
  memory: SubmissionIndex,
  request: SubmitRequest,
): readonly TrackedTransaction[] | null {
  const ended = endedOf(memory, request);
  if (ended.length === 0) return null;
  const dead = ended.find(({ end }) => !hasLanded(end));
  const told = dead ?? (ended.length < request.transactions.length ? ended[0] : undefined);
  if (told === undefined) return ended;
  throw deadError(told.signature, told.end?.kind, told.end?.reason);
}

/** Those of the request that ended; that routes refused one then says nothing about those of now. */
export function endedOf(
  memory: SubmissionIndex,
  { transactions }: SubmitRequest,
): TrackedTransaction[] {
  return transactions.flatMap(({ signature }) => {
    const tracked = memory.ended(signature);
    return tracked && tracked.end?.kind !== "rejected" ? [tracked] : [];
  });
}

/** A transaction can land no more, or not as part of this bundle. */
export function deadError(
  signature?: string,
  state?: string,
  reason?: string | null,
): ShredwayError {
  return new ShredwayError(
    "no_route",
    `transaction ${signature}: expected one that can still land as it was submitted, got one that ended as ${state} (${reason})`,
  );
}

/** Signatures that the account has not in memory. */
export function unknownOf(
  memory: SubmissionIndex,
  { accountId, transactions }: SubmitRequest,
): string[] {
  const unknown: string[] = [];
  for (const { signature } of transactions) {
    if (!memory.open(signature)?.views.has(accountId)) unknown.push(signature);
  }
  return unknown;
}

/** The account's open submission that the request only repeats. */
export function repeated(memory: SubmissionIndex, request: SubmitRequest): Submission | null {
  const { accountId, transactions } = request;
  const [first] = transactions;
  const view = first && memory.open(first.signature)?.views.get(accountId);
  if (!view || view.submission.sending.isOver) return null;
  return view.submission.isSameAs(request) ? view.submission : null;
}

/** Throws ShredwayError "bundle_invalid" for a transaction that occurs twice, else "overloaded". */
export function checkRoom(
  memory: SubmissionIndex,
  request: Pick<SubmitRequest, "accountId" | "transactions">,
  { openMax, openPerAccountMax }: Pick<PipelineLimits, "openMax" | "openPerAccountMax">,
): void {
  const { transactions, accountId } = request;
  const own = memory.openCountOf(accountId);
  if (own + transactions.length > openPerAccountMax) {
    throw new ShredwayError(
      "overloaded",
      `open transactions of this account: expected at most ${openPerAccountMax}, got ${own} and ${transactions.length} more`,
    );
  }
  let fresh = 0;
  for (const { signature } of transactions) if (!memory.open(signature)) fresh++;
  if (memory.openCount + fresh > openMax) {
    throw new ShredwayError(
      "overloaded",
      `open transactions: expected at most ${openMax}, got ${memory.openCount} and ${fresh} more`,
    );
  }
  if (transactions.length === 1) return;
  if (new Set(transactions.map(({ signature }) => signature)).size < transactions.length) {
    throw new ShredwayError("bundle_invalid", "bundle: expected every transaction once");
  }
}

/** Attempts of the account for these transactions so far: the count goes on. */
export function attemptsBefore(
  memory: SubmissionIndex,
  { accountId, transactions }: SubmitRequest,
): number {
  let attempts = 0;
  for (const { signature } of transactions) {
    const view = memory.open(signature)?.views.get(accountId);
    attempts = Math.max(attempts, view?.submission.attempts ?? 0);
  }
  return attempts;
}
