// Describes HTTP responses that all paths share: refusals and their headers.
//
// Used by paths.ts. answers.ts writes the responses.

import { errorTable, reasons } from "../../../core/errors.ts";
import {
  anyJson,
  closed,
  enumOf,
  type JsonSchema,
  schemaOf,
  string,
  wholeNumber,
  word,
} from "../../schema/json-schema.ts";

export interface Header {
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface Answer {
  readonly description: string;
  /** Absent: the response has no body. */
  readonly content?: { readonly type: string; readonly schema: JsonSchema };
  readonly headers?: Readonly<Record<string, Header>>;
}

export type Answers = Readonly<Record<number, Answer>>;

const whole = wholeNumber(0, Number.MAX_SAFE_INTEGER);

export const limitHeaders = {
  "X-RateLimit-Limit": { description: "burst size: calls that may be made at once", schema: whole },
  "X-RateLimit-Remaining": { description: "calls left of the burst", schema: whole },
  "X-RateLimit-Reset": {
    description: "seconds until the whole burst is available again",
    schema: whole,
  },
} as const;

const retryAfter = {
  "Retry-After": {
    description: "seconds to wait before the next call",
    schema: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  },
} as const;

const codes = [...new Set(reasons.map((reason) => errorTable[reason].jsonRpcCode))];

/** Reasons that HTTP callers can receive. */
const httpReasons = reasons.filter((reason) => errorTable[reason].httpStatus !== undefined);

/** `error` of a JSON-RPC response; an error of the node may have no data. */
export const jsonRpcError = schemaOf<object>({
  title: "JsonRpcError",
  type: "object",
  required: ["code", "message"],
  properties: {
    code: { type: "integer", enum: codes.filter((code) => code !== undefined) },
    message: { type: "string", description: "begins with the reason and a colon" },
    data: {
      type: "object",
      required: ["reason"],
      properties: { reason: enumOf(httpReasons) },
      description: "the reason, and further details",
    },
  },
  additionalProperties: false,
});

/** A refusal before the call was parsed; its id is unknown. */
const refusedCall = closed("RefusedCall", {
  jsonrpc: word("2.0"),
  error: jsonRpcError,
  id: anyJson,
});

const plainError = closed("Refusal", {
  error: closed("RefusalError", { reason: enumOf(httpReasons), message: string }),
});

const descriptions: Readonly<Record<number, string>> = {
  400: "invalid value",
  401: "missing or invalid API key",
  403: "API key lacks the scope",
  404: "not found",
  413: "request body too large",
  415: "compressed request body",
  426: "a WebSocket is expected",
  429: "rate limit exceeded, or service overloaded",
  503: "server is shutting down, or the database is unavailable",
};

export function answer(description: string, schema: JsonSchema, type = "application/json"): Answer {
  return { description, content: { type, schema } };
}

function refusals(statuses: readonly number[], schema: JsonSchema): Answers {
  const rows = statuses.map((status): [number, Answer] => {
    const headers = status === 429 || status === 503 ? { headers: retryAfter } : {};
    return [status, { ...answer(descriptions[status] ?? "refused", schema), ...headers }];
  });
  return Object.fromEntries(rows);
}

/** Refusals with a JSON-RPC body. */
export function jsonRpcRefusals(...statuses: readonly number[]): Answers {
  return refusals(statuses, refusedCall);
}

/** Refusals as {"error": {"reason", "message"}}; refusals before the path is known are JSON-RPC. */
export function plainRefusals(...statuses: readonly number[]): Answers {
  return refusals(statuses, { oneOf: [plainError, refusedCall] });
}
