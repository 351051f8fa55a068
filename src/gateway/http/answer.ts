// Answers: is what a handler returned fit to be sent, and what do the server's own answers say?
//
// Called by server.ts. A header value with a line break would let a caller write headers of his
// own (response splitting), so whatever does not fit is a fault of the program and becomes a 500.

import { randomBytes } from "node:crypto";
import { STATUS_CODES } from "node:http";
import { quote, type Reason, ShredwayError } from "../../core/errors.ts";
import type { HttpResponse } from "./types.ts";

/** RFC 9110, 5.6.2 and 5.5. */
const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** A second one of these would contradict the one that the server writes. */
const serverHeaders = /^(content-length|transfer-encoding|connection|keep-alive|date)$/i;

function unfit(message: string): ShredwayError {
  return new ShredwayError("internal", `answer of a handler: ${message}`);
}

/** `returned` when it can be sent as it is; otherwise throws ShredwayError "internal". */
export function checkedAnswer(returned: HttpResponse): HttpResponse {
  const { status, headers, body } = returned;
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw unfit(`expected a status from 200 to 599, got ${quote(status)}`);
  }
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (!headerName.test(name) || serverHeaders.test(name)) {
      throw unfit(`expected the name of a header, got ${quote(name)}`);
    }
    if (typeof value !== "string" || !headerValue.test(value)) {
      throw unfit(`expected a value of ${name} on one line, got ${quote(value)}`);
    }
  }
  if (body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw unfit(`expected a text or bytes as body, got ${quote(body)}`);
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

/** How the server's own refusals look. */
export type Refusal = (status: number, reason: Reason, message: string) => HttpResponse;

/** 413. */
export function tooLargeAnswer(bytesMax: number, refusal: Refusal): HttpResponse {
  return refusal(413, "body_too_large", `expected a body of at most ${bytesMax} bytes`);
}

/** 503, while the server closes. */
export function closingAnswer(refusal: Refusal): HttpResponse {
  return refusal(503, "http_closing", "the server is closing; try another one");
}

/** 500: the caller gets the number and nothing else, the log both. */
export function faultAnswer(reference: string): HttpResponse {
  return errorAnswer(500, "internal", `a fault of the server, reference number ${reference}`);
}

/** Unique for all practical purposes, also over restarts. */
export function newReference(): string {
  return randomBytes(6).toString("hex");
}
