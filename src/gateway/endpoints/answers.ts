// Answers of the gateway over HTTP: headers, errors as JSON-RPC, CORS.
//
// Called by gateway.ts and caller.ts. Every error has a JSON-RPC body, for a JSON-RPC client may
// stand behind any path. Nothing is cached by anybody: answers are for one key.

import { errorTable, type Reason, retryAfterOf, ShredwayError } from "../../core/errors.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import type { HttpHead, HttpResponse } from "../http/types.ts";

type Headers = Readonly<Record<string, string>>;

/** On every answer. */
export const baseHeaders = {
  "access-control-allow-origin": "*",
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
} as const;
export const jsonHeaders = { ...baseHeaders, "content-type": "application/json" } as const;
/** When a browser asks (it says so by the header Origin). */
export const browserHeaders = {
  ...jsonHeaders,
  "access-control-expose-headers":
    "retry-after, x-bundle-id, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset",
} as const;

/** Those whose message is the specification's own, word for word. */
const ownTexts: ReadonlySet<Reason> = new Set<Reason>(["batch_refused", "batch_failed"]);

export function prefixOf(reason: Reason): string {
  return ownTexts.has(reason) ? "" : `${reason}: `;
}

/** Reasons that are told by the HTTP status, too; with all others a JSON-RPC answer is a 200. */
const statusReasons: ReadonlySet<Reason> = new Set<Reason>([
  "unauthorized",
  "body_too_large",
  "rate_limited",
  "overloaded",
  "http_closing",
]);

/** Of the answer to a single call. */
export function statusOf(reason: Reason | null): number {
  if (reason === null || !statusReasons.has(reason)) return 200;
  return errorTable[reason].httpStatus ?? 200;
}

interface RefusalOptions {
  readonly headers?: Headers;
  readonly details?: ShredwayError["details"];
}

/** How a refusal looks: as JSON-RPC, but for paths that are none. */
export type RefusalShape = (reason: Reason, message: string, more?: RefusalOptions) => HttpResponse;

/** A refusal before any call was read, so without an id. */
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
    headers: { ...browserHeaders, ...more.headers },
    body: writeJson({ jsonrpc: "2.0", error, id: null }),
  };
}

/** Of paths where nobody calls a method: {"error": {"reason", "message"}}. */
export const plainRefusal: RefusalShape = (reason, message, { headers } = {}) => ({
  status: errorTable[reason].httpStatus ?? 500,
  headers: { ...browserHeaders, ...headers },
  body: writeJson({ error: { reason, message } }),
});

/** What the HTTP server itself refuses: bodies that are too large, calls while it closes. */
export function serverRefusal(_status: number, reason: Reason, message: string): HttpResponse {
  return refusalAnswer(reason, message, {
    headers: reason === "http_closing" ? { "retry-after": "1" } : {},
  });
}

export function answerOf(error: ShredwayError): HttpResponse {
  const retryAfterSeconds = retryAfterOf(error);
  return refusalAnswer(error.reason, error.message, {
    details: error.details,
    headers: retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) },
  });
}

/** The answer to a WebSocket handshake of a caller who is paused; undefined for 0 seconds. */
export function pauseRefusal(seconds: number): HttpResponse | undefined {
  if (seconds === 0) return undefined;
  return refusalAnswer(
    "rate_limited",
    `a WebSocket of this key exceeded its message limit; retry in ${seconds} s`,
    { headers: { "retry-after": String(seconds) } },
  );
}

/** The answer to a WebSocket handshake that `count` refuses with a ShredwayError; undefined: none. */
export function handshakeRefusal(count: () => void): HttpResponse | undefined {
  try {
    count();
    return undefined;
  } catch (thrown) {
    if (thrown instanceof ShredwayError) return answerOf(thrown);
    throw thrown;
  }
}

export function textAnswer(body: string): HttpResponse {
  return { status: 200, headers: { ...baseHeaders, "content-type": "text/plain" }, body };
}

const askedHeaders =
  "content-type, solana-client, api_key, api-key, authorization, x-jito-auth, accept-encoding";

/** To the question of a browser whether it may ask. */
export function preflightAnswer(head: HttpHead, methods: string): HttpResponse {
  const asked = head.header("access-control-request-headers") ?? "";
  const isList = /^[\w\-, ]{1,1024}$/.test(asked);
  return {
    status: 204,
    headers: {
      ...baseHeaders,
      "access-control-allow-methods": methods,
      "access-control-allow-headers": isList ? asked : askedHeaders,
      "access-control-max-age": "86400",
      vary: "access-control-request-headers",
    },
  };
}
