// /relayb and /relay2: submissions without JSON; the URL contains method and options.
//
// Called by gateway.ts. /relayb accepts the bytes of one transaction, or several as frames (u16
// big-endian length, then the bytes). /relay2 accepts base64, several separated by commas.
// Responses are JSON-RPC with the id 1. There is no preflight.

import { quote, ShredwayError } from "../../core/errors.ts";
import { type JsonRpcAnswer, resultText } from "../../core/json-rpc/handle.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import { errorObjectOf, reasonOf } from "../../core/json-rpc/refusal.ts";
import { u64Max } from "../../core/primitives.ts";
import { bundleTransactionsMax } from "../../core/transactions/bundle-limits.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import type { HttpResponse } from "../http/types.ts";
import type { Call } from "../methods/method.ts";
import { type Protection, readProtection, submitOptionsOf } from "../methods/protection.ts";
import { submitAlt } from "../methods/send-alt.ts";
import {
  batchTransactionsMax,
  checkBatchSize,
  sanitise,
  submitBatch,
} from "../methods/send-batch.ts";
import { submitBundle } from "../methods/send-bundle.ts";
import { pairSize, submitIdeal } from "../methods/send-ideal.ts";
import { checkAndSubmit, isProtected, teach } from "../methods/send-transaction.ts";
import { invalid } from "../schema/shapes.ts";
import { prefixOf, tooLarge, withIds } from "./answers.ts";
import { methodBytesMax } from "./body-limits.ts";
import { type Query, uriCount, uriFlag } from "./query.ts";
import { type RequestContext, submissionNames } from "./request-context.ts";

export const rawMethods = [
  "sendTransaction",
  "sendBundle",
  "sendBatch",
  "sendIdeal",
  "sendAlt",
  "getHealth",
] as const;
type RawMethod = (typeof rawMethods)[number];

const u32Max = 0xffff_ffffn;

/** Parameters in addition to those of every submission. */
export const rawParameters = {
  maxRetries: uriCount("max-retries", u32Max, "sendTransaction: maximum number of resends"),
  minContextSlot: uriCount(
    "min-context-slot",
    u64Max,
    "sendTransaction: the call fails while the current slot is lower",
  ),
  enableFallback: uriFlag(
    "enable-fallback",
    "required for sendAlt: also uses the routes of sendTransaction if no partner accepts it",
  ),
} as const;

/** Names of all parameters of both paths. */
export const rawNames = [
  ...submissionNames,
  "method",
  ...Object.values(rawParameters).map(({ name }) => name),
] as const;

/** Parameters of a single method. */
const methodOfParameter: ReadonlyMap<string, RawMethod> = new Map([
  [rawParameters.maxRetries.name, "sendTransaction"],
  [rawParameters.minContextSlot.name, "sendTransaction"],
  [rawParameters.enableFallback.name, "sendAlt"],
]);

/** Throws ShredwayError "value_invalid" for a parameter of another method. */
function refuseParametersOfOthers(query: Query, method: RawMethod): void {
  for (const name of query.names) {
    const owner = methodOfParameter.get(name);
    if (owner === undefined || owner === method) continue;
    throw new ShredwayError(
      "value_invalid",
      `URI parameter ${name}: expected none for ${method}, because only ${owner} has it; got ${quote(query.text(name))}`,
    );
  }
}

/** Inspects one transaction of the body. */
type Reader = (call: Call, what: string) => TransactionFacts;

/** The method in the URL; default: sendTransaction, or getHealth if the body is empty. */
function readRawMethod(query: Query, isEmpty: boolean): RawMethod {
  const name = query.text("method") ?? (isEmpty ? "getHealth" : "sendTransaction");
  const method = rawMethods.find((each) => each === name);
  if (method) return method;
  throw new ShredwayError(
    "method_unknown",
    `URI parameter method: invalid value ${quote(name)}; expected one of ${rawMethods.join(", ")}`,
  );
}

function frameRefused(at: number, expected: string, got: number): ShredwayError {
  return new ShredwayError(
    "value_invalid",
    `body at ${at}: expected ${expected}, got ${got} ${got === 1 ? "byte" : "bytes"}`,
  );
}

/**
 * Throws ShredwayError "value_invalid" unless frames fill the body. Frames beyond `max` are
 * returned empty.
 */
export function readFrames(body: Uint8Array, max: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at < body.length; ) {
    const left = body.length - at - 2;
    if (left < 0) throw frameRefused(at, "a length of 2 bytes", left + 2);
    const length = ((body[at] ?? 0) << 8) | (body[at + 1] ?? 0);
    if (length > left) throw frameRefused(at + 2, `a frame of ${length} bytes`, left);
    if (frames.length < max) frames.push(body.subarray(at + 2, at + 2 + length));
    else frames.push(body.subarray(0, 0));
    at += 2 + length;
  }
  return frames;
}

/** Whether frames with at least one byte each fill the body. */
export function isFramed(body: Uint8Array): boolean {
  let at = 0;
  while (at + 2 < body.length) {
    const length = ((body[at] ?? 0) << 8) | (body[at + 1] ?? 0);
    if (length === 0) return false;
    at += 2 + length;
  }
  return at === body.length && body.length > 0;
}

function byteReaders(body: Uint8Array, isSingle: boolean): Reader[] {
  const wires = isSingle ? [body] : readFrames(body, batchTransactionsMax);
  return wires.map((wire) => (call, what) => call.admission.inspect(what, wire));
}

function textReaders(body: Uint8Array, isSingle: boolean): Reader[] {
  // Latin-1 maps every byte to a character; the base64 decoder refuses invalid ones.
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    .toString("latin1")
    .replace(/\r?\n$/, "");
  const parts = isSingle ? [text] : text.split(",");
  return parts.map((part) => (call, what) => call.admission.read(what, part, "base64"));
}

function miscounted(expected: string, got: number): ShredwayError {
  return new ShredwayError("value_invalid", `body: expected ${expected}, got ${got}`);
}

function checkCount(size: number, max: number): void {
  if (size < 1 || size > max) throw miscounted(`1 to ${max} transactions`, size);
}

/** sendAlt needs the choice, as its options object is required in JSON. */
function readFallback(query: Query): boolean {
  const { enableFallback } = rawParameters;
  if (query.text(enableFallback.name) !== undefined) return enableFallback.read(query);
  throw invalid(`URI parameter ${enableFallback.name}`, "true or false for sendAlt", undefined);
}

/** Raw requests have no id; their responses have this one. */
const id = 1;
export const rawId = writeJson({ id });

interface RawRequest {
  readonly context: RequestContext;
  readonly query: Query;
  readonly body: Uint8Array;
  readonly isText: boolean;
  /** Names of the parameters that the URL may have; default: those of a POST. */
  readonly uriNames?: readonly string[];
}

/** The transactions of a body that is being submitted. */
interface RawSubmission {
  readonly call: Call;
  readonly query: Query;
  readonly readers: readonly Reader[];
  readonly protection: Protection;
}

function nameOf(index: number): string {
  return `transaction ${index}`;
}

function sendBatch({ call, readers, protection }: RawSubmission): Promise<unknown> {
  checkBatchSize(readers.length);
  checkCount(readers.length, batchTransactionsMax);
  const transactions = readers.map((read, i) =>
    sanitise(i, () => {
      const transaction = read(call, nameOf(i));
      call.admission.checkTip("sendBatch", nameOf(i), [transaction]);
      return transaction;
    }),
  );
  return submitBatch(call, transactions, protection);
}

function sendBundle({ call, readers, protection }: RawSubmission): Promise<unknown> {
  checkCount(readers.length, bundleTransactionsMax);
  const transactions = readers.map((read, i) => read(call, nameOf(i)));
  return submitBundle(call, transactions, protection);
}

function sendIdeal({ call, readers, protection }: RawSubmission): Promise<unknown> {
  const [first, second] = readers;
  if (!first || !second || readers.length > pairSize) {
    throw miscounted(`${pairSize} transactions`, readers.length);
  }
  const pair = [first(call, nameOf(0)), second(call, nameOf(1))] as const;
  return submitIdeal(call, pair, protection, { pair: "body", of: nameOf });
}

function sendAlt({ call, query, readers, protection }: RawSubmission): Promise<unknown> {
  const enableFallback = readFallback(query);
  const read = () => singleOf(readers)(call, "body");
  return submitAlt(call, { what: "body", read }, protection, enableFallback);
}

function singleOf([reader]: readonly Reader[]): Reader {
  if (reader) return reader;
  throw miscounted("a transaction", 0);
}

async function sendTransaction(submission: RawSubmission): Promise<unknown> {
  const { call, query, readers, protection } = submission;
  const resends = rawParameters.maxRetries.read(query);
  const minContextSlot = rawParameters.minContextSlot.read(query) ?? null;
  const transaction = singleOf(readers)(call, "body");
  const resendsMax = resends === undefined ? null : Number(resends);
  const options = submitOptionsOf(protection, resendsMax);
  await checkAndSubmit(call, { transaction, what: "body", options, minContextSlot });
  // The fast path knows the form of the ingress's streams, and no form of a URL.
  if (call.ingress === "quic" && !isProtected(options)) teach(call, "base64");
  return transaction.signature;
}

const senders = { sendTransaction, sendBundle, sendBatch, sendIdeal, sendAlt } as const;

/** Returns the result; throws or rejects with ShredwayError. */
export async function runRaw(
  { context, query, body, isText, uriNames = rawNames }: RawRequest,
  method: RawMethod,
): Promise<unknown> {
  if (method === "getHealth") {
    // A client keeps its connection open with the URL of its submissions.
    context.checkUri(uriNames);
    return "ok";
  }
  const isSingle = method === "sendTransaction" || method === "sendAlt";
  const call = context.callOf(method, [method === "sendBatch" ? "batch" : "submit"], uriNames);
  refuseParametersOfOthers(query, method);
  const readers = (isText ? textReaders : byteReaders)(body, isSingle);
  const protection = readProtection([], call.uri);
  return context.limited(() =>
    context.submitted(call, [], (recorded) =>
      senders[method]({ call: recorded, query, readers, protection }),
    ),
  );
}

export async function answerRaw(request: RawRequest): Promise<HttpResponse> {
  const { context, query, body } = request;
  let answer: JsonRpcAnswer;
  let called = "";
  try {
    const method = readRawMethod(query, body.length === 0);
    called = method;
    context.admit(method);
    const bytesMax = methodBytesMax(method, true);
    if (body.length > bytesMax) return withIds(tooLarge(bytesMax, body.length), rawId);
    answer = { text: resultText(await runRaw(request, method), id), reason: null };
  } catch (thrown) {
    const error = errorObjectOf(thrown, { report: context.report, prefixOf });
    answer = { text: writeJson({ jsonrpc: "2.0", error, id }), reason: reasonOf(thrown) };
  }
  context.ended(called, answer.reason);
  return context.response(answer);
}
