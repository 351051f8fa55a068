// Builds the gateway's HTTP responses: headers, JSON-RPC errors, CORS.
//
// Called by gateway.ts and callers.ts. Every error has a JSON-RPC body, because a JSON-RPC client
// may use any path. Responses must not be cached: they depend on the key.

import { errorTable, type Reason, retryAfterOf, ShredwayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  readCallJson,
  writeJson,
} from "../../core/json-rpc/json-text.ts";
import type { HttpHead, HttpResponse, RefusalOptions, RefusalShape } from "../http/types.ts";
import type { Pages } from "../methods/dependencies.ts";
import { batchBytesMax, callsMax, depthMax } from "./body-limits.ts";

type Headers = Readonly<Record<string, string>>;

/** Headers of every response. */
export const baseHeaders = {
  "access-control-allow-origin": "*",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
} as const;
export const jsonHeaders = { ...baseHeaders, "content-type": "application/json" } as const;
/** Headers of responses to browsers (requests with an Origin header). */
export const browserHeaders = {
  ...jsonHeaders,
  "access-control-expose-headers":
    "retry-after, x-bundle-id, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, " +
    "x-shredway-receipt, x-shredway-signature",
} as const;

/** Headers of a public document in JSON. */
export function documentHeaders(head: HttpHead): typeof jsonHeaders | typeof browserHeaders {
  return head.header("origin") === undefined ? jsonHeaders : browserHeaders;
}

/** Reasons whose message is the specification's text and gets no prefix. */
const ownTexts: ReadonlySet<Reason> = new Set<Reason>(["batch_refused", "batch_failed"]);

export function prefixOf(reason: Reason): string {
  return ownTexts.has(reason) ? "" : `${reason}: `;
}

/**
 * Reasons that also set the HTTP status; a JSON-RPC response with any other reason has the status
 * 200.
 */
const statusReasons: ReadonlySet<Reason> = new Set<Reason>([
  "unauthorized",
  "body_too_large",
  "rate_limited",
  "overloaded",
  "http_closing",
]);

/** The HTTP status of the response to a single call. */
export function statusOf(reason: Reason | null): number {
  if (reason === null || !statusReasons.has(reason)) return 200;
  return errorTable[reason].httpStatus ?? 200;
}

/** A 401 needs a challenge (RFC 9110, 15.5.2). Java's HttpClient hides the status of a response without it. */
const challengeHeaders = { ...browserHeaders, "www-authenticate": "Bearer" } as const;

function refusalHeaders(reason: Reason): Headers {
  return reason === "unauthorized" ? challengeHeaders : browserHeaders;
}

/** An error response before any call was parsed, so without an id. */
export function refusalAnswer(
  reason: Reason,
  message: string,
  more: RefusalOptions = {},
): HttpResponse {
  const { httpStatus, jsonRpcCode } = errorTable[reason];
  const error = {
    code: jsonRpcCode ?? -32603,
    message: `${prefixOf(reason)}${message}`,
    data: { ...more.details, reason },
  };
  return {
    status: httpStatus ?? 500,
    headers: { ...refusalHeaders(reason), ...more.headers },
    body: writeJson({ jsonrpc: "2.0", error, id: null }),
  };
}

/**
 * `refusal` with the ids of the calls in `text`, as an array for an array of calls. Unchanged if `text` is
 * not a call.
 */
export function withIds(refusal: HttpResponse, text: string): HttpResponse {
  const { body } = refusal;
  const withoutId = typeof body === "string" && body.endsWith(nullId) ? body : undefined;
  const calls = callsIn(text);
  if (calls === undefined || withoutId === undefined) return refusal;
  const idOf = (call: Json): Json => (isJsonObject(call) ? (call["id"] ?? null) : null);
  const answer = (call: Json): string =>
    `${withoutId.slice(0, -nullId.length)}"id":${writeJson(idOf(call))}}`;
  return {
    ...refusal,
    body: isJsonArray(calls) ? `[${calls.map(answer).join(",")}]` : answer(calls),
  };
}

const nullId = '"id":null}';

/** undefined: not JSON, or an array without calls or with too many. */
function callsIn(text: string): Json | undefined {
  try {
    const calls = readCallJson(text, depthMax);
    const isSmall = !isJsonArray(calls) || (calls.length > 0 && calls.length <= callsMax);
    return isSmall ? calls : undefined;
  } catch {
    return undefined;
  }
}

/** Error response of paths without JSON-RPC: {"error": {"reason", "message"}}. */
export const plainRefusal: RefusalShape = (reason, message, { headers } = {}) => ({
  status: errorTable[reason].httpStatus ?? 500,
  headers: { ...refusalHeaders(reason), ...headers },
  body: writeJson({ error: { reason, message } }),
});

/** A refusal of the HTTP server itself, for any request. */
interface ServerRefusal {
  readonly status: number;
  readonly reason: Reason;
  readonly message: string;
}

/** Error responses of the HTTP server itself: body too large or compressed, server closing. */
export function serverRefusal(
  { status, reason, message }: ServerRefusal,
  shape: RefusalShape = refusalAnswer,
): HttpResponse {
  const headers: Headers = reason === "http_closing" ? { "retry-after": "1" } : {};
  return { ...shape(reason, message, { headers }), status };
}

export function answerOf(error: ShredwayError): HttpResponse {
  const retryAfterSeconds = retryAfterOf(error);
  return refusalAnswer(error.reason, error.message, {
    details: error.details,
    headers: retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) },
  });
}

/** Response to a WebSocket handshake of a paused key; undefined for 0 seconds. */
export function pauseRefusal(seconds: number): HttpResponse | undefined {
  if (seconds === 0) return undefined;
  return refusalAnswer(
    "rate_limited",
    `a WebSocket of this key exceeded its message limit; retry in ${seconds} s`,
    { headers: { "retry-after": String(seconds) } },
  );
}

/**
 * Response to a WebSocket handshake for which `count` throws a ShredwayError; otherwise undefined.
 */
export function handshakeRefusal(count: () => void): HttpResponse | undefined {
  try {
    count();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof ShredwayError) return answerOf(thrown);
    throw thrown;
  }
}

/** Paths that `pages` name only to callers who may read them. */
const operatorPaths = ["/health/live", "/health/ready", "/metrics"];

/** The paths of `pages` that this caller may know. */
export function pagePaths(pages: readonly Pages[], head: HttpHead): string[] {
  return pages.flatMap((each) => [
    ...each.listed,
    ...operatorPaths.filter((path) => each.find(path, head)),
  ]);
}

/** Response to a plain request for the path of a WebSocket. `other`: a method that it also accepts. */
export function upgradeAnswer(other?: "POST"): HttpResponse {
  const also = other === undefined ? "" : `${other}, or `;
  const message = `expected ${also}a WebSocket handshake (header Upgrade: websocket)`;
  const answer = refusalAnswer("http_method", message);
  return { ...answer, status: 426, headers: { ...answer.headers, upgrade: "websocket" } };
}

export function textAnswer(body: string): HttpResponse {
  return { status: 200, headers: { ...baseHeaders, "content-type": "text/plain" }, body };
}

const defaultAllowedHeaders =
  "content-type, solana-client, api_key, api-key, authorization, x-jito-auth, x-shredway-receipt, accept-encoding";

/** Response to a CORS preflight request. */
export function preflightAnswer(head: HttpHead, methods: string): HttpResponse {
  const requested = head.header("access-control-request-headers") ?? "";
  const isList = /^[\w\-, ]{1,1024}$/.test(requested);
  return {
    status: 204,
    headers: {
      ...baseHeaders,
      "access-control-allow-methods": methods,
      "access-control-allow-headers": isList ? requested : defaultAllowedHeaders,
      "access-control-max-age": "86400",
      vary: "access-control-request-headers",
    },
  };
}

/** The answer to "OPTIONS *" (RFC 9110, 9.3.7). */
export const serverOptionsAnswer: HttpResponse = {
  status: 204,
  headers: { ...baseHeaders, allow: "GET, HEAD, POST, OPTIONS" },
};

export function tooLarge(bytesMax: number, bytes: number): HttpResponse {
  const message = `expected a body of at most ${Math.min(bytesMax, batchBytesMax)} bytes, got ${bytes}`;
  return refusalAnswer("body_too_large", message);
}
