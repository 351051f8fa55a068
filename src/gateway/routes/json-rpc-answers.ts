// Interprets a partner's response: HTTP status and JSON-RPC, one verdict per call.
//
// Called by the dialects. Responses are untrusted text of at most 64 kB: an undocumented shape is a
// failure, never an exception. The reasons are stable identifiers. Partner texts are searched only
// for a few phrases that contradict the response's code.

import { isObject } from "../../core/values.ts";
import type { OutboundTransaction } from "../submission/types.ts";
import type { HttpAnswer, Reading, Verdict } from "./dialect.ts";

export const acknowledged: Verdict = { kind: "acknowledged" };

function refused(reason: string, isFinal = false): Verdict {
  return { kind: "refused", reason, isFinal };
}

function failed(reason: string): Verdict {
  return { kind: "failed", reason };
}

/** The same verdict for every transaction. */
function all(
  batch: readonly OutboundTransaction[],
  verdict: Verdict,
  fault: string | null,
): Reading {
  return { verdicts: batch.map(() => verdict), fault };
}

const alreadyProcessed = /already[ _]?(been[ _]?)?(processed|submitted|received|known|landed)/i;
const blockhashUnknown = /blockhash[ _]?not[ _]?found/i;
const rateLimited = /rate[ _-]?limit|too many requests/i;

/** Error codes with which a node always rejects these bytes. */
const finalCodes: ReadonlyMap<number, string> = new Map([
  [-32_602, "params_invalid"],
  [-32_003, "signature_invalid"],
  [-32_006, "precompile_invalid"],
  [-32_013, "signature_invalid"],
  [-32_015, "transaction_version"],
]);
const passingCodes: ReadonlyMap<number, string> = new Map([
  [-32_700, "request_invalid"],
  [-32_600, "request_invalid"],
  [-32_601, "method_unknown"],
  [-32_603, "partner_error"],
  [-32_002, "preflight_failed"],
  [-32_005, "node_behind"],
  [-32_016, "node_behind"],
  [-32_097, "rate_limited"],
  [-32_429, "rate_limited"],
  [429, "rate_limited"],
]);

/** The verdict for the error object of one call. */
function verdictOfError(error: unknown): Verdict {
  if (!isObject(error)) {
    return typeof error === "string"
      ? verdictOfText(error, "partner_error")
      : failed("answer_invalid");
  }
  const { code, message, data } = error;
  const text = typeof message === "string" ? message : "";
  const failure = isObject(data) ? JSON.stringify(data["err"] ?? "") : "";
  if (alreadyProcessed.test(text) || failure === '"AlreadyProcessed"') return acknowledged;
  if (blockhashUnknown.test(text) || failure === '"BlockhashNotFound"') {
    return refused("blockhash_not_found");
  }
  if (rateLimited.test(text)) return refused("rate_limited");
  const number = typeof code === "number" ? code : 0;
  const final = finalCodes.get(number);
  return final === undefined
    ? refused(passingCodes.get(number) ?? "partner_error")
    : refused(final, true);
}

function verdictOfText(text: string, reason: string, isFinal = false): Verdict {
  if (alreadyProcessed.test(text)) return acknowledged;
  if (blockhashUnknown.test(text)) return refused("blockhash_not_found");
  return refused(reason, isFinal);
}

export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}

/** A refusal of several calls at once is not final for any of them. */
function softened(verdict: Verdict, calls: number): Verdict {
  return verdict.kind === "refused" && calls > 1 ? { ...verdict, isFinal: false } : verdict;
}

/** An empty response or a page: from a proxy, or from a server that is not the partner's. */
function isPage(text: string): boolean {
  return /^\s*(<|$)/.test(text);
}

/**
 * The reading of a status other than 2xx; null: the body decides. `refusesInText`: the partner refuses
 * transactions in plain text, not in JSON-RPC.
 */
export function readStatus(
  { status, body }: HttpAnswer,
  batch: readonly OutboundTransaction[],
  refusesInText = false,
): Reading | null {
  if (status >= 200 && status < 300) return null;
  if (status === 429) return all(batch, refused("rate_limited"), null);
  if (status >= 500) return all(batch, refused("partner_error"), `HTTP status ${status}`);
  if (status === 401 || status === 403) {
    return all(batch, refused("unauthorized"), `HTTP status ${status}`);
  }
  const isOurs = status === 400 || status === 413 || status === 422;
  if (!isOurs) return all(batch, refused(`http_${status}`), `HTTP status ${status}`);
  const answer = parseJson(body);
  if (isObject(answer) && "error" in answer) {
    return all(batch, softened(verdictOfError(answer["error"]), batch.length), null);
  }
  const text = body.toString("utf8");
  const isRefusal = status === 413 || (refusesInText && !isPage(text));
  const reason = status === 413 ? "too_large" : "request_invalid";
  const verdict = softened(verdictOfText(text, reason, isRefusal), batch.length);
  const isKnown = verdict.kind === "acknowledged" || verdict.reason !== reason;
  const fault = `expected a JSON-RPC error with HTTP status ${status}, got something else`;
  return all(batch, verdict, isRefusal || isKnown ? null : fault);
}

const signatureText = /^[1-9A-HJ-NP-Za-km-z]{80,90}$/;

/** The verdict for a response object with the matching id. */
function verdictOfCall(answer: Record<string, unknown>, outbound: OutboundTransaction): Verdict {
  const { error, result } = answer;
  if (error !== undefined && error !== null) return verdictOfError(error);
  if (result === undefined) return failed("answer_invalid");
  const [first] = outbound.transactions;
  const isOther =
    outbound.mode === "transaction" &&
    typeof result === "string" &&
    signatureText.test(result) &&
    result !== first?.signature;
  return isOther ? failed("answer_mismatched") : acknowledged;
}

function readArray(
  answers: readonly unknown[],
  batch: readonly OutboundTransaction[],
  firstId: number,
): Reading {
  const verdicts: (Verdict | undefined)[] = batch.map(() => undefined);
  for (const answer of answers) {
    const id = isObject(answer) ? answer["id"] : undefined;
    if (!isObject(answer) || typeof id !== "number") continue;
    const outbound = batch[id - firstId];
    if (outbound) verdicts[id - firstId] ??= verdictOfCall(answer, outbound);
  }
  const isComplete = !verdicts.includes(undefined);
  return {
    verdicts: verdicts.map((verdict) => verdict ?? failed("answer_missing")),
    fault: isComplete ? null : "expected a response to every call, got fewer",
  };
}

/** Reads the response to calls with ids from `firstId`; an array for several calls. */
export function readJsonRpc(
  answer: HttpAnswer,
  batch: readonly OutboundTransaction[],
  firstId: number,
): Reading {
  const byStatus = readStatus(answer, batch);
  if (byStatus) return byStatus;
  const body = parseJson(answer.body);
  if (Array.isArray(body)) return readArray(body, batch, firstId);
  const [only] = batch;
  if (!isObject(body)) {
    return all(
      batch,
      failed("answer_invalid"),
      "expected a JSON-RPC object or array as the response",
    );
  }
  const { id, error } = body;
  // An error without an id applies to the whole request.
  if (
    error !== undefined &&
    error !== null &&
    (id === null || id === undefined || batch.length > 1)
  ) {
    return all(batch, softened(verdictOfError(error), batch.length), null);
  }
  if (!only || batch.length > 1 || id !== firstId) {
    return all(
      batch,
      failed("answer_mismatched"),
      `expected a response with id ${firstId}, got another id`,
    );
  }
  return all(batch, verdictOfCall(body, only), null);
}
