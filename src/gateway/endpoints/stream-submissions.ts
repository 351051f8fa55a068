// Submissions without HTTP: the bytes of one transaction, or of a bundle as frames, on a stream of the QUIC
// ingress or in a binary message of a WebSocket.
//
// Called by gateway.ts. The rules are those of /relayb: the same limits, minimum tips and checks of
// signatures, and an answer only when the submission is durable. Over QUIC, the listener and the
// client's certificate give the options that the URL has over HTTP.

import { type Reason, ShredwayError } from "../../core/errors.ts";
import { errorObjectOf, reasonOf } from "../../core/json-rpc/refusal.ts";
import { bundleTransactionsMax } from "../../core/transactions/bundle-limits.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { FastCallFacts } from "../methods/fast-call.ts";
import type { MethodContext } from "../methods/method.ts";
import type { Ingress } from "../submission/types.ts";
import { prefixOf } from "./answers.ts";
import { type Query, uriFlag } from "./query.ts";
import { isFramed, rawNames, readFrames, runRaw } from "./raw-endpoints.ts";
import type { RequestContext } from "./request-context.ts";

/** Parameters of a WebSocket on /relayb in addition to those of a POST. */
export const socketParameters = {
  responses: uriFlag("responses", "sends a response frame for each message, in their order"),
} as const;

/** Names of all parameters of a WebSocket on /relayb. */
export const socketNames = [...rawNames, socketParameters.responses.name] as const;

export interface StreamSubmission {
  readonly key: ApiKey;
  /** The bytes; the gateway may keep them. */
  readonly body: Uint8Array;
  /** Options in the form of a URL. */
  readonly query: Query;
  /** Whether the body may be a bundle. */
  readonly takesBundles: boolean;
  readonly receivedNs: bigint;
  readonly ingress: Ingress;
  /** The stream on the fast path; absent: it cannot have been sent yet. */
  readonly fastPath?: FastCallFacts | undefined;
}

export interface StreamAnswer {
  /** null: it was accepted. */
  readonly reason: Reason | null;
  /** Signatures, separated by commas; or the reason, ": " and a message. */
  readonly text: string;
}

const frameHeadBytes = 2;
/** The longest transaction. */
const frameBytesMax = 4096;
/** Reasons of bytes that are not a transaction. */
const parseReasons: ReadonlySet<string> = new Set([
  "transaction_invalid",
  "transaction_version",
  "value_invalid",
]);

/**
 * Bytes that are a transaction are one, although they could also be read as frames. Frames are rare, so
 * the inspection of all others costs nothing here.
 */
function isBundle(body: Uint8Array, { admission }: MethodContext): boolean {
  return isFramed(body) && !isTransaction(body, admission);
}

function isTransaction(body: Uint8Array, admission: MethodContext["admission"]): boolean {
  try {
    admission.inspect("stream", body);
    return true;
  } catch {
    return false;
  }
}

/** Whether the body is not a transaction and begins with the frame of one. */
function beginsWithFrame(body: Uint8Array, { admission }: MethodContext): boolean {
  const length = ((body[0] ?? 0) << 8) | (body[1] ?? 0);
  if (length === 0 || length > frameBytesMax || length > body.length - frameHeadBytes) return false;
  const first = body.subarray(frameHeadBytes, frameHeadBytes + length);
  return isTransaction(first, admission) && !isTransaction(body, admission);
}

/** The error of frames in a body that was read as a transaction; `thrown` if it contains none. */
function framingError(thrown: unknown, stream: StreamSubmission, context: MethodContext): unknown {
  const { body, takesBundles } = stream;
  const reason = reasonOf(thrown) ?? "";
  if (!parseReasons.has(reason) || !beginsWithFrame(body, context)) return thrown;
  if (!takesBundles) {
    return new ShredwayError(
      "value_invalid",
      'body: expected one transaction, got frames of a bundle; only the dialect "shredway-tpu" takes bundles',
    );
  }
  try {
    readFrames(body, bundleTransactionsMax);
  } catch (error) {
    return error;
  }
  return new ShredwayError(
    "value_invalid",
    "body: expected frames with a transaction, got an empty frame",
  );
}

function textOf(result: unknown): string {
  return Array.isArray(result) ? result.join(",") : String(result);
}

interface StreamDependencies {
  readonly context: RequestContext;
  readonly stream: StreamSubmission;
  readonly methodContext: MethodContext;
}

export async function answerStream({
  context,
  stream,
  methodContext,
}: StreamDependencies): Promise<StreamAnswer> {
  const { body, query, takesBundles } = stream;
  const method = takesBundles && isBundle(body, methodContext) ? "sendBundle" : "sendTransaction";
  let answer: StreamAnswer;
  try {
    context.admit(method);
    const result = await runRaw(
      { context, query, body, isText: false, uriNames: socketNames },
      method,
    );
    answer = { reason: null, text: textOf(result) };
  } catch (error) {
    const isSingle = method === "sendTransaction";
    const thrown = isSingle ? framingError(error, stream, methodContext) : error;
    const { message } = errorObjectOf(thrown, { report: context.report, prefixOf });
    answer = { reason: reasonOf(thrown), text: message };
  }
  context.ended(method, answer.reason);
  return answer;
}
