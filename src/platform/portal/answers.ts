// Answers of the portal: the headers that everything below /portal carries, and its JSON.
//
// Called by whatever answers there. The page may load scripts, styles and pictures of its own address
// only, may be shown in no frame and may send forms to itself alone; nobody else's page may read
// anything of it.

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

/** On every answer below /portal. */
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

const unkept = { "cache-control": "no-store" } as const;

export function jsonAnswer(value: unknown, headers: Headers = {}): HttpResponse {
  return {
    status: 200,
    headers: { ...securityHeaders, ...unkept, "content-type": "application/json", ...headers },
    body: writeJson(value),
  };
}

export function emptyAnswer(headers: Headers = {}): HttpResponse {
  return { status: 204, headers: { ...securityHeaders, ...unkept, ...headers } };
}

/** For people: a status and a text. */
export function plainAnswer(status: number, text: string, headers: Headers = {}): HttpResponse {
  return {
    status,
    headers: {
      ...securityHeaders,
      ...unkept,
      "content-type": "text/plain; charset=utf-8",
      ...headers,
    },
    body: `${text}\n`,
  };
}

/** {"error": {"reason", "message"}} with the status of the table. */
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
