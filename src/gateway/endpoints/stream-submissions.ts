// Submissions without HTTP: the bytes of one transaction, or of a bundle as frames, on a stream of the QUIC
// ingress or in a binary message of a WebSocket.
//
// Called by gateway.ts. The rules are those of /relayb: the same limits, minimum tips and checks of
// signatures, and an answer only when the submission is durable. Over QUIC, the listener and the
// client's certificate give the options that the URL has over HTTP.

import type { Reason } from "../../core/errors.ts";
import { errorObjectOf, reasonOf } from "../../core/json-rpc/refusal.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { FastCallFacts } from "../methods/fast-call.ts";
import type { MethodContext } from "../methods/method.ts";
import type { Ingress } from "../submission/types.ts";
import { prefixOf } from "./answers.ts";
import type { Query } from "./query.ts";
import { isFramed, runRaw } from "./raw-endpoints.ts";
import type { RequestContext } from "./request-context.ts";

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

/**
 * Bytes that are a transaction are one, although they could also be read as frames. Frames are rare, so
 * the inspection of all others costs nothing here.
 */
function isBundle(body: Uint8Array, { admission }: MethodContext): boolean {
  if (!isFramed(body)) return false;
  try {
    admission.inspect("stream", body);
    return false;
  } catch {
    return true;
  }
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
    const result = await runRaw({ context, query, body, isText: false }, method);
    answer = { reason: null, text: textOf(result) };
  } catch (thrown) {
    const { message } = errorObjectOf(thrown, { report: context.report, prefixOf });
    answer = { reason: reasonOf(thrown), text: message };
  }
  context.ended(method, answer.reason);
  return answer;
}
