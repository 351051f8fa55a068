// Pairs: two transactions with the same durable nonce value, and only one of them can land.
//
// Called by pipeline.ts and dispatch.ts: checks of a new pair before it is planned, the result of a pair
// that is submitted again, and whether one must not be sent because the other one is in a block. Each of
// the two is a submission of its own; sendIdeal and the common nonce value make them a pair.

import { ShredwayError } from "../../core/errors.ts";
import { pubkeyOf } from "../../core/primitives.ts";
import { endedError, endedOf, unknownOf } from "./admission.ts";
import { hasLanded } from "./lifecycle.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import {
  type AccountTransaction,
  isInBlock,
  isOfPair,
  type Submission,
  type TrackedTransaction,
} from "./tracked-transaction.ts";
import type { SubmissionRecord, SubmissionStore, SubmitRequest } from "./types.ts";

type Pair = readonly [SubmitRequest, SubmitRequest];

/** Throws ShredwayError "pair_invalid" unless the two have one account and one nonce value. */
export function checkPair(pair: Pair): void {
  const [first, second] = pair.map(({ transactions }) => transactions[0]);
  const isPair = pair.every(
    ({ method, isBundle, transactions, accountId }) =>
      method === "sendIdeal" &&
      !isBundle &&
      transactions.length === 1 &&
      accountId === pair[0].accountId,
  );
  const isOfOneNonce =
    first?.nonce &&
    second?.nonce &&
    Buffer.compare(first.nonce.account, second.nonce.account) === 0 &&
    Buffer.compare(first.nonce.authority, second.nonce.authority) === 0 &&
    Buffer.compare(first.lifetime, second.lifetime) === 0;
  if (isPair && isOfOneNonce && first.signature !== second.signature) return;
  throw new ShredwayError(
    "pair_invalid",
    "invalid pair: expected two different transactions of one account with the same durable nonce, authority and value",
  );
}

/**
 * The ended transactions of a pair if one has landed and the other is known. null: neither has
 * ended. Throws ShredwayError "no_route" if neither can land any more.
 */
export function fulfilledBefore(
  index: SubmissionIndex,
  pair: Pair,
): readonly TrackedTransaction[] | null {
  const ended = pair.flatMap((request) => endedOf(index, request));
  if (ended.length === 0) return null;
  const landed = ended.find(({ end }) => hasLanded(end));
  const isKnown = pair.every(({ accountId, transactions: [facts] }) => {
    const name = facts?.signature ?? "";
    const isOpen = index.open(name)?.views.has(accountId) === true;
    return isOpen || ended.some(({ signature }) => signature === name);
  });
  if (landed && isKnown) return ended;
  const outcome = landed ?? ended[0];
  throw endedError(outcome?.signature, outcome?.end?.kind, outcome?.end?.reason);
}

/** As `fulfilledBefore`, for records of the store. `isKnown`: the account has submitted both before. */
export function isFulfilled(ended: readonly SubmissionRecord[], isKnown: boolean): boolean {
  return isKnown && ended.some(({ state }) => hasLanded({ kind: state }));
}

/**
 * Throws ShredwayError "nonce_in_use" while another pair with the same nonce value is being sent, and
 * "no_route" if a transaction landed with it and the pair is new. A pair whose time has ended at `nowMs`
 * (monotonic) is no longer sent and does not block a new one: still only one transaction of both pairs can land.
 */
export function checkNonceFree(index: SubmissionIndex, pair: Pair, nowMs: number): void {
  const [first] = pair;
  const [facts] = first.transactions;
  if (!facts?.nonce) return;
  const account = pubkeyOf(facts.nonce.account);
  const isNew = pair.some((request) => unknownOf(index, request).length > 0);
  if (isNew && index.landedSibling({ facts }) !== undefined) {
    throw new ShredwayError(
      "no_route",
      `durable nonce ${account}: a transaction landed with this value; read the new value with getNonce`,
    );
  }
  const own = new Set(pair.map(({ transactions }) => transactions[0]?.signature));
  const isUnderWay = (view: AccountTransaction): boolean =>
    isOfPair(view) && view.submission.sending.untilMs >= nowMs;
  const others = index.pairOf(facts).filter(({ signature, views }) => {
    return !own.has(signature) && views.all.some(isUnderWay);
  });
  if (others.length === 0) return;
  const named = others.filter(({ views }) => {
    const view = views.get(first.accountId);
    return view !== undefined && isUnderWay(view);
  });
  const names = named.map(({ signature }) => signature).join(" and ");
  throw new ShredwayError(
    "nonce_in_use",
    `durable nonce ${account}: another pair with this value is being sent (${names || "of another account"})`,
  );
}

/** The request with the name of the other one of its pair, which the store keeps. */
export function pairedWith(request: SubmitRequest, { transactions }: SubmitRequest): SubmitRequest {
  const [other] = transactions;
  return other
    ? { ...request, options: { ...request.options, pairedWith: other.signature } }
    : request;
}

/**
 * Finds restored submissions whose pair ended before a kill: if the other one landed, it is the one that
 * supersedes them. Rejects if the store fails.
 */
export async function noteLandedSiblings(
  index: SubmissionIndex,
  store: Pick<SubmissionStore, "find">,
  restored: readonly Submission[],
): Promise<void> {
  const open = new Set(restored.flatMap(({ transactions }) => signaturesOf(transactions)));
  const alone = new Map<string, Map<string, Submission>>();
  for (const submission of restored) {
    const { accountId, options } = submission;
    const { pairedWith: other } = options;
    if (other === undefined || open.has(other)) continue;
    const ofAccount = alone.get(accountId) ?? new Map<string, Submission>();
    alone.set(accountId, ofAccount.set(other, submission));
  }
  for (const [accountId, ofAccount] of alone) {
    for (const { signature, state } of await store.find(accountId, [...ofAccount.keys()])) {
      const [facts] = ofAccount.get(signature)?.transactions ?? [];
      if (facts && hasLanded({ kind: state })) index.noteLanded(facts, signature, accountId);
    }
  }
}

function signaturesOf(transactions: readonly { readonly signature: string }[]): string[] {
  return transactions.map(({ signature }) => signature);
}

/**
 * Whether the other one of its pair was observed in a block after `sinceMs`, or a transaction landed with
 * its nonce value.
 */
export function isSpent(
  index: SubmissionIndex,
  { method, views }: Submission,
  sinceMs: number,
): boolean {
  if (method !== "sendIdeal") return false;
  return views.some(({ tracked }) => {
    if (index.landedSibling(tracked) !== undefined) return true;
    const others = index.pairOf(tracked.facts).filter((other) => other !== tracked);
    return others.some((other) => isInBlock(other, sinceMs));
  });
}
