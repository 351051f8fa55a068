// POST /shred-pay: registers tips for shreds.
//
// Called by gateway.ts. Counts each request as one call of the key, parses the entries and passes
// them to the registrar. It does not use JSON-RPC: a refused request gets an HTTP status and
// {"error": {"reason", "message"}}, any other request 200 and the accepted signatures.

import type { RegistrationReceipt, RejectedRegistration } from "../../client/responses.ts";
import { errorTable, quote, ShredwayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  readCallJson,
  writeJson,
} from "../../core/json-rpc/json-text.ts";
import { reasonOf } from "../../core/json-rpc/refusal.ts";
import { u64Max } from "../../core/primitives.ts";
import type {
  InvalidEntry,
  RegistrationEntry,
  RegistrationResult,
} from "../../shreds/registrations/registration-types.ts";
import type { HttpResponse } from "../http/types.ts";
import type { ConcurrencyLimit } from "../methods/concurrency-limit.ts";
import { registrarOf } from "../methods/registrations.ts";
import { invalid } from "../schema/shapes.ts";
import { batchBytesMax } from "./body-limits.ts";
import { keyName, type Query, uriFlag } from "./query.ts";
import { depthMax, type RequestContext } from "./request-context.ts";

export const shredPayPath = "/shred-pay";
export const entriesMax = 25;
export const shredPayParameters = {
  verbose: uriFlag("verbose", "also returns the rejected entries"),
  dryRun: uriFlag("dry_run", "checks everything and stores nothing"),
} as const;
const uriNames = [keyName, ...Object.values(shredPayParameters).map(({ name }) => name)] as const;
/**
 * Concurrent requests; their entries use at most half of the verifier's queue, which submissions
 * share.
 */
export const requestsUnderWayMax = 40;

/** Parses a slot as an integer or decimal digits: libraries write u64 as either. */
function slotOf(json: Json | undefined): bigint | null {
  if (typeof json === "string") {
    return /^[0-9]{1,20}$/.test(json) && BigInt(json) <= u64Max ? BigInt(json) : null;
  }
  const isInteger = typeof json === "bigint" || Number.isSafeInteger(json);
  if ((typeof json !== "bigint" && typeof json !== "number") || !isInteger) return null;
  const slot = BigInt(json);
  return slot >= 0n && slot <= u64Max ? slot : null;
}

/** `value` for an error message. Its texts may be transactions, so they are not quoted. */
function withoutTexts(value: Json | undefined): unknown {
  if (typeof value === "string") return "…";
  if (isJsonArray(value)) return ["…"];
  return isJsonObject(value) ? { "…": "…" } : value;
}

function problem(what: string, expected: string, value: unknown): InvalidEntry {
  return { problem: invalid(what, expected, value).message };
}

/** Unknown fields are ignored. */
function entryOf(json: Json): RegistrationEntry | InvalidEntry {
  if (!isJsonObject(json)) {
    return problem("entry", "an object with transaction and slot", withoutTexts(json));
  }
  const { transaction } = json;
  const slot = slotOf(json["slot"]);
  const proof = json["proof"] ?? null;
  if (typeof transaction !== "string") {
    return problem("transaction", "a string", withoutTexts(transaction));
  }
  if (slot === null) return problem("slot", "an integer from 0 to 2^64 - 1", json["slot"]);
  if (proof === null) return { transaction, slot };
  if (typeof proof === "string") return { transaction, slot, proof };
  return problem("proof", "a string", withoutTexts(proof));
}

/** Throws ShredwayError "json_invalid" or "request_invalid". */
function readEntries(text: string): (RegistrationEntry | InvalidEntry)[] {
  const json = readCallJson(text, depthMax);
  if (!isJsonArray(json)) {
    throw new ShredwayError("request_invalid", `body: expected an array, got ${quote(json)}`);
  }
  if (json.length >= 1 && json.length <= entriesMax) return json.map(entryOf);
  throw new ShredwayError(
    "request_invalid",
    `body: expected 1 to ${entriesMax} entries, got ${json.length}`,
  );
}

function resultJson(results: readonly RegistrationResult[], isVerbose: boolean): string {
  const accepted: string[] = [];
  const rejected: RejectedRegistration[] = [];
  for (const [index, result] of results.entries()) {
    if (result.accepted) accepted.push(result.signature);
    else rejected.push({ index, reason: result.reason, message: result.message });
  }
  const receipt: RegistrationReceipt = { accepted, rejected };
  return writeJson(isVerbose ? receipt : { accepted });
}

interface ShredPayRequest {
  readonly context: RequestContext;
  readonly query: Query;
  readonly body: Uint8Array;
  readonly concurrencyLimit: ConcurrencyLimit;
  /** Decodes UTF-8; invalid UTF-8 becomes a text that is not JSON. */
  textOf(body: Uint8Array): string;
}

async function register(request: ShredPayRequest): Promise<string> {
  const { context, query, body, concurrencyLimit } = request;
  context.admit(shredPayPath);
  const call = context.callOf(shredPayPath, ["shreds"], uriNames);
  const registrar = registrarOf(call);
  if (body.length > batchBytesMax) {
    const message = `expected a body of at most ${batchBytesMax} bytes, got ${body.length}`;
    throw new ShredwayError("body_too_large", message);
  }
  const isVerbose = shredPayParameters.verbose.read(query);
  const isDryRun = shredPayParameters.dryRun.read(query);
  const results = await concurrencyLimit.with(() => {
    const entries = readEntries(request.textOf(body));
    return registrar.register(call.key.accountId, entries, isDryRun);
  });
  return resultJson(results, isVerbose);
}

/** Never rejects, whatever the body contains. */
export async function answerShredPay(request: ShredPayRequest): Promise<HttpResponse> {
  const { context } = request;
  try {
    return context.response({ text: await register(request), reason: null });
  } catch (thrown) {
    const reason = reasonOf(thrown);
    const isFault = reason === "internal" || !(thrown instanceof ShredwayError);
    const message = isFault
      ? `Internal error, reference ${context.report(thrown)}`
      : thrown.message;
    const answer = context.response({ text: writeJson({ error: { reason, message } }), reason });
    return { ...answer, status: errorTable[reason].httpStatus ?? 500 };
  }
}
