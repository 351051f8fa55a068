// The calls of customers to the gateway, and the reasons with which its rules refuse them.

import type { RawCall } from "../http/request-forms.ts";
import type { KeyKind } from "./key-kinds.ts";
import { auctionUnitPrice, costlyTip, type PartnerName } from "./partners.ts";
import type { SentTransaction } from "./transactions.ts";

export const sendMethods = ["sendTransaction", "sendBundle", "sendBatch"] as const;
export type SendMethod = (typeof sendMethods)[number] | "sendIdeal" | "sendAlt";

/** Defects of a pair of transactions that share a nonce. */
export const pairDefects = [
  "other value",
  "other authority",
  "recent blockhash",
  "no price",
  "same twice",
] as const;
export type PairDefect = (typeof pairDefects)[number];

/** The nonce of the two transactions of sendIdeal. */
export interface PairNonce {
  /** In hex. */
  readonly account: string;
  readonly value: string;
  /** The customer whose account the service manages; null: it belongs to a customer's wallet. */
  readonly managedFor: number | null;
  readonly defect: PairDefect | null;
}

export interface Call {
  readonly customer: number;
  readonly key: KeyKind;
  readonly method: SendMethod;
  readonly transactions: readonly SentTransaction[];
  /** sendTransaction; null: absent. */
  readonly maxRetries: number | null;
  /** A program sends it that repeats the head of its requests. */
  readonly isSteady?: boolean;
  /** sendAlt. */
  readonly enableFallback?: boolean;
  /** sendIdeal. */
  readonly pair?: PairNonce;
}

/** These methods take one transaction, and not a list. */
function takesOne(method: SendMethod): boolean {
  return method === "sendTransaction" || method === "sendAlt";
}

export function paramsOf({ method, transactions, maxRetries, enableFallback }: Call): unknown[] {
  const texts = transactions.map(({ wire }) => wire.toString("base64"));
  const options = {
    encoding: "base64",
    ...(method === "sendTransaction" && { skipPreflight: true }),
    ...(maxRetries !== null && method === "sendTransaction" && { maxRetries }),
    ...(enableFallback !== undefined && { enableFallback }),
  };
  return [takesOne(method) ? texts[0] : texts, options];
}

/** The same call for the endpoints without JSON. */
export function rawOf({ method, transactions, maxRetries, enableFallback }: Call): RawCall {
  const wires = transactions.map(({ wire }) => wire);
  const resends = method === "sendTransaction" ? maxRetries : null; // no other method has the parameter
  return { method, wires, takesOne: takesOne(method), maxRetries: resends, enableFallback };
}

/** The signatures in the result of a call. */
export function signaturesIn(method: SendMethod, result: unknown): unknown {
  return method === "sendTransaction" ? [result] : result;
}

/** Whether only alternative partners may get the transactions. */
export function isForPartnersOnly({ method, enableFallback }: Call): boolean {
  return method === "sendAlt" && enableFallback !== true;
}

/** If one of these partners works, the call cannot be refused. */
export function fittingPartners(call: Call): PartnerName[] {
  if (isForPartnersOnly(call)) return ["auction"];
  if (call.method === "sendBundle") return ["builder"];
  const tip = Math.min(...call.transactions.map((transaction) => transaction.tip));
  return ["staked", "builder", ...(tip >= costlyTip ? (["costly"] as const) : [])];
}

/**
 * The reason with which the rules refuse a call with this minimum tip, whatever the state of the world; null:
 * none.
 */
export function refusalOf(call: Call, tipMinimum: number): string | null {
  const { key, method, transactions, pair } = call;
  if (key === "reader") return "scope_missing";
  if (key !== "own") return "unauthorized";
  const isBatch = method === "sendBatch";
  const { defect } = pair ?? {};
  if (defect && defect !== "other authority" && defect !== "recent blockhash")
    return "pair_invalid";
  const tipProblem = tipProblemOf(call, tipMinimum);
  if (tipProblem !== null) return isBatch ? "batch_refused" : tipProblem;
  const isUnderpaid = transactions.some(({ unitPrice }) => unitPrice < auctionUnitPrice);
  if (method === "sendAlt" && isUnderpaid) return "priority_fee_too_low";
  if (pair && pair.managedFor !== null && pair.managedFor !== call.customer) return "pair_invalid";
  const isForged = transactions.some((transaction) => transaction.isForged);
  const forgery = isBatch ? "batch_refused" : "signature_invalid";
  const nonceProblem =
    defect === "other authority" ? "pair_invalid" : defect ? "nonce_stale" : null;
  // The service compares the value before it signs, and verifies after that.
  const isManaged = typeof pair?.managedFor === "number";
  return (isForged && !isManaged ? forgery : nonceProblem) ?? (isForged ? forgery : null);
}

function tipProblemOf({ method, transactions }: Call, tipMinimum: number): string | null {
  const bundleTip = transactions.reduce((sum, { tip }) => sum + tip, 0);
  const tips = method === "sendBundle" ? [bundleTip] : transactions.map(({ tip }) => tip);
  const poor = tips.find((tip) => tip < tipMinimum);
  if (poor === undefined) return null;
  return poor === 0 ? "tip_missing" : "tip_too_low";
}
