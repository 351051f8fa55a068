// Checks the responses of handlers and writes the server's own error responses.
//
// Called by server.ts. A header value with a line break would let a caller inject headers (response
// splitting). An invalid response is therefore an internal error (500).

import { randomBytes } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { quote, type Reason, ShredwayError } from "../../core/errors.ts";
import type { HttpHead, HttpResponse } from "./types.ts";

/** RFC 9110, 5.6.2 and 5.5. */
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** The server writes these headers itself; a second one would contradict it. */
const serverHeaders = /^(content-length|transfer-encoding|connection|keep-alive|date)$/i;

/** Names that handlers have set. They are few. */
const fitNames = new Set<string>();
const fitNamesMax = 256;

function isNameFit(name: string): boolean {
  if (fitNames.has(name)) return true;
  const isFit = headerName.test(name) && !serverHeaders.test(name);
  if (isFit && fitNames.size < fitNamesMax) fitNames.add(name);
  return isFit;
}

function unfit(message: string): ShredwayError {
  return new ShredwayError("internal", `response of a handler: ${message}`);
}

/** Returns `returned` if it can be sent unchanged; otherwise throws ShredwayError "internal". */
export function checkedAnswer(returned: HttpResponse): HttpResponse {
  const { status, headers, body } = returned;
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw unfit(`expected a status from 200 to 599, got ${quote(status)}`);
  }
  for (const name of Object.keys(headers ?? {})) {
    if (!isNameFit(name)) {
      throw unfit(`expected a header name that handlers may set, got ${quote(name)}`);
    }
    const value: unknown = headers?.[name];
    if (typeof value !== "string" || !headerValue.test(value)) {
      throw unfit(`expected a one-line value of ${name}, got ${quote(value)}`);
    }
  }
  if (body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw unfit(`expected a string or bytes as the body, got ${quote(body)}`);
  }
  return returned;
}

/** "404 Not Found". */
export function statusLine(status: number): string {
  return `${status} ${STATUS_CODES[status] ?? "Unknown"}`;
}

export function errorAnswer(status: number, reason: Reason, message: string) {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { reason, message } }),
  } satisfies HttpResponse;
}

/** Builds the server's own error responses. `head`: of the request, if it could be read. */
export type Refusal = (
  status: number,
  reason: Reason,
  message: string,
  head?: HttpHead,
) => HttpResponse;

/** 413. `got`: bytes that were announced, or "more" if they are not known. */
export function tooLargeAnswer(bytesMax: number, got: number | "more", refusal: Refusal) {
  const message = `expected a body of at most ${bytesMax} bytes, got ${got}`;
  return refusal(413, "body_too_large", message);
}

/** 415, with the codings that are accepted (RFC 9110, 12.5.3). */
export function encodedAnswer(coding: string, refusal: Refusal): HttpResponse {
  const message = `Content-Encoding: expected an uncompressed body, got ${quote(coding)}`;
  const answer = refusal(415, "request_invalid", message);
  return { ...answer, headers: { ...answer.headers, "accept-encoding": "identity" } };
}

/** 503, while the server closes. */
export function closingAnswer(refusal: Refusal): HttpResponse {
  return refusal(503, "http_closing", "the server is closing; try another one");
}

/** 500: the caller gets only the reference; the log has the reference and the error. */
export function faultAnswer(reference: string): HttpResponse {
  return errorAnswer(
    500,
    "internal",
    `internal error; give reference ${reference} to the operator, whose log has the details`,
  );
}

/** Unique in practice, also across restarts. */
export function newReference(): string {
  return randomBytes(6).toString("hex");
}
