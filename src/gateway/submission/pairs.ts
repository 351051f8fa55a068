// Pairs: two transactions of one durable nonce value, of which only one can land.
//
// Called by pipeline.ts and dispatch.ts. What memory says to a new pair before it is planned, what a pair has come to
// that is sent again, and which of two must not be sent while the other one is in a block. Each of them
// is a submission of its own; what makes them a pair is the nonce, and that the account said so.

import { ShredwayError } from "../../core/errors.ts";
import { pubkeyOf } from "../../core/primitives.ts";
import { deadError, endedOf, unknownOf } from "./admission.ts";
import { hasLanded } from "./lifecycle.ts";
import type { SubmissionIndex } from "./submission-index.ts";
import {
  type AccountTransaction,
  isInBlock,
  isOfPair,
  type Submission,
  type TrackedTransaction,
} from "./tracked-transaction.ts";
import type { SubmissionRecord, SubmitRequest } from "./types.ts";

type Pair = readonly [SubmitRequest, SubmitRequest];

/** Throws ShredwayError "pair_invalid": whatever made them looked at something else. */
export function checkPair(pair: Pair): void {
  const [first, second] = pair.map(({ transactions }) => transactions[0]);
  const isMade = pair.every(
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
  if (isMade && isOfOneNonce && first.signature !== second.signature) return;
  throw new ShredwayError(
    "pair_invalid",
    "pair: expected two transactions of one account and one value of one durable nonce, got others",
  );
}

/**
 * What ended of a pair that was fulfilled before: one of it landed, and the account, or memory, knows
 * the other one. Null: none of it has ended. Throws ShredwayError "no_route" when none can land any more.
 */
export function fulfilledBefore(
  memory: SubmissionIndex,
  pair: Pair,
): readonly TrackedTransaction[] | null {
  const ended = pair.flatMap((request) => endedOf(memory, request));
  if (ended.length === 0) return null;
  const landed = ended.find(({ end }) => hasLanded(end));
  const isKnown = pair.every(({ accountId, transactions: [facts] }) => {
    const name = facts?.signature ?? "";
    const isOpen = memory.open(name)?.views.has(accountId) === true;
    return isOpen || ended.some(({ signature }) => signature === name);
  });
  if (landed && isKnown) return ended;
  const told = landed ?? ended[0];
  throw deadError(told?.signature, told?.end?.kind, told?.end?.reason);
}

/** As `fulfilledBefore`, of what the store knows: `isKnown`, none of the pair is new to the account. */
export function isFulfilled(ended: readonly SubmissionRecord[], isKnown: boolean): boolean {
  return isKnown && ended.some(({ state }) => hasLanded({ kind: state }));
}

/**
 * Throws ShredwayError "nonce_in_use" while another pair of the same nonce value is under way, "no_route"
 * when something landed with it and the pair is not open already. `sentSinceNs`: one that was submitted
 * before is not sent any more, and may make way for a better one: of both pairs one transaction can land.
 */
export function checkNonceFree(memory: SubmissionIndex, pair: Pair, sentSinceNs: bigint): void {
  const [first] = pair;
  const [facts] = first.transactions;
  if (!facts?.nonce) return;
  const account = pubkeyOf(facts.nonce.account);
  const isNew = pair.some((request) => unknownOf(memory, request).length > 0);
  if (isNew && memory.landedSibling({ facts }) !== undefined) {
    throw new ShredwayError(
      "no_route",
      `durable nonce ${account}: expected a value that was not used yet, got one that a transaction landed with`,
    );
  }
  const own = new Set(pair.map(({ transactions }) => transactions[0]?.signature));
  const isUnderWay = (view: AccountTransaction): boolean =>
    isOfPair(view) && view.submission.receivedNs >= sentSinceNs;
  const others = memory.pairOf(facts).filter(({ signature, views }) => {
    return !own.has(signature) && [...views.values()].some(isUnderWay);
  });
  if (others.length === 0) return;
  const named = others.filter(({ views }) => {
    const view = views.get(first.accountId);
    return view !== undefined && isUnderWay(view);
  });
  const names = named.map(({ signature }) => signature).join(" and ");
  throw new ShredwayError(
    "nonce_in_use",
    `durable nonce ${account}: expected no other pair of its present value under way, got ${names || "one of another account"}`,
  );
}

/**
 * Whether the other one of its pair is in a block that may stay (observed after `sinceMs`), or something
 * landed with its nonce.
 */
export function isSpent(
  memory: SubmissionIndex,
  { method, views }: Submission,
  sinceMs: number,
): boolean {
  if (method !== "sendIdeal") return false;
  return views.some(({ tracked }) => {
    if (memory.landedSibling(tracked) !== undefined) return true;
    const others = memory.pairOf(tracked.facts).filter((other) => other !== tracked);
    return others.some((other) => isInBlock(other, sinceMs));
  });
}
