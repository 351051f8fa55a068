// Portal responses: security headers and JSON bodies of every response below /portal.
//
// Used by all handlers of the portal. The page loads scripts, styles and images from its own
// origin only. It cannot be framed, submits forms only to itself, and no other origin can read
// its responses.

import { errorTable, type Reason } from "../../core/errors.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import type { HttpResponse } from "../../gateway/http/types.ts";

type Headers = Readonly<Record<string, string>>;

const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** Every response below /portal has these headers. */
export const securityHeaders = {
  "content-security-policy": contentPolicy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "permissions-policy":
    "camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
} as const;

const notStored = { "cache-control": "no-store" } as const;

export function jsonAnswer(value: unknown, headers: Headers = {}): HttpResponse {
  return {
    status: 200,
    headers: { ...securityHeaders, ...notStored, "content-type": "application/json", ...headers },
    body: writeJson(value),
  };
}

export function emptyAnswer(headers: Headers = {}): HttpResponse {
  return { status: 204, headers: { ...securityHeaders, ...notStored, ...headers } };
}

/** Returns a plain-text response for people. */
export function plainAnswer(status: number, text: string, headers: Headers = {}): HttpResponse {
  return {
    status,
    headers: {
      ...securityHeaders,
      ...notStored,
      "content-type": "text/plain; charset=utf-8",
      ...headers,
    },
    body: `${text}\n`,
  };
}

/** Returns {"error": {"reason", "message"}} with the HTTP status of the error table. */
export function refusal(
  reason: Reason,
  message: string,
  more: { readonly headers?: Headers } = {},
): HttpResponse {
  return {
    ...jsonAnswer({ error: { reason, message } }, more.headers),
    status: errorTable[reason].httpStatus ?? 500,
  };
}
