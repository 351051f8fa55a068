// Errors: what can go wrong with a call, and what the caller is told.
//
// Answers: "which reason is this, and which exit code, HTTP status and JSON-RPC code belong to it?"
// Everything that refuses a call throws ShredwayError; main and the adapters translate by the one
// table below. Packets never raise errors: they end in a verdict.

/** Every reason, as programs read it (`error.data.reason`, logs, `--json`). Stable words. */
export const reasons = [
  "usage",
  "config_invalid",
  "value_invalid",
  "address_invalid",
  "capture_invalid",
  "leaders_invalid",
  "addon_missing",
  "addon_mismatch",
  "relay_open",
  "relay_closed",
  "table_refused",
  "unknown_tier",
  "watch_refused",
  "rpc_failed",
  "sender_open",
  "http_open",
  "http_closing",
  "body_too_large",
  "shred_refused",
  "sandbox_missing",
  "transaction_invalid",
  "transaction_version",
  "signature_invalid",
  "queue_full",
  "json_invalid",
  "request_invalid",
  "method_unknown",
  "preflight_failed",
  "block_unavailable",
  "block_cleaned_up",
  "slot_skipped",
  "node_behind",
  "context_slot_ahead",
  "unauthorized",
  "scope_missing",
  "rate_limited",
  "overloaded",
  "no_route",
  "tip_missing",
  "tip_too_low",
  "bundle_invalid",
  "pair_invalid",
  "nonce_invalid",
  "nonce_stale",
  "nonce_in_use",
  "nonce_unavailable",
  "nonce_pending",
  "nonce_failed",
  "co_signing_refused",
  "non_partner_slot",
  "priority_fee_too_low",
  "leader_unknown",
  "batch_refused",
  "batch_failed",
  "upstream_missing",
  "store_failed",
  "store_newer",
  "key_unknown",
  "destination_unknown",
  "destination_refused",
  "proof_refused",
  "registration_off",
  "http_method",
  "path_unknown",
  "system",
  "internal",
] as const;
export type Reason = (typeof reasons)[number];

interface ErrorRow {
  /** One sentence for people; the message of the error says what was expected and what came. */
  readonly text: string;
  /** Of the command that ends with this error: 1 failed, 2 wrong usage. */
  readonly exitCode: 1 | 2;
  /** Of an HTTP answer that is no JSON-RPC; absent: cannot reach a caller over HTTP. */
  readonly httpStatus?: number;
  /** Absent: cannot reach a caller by JSON-RPC. */
  readonly jsonRpcCode?: number;
}

const invalidParameters = { httpStatus: 400, jsonRpcCode: -32602 } as const;

/** The one table. A reason without a row does not compile. */
export const errorTable: Readonly<Record<Reason, ErrorRow>> = {
  usage: { text: "wrong use of a command", exitCode: 2 },
  config_invalid: { text: "the configuration was refused", exitCode: 1 },
  value_invalid: { text: "a value is not of its kind", exitCode: 1, ...invalidParameters },
  address_invalid: { text: "an address was refused", exitCode: 1, ...invalidParameters },
  capture_invalid: { text: "a capture file cannot be read", exitCode: 1 },
  leaders_invalid: { text: "the leader schedule was refused", exitCode: 1 },
  addon_missing: { text: "the native addon could not be loaded", exitCode: 1 },
  addon_mismatch: { text: "the native addon is of another version", exitCode: 1 },
  relay_open: { text: "the relay could not be opened", exitCode: 1 },
  relay_closed: { text: "the relay is closed already", exitCode: 1 },
  table_refused: { text: "a table was refused; the one before stays in force", exitCode: 1 },
  unknown_tier: { text: "a tier is not configured", exitCode: 1 },
  watch_refused: { text: "signatures could not be watched", exitCode: 1 },
  rpc_failed: {
    text: "a Solana node did not answer as expected",
    exitCode: 1,
    httpStatus: 502,
    jsonRpcCode: -32603,
  },
  sender_open: { text: "the paced sender could not be opened", exitCode: 1 },
  http_open: { text: "the HTTP server could not listen", exitCode: 1 },
  http_closing: {
    text: "the server is closing",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32005,
  },
  body_too_large: {
    text: "a body is too large",
    exitCode: 1,
    httpStatus: 413,
    jsonRpcCode: -32600,
  },
  shred_refused: { text: "entries could not be made into shreds", exitCode: 1 },
  sandbox_missing: { text: "the packages of the sandbox are not installed", exitCode: 1 },
  transaction_invalid: {
    text: "the bytes are no transaction",
    exitCode: 1,
    ...invalidParameters,
  },
  transaction_version: {
    text: "a transaction of an unknown version",
    exitCode: 1,
    httpStatus: 400,
    jsonRpcCode: -32015,
  },
  signature_invalid: {
    text: "a signature does not hold",
    exitCode: 1,
    httpStatus: 400,
    jsonRpcCode: -32003,
  },
  queue_full: {
    text: "a queue is full; try again later",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32005,
  },
  json_invalid: {
    text: "the text is no JSON, or nested too deeply",
    exitCode: 1,
    httpStatus: 400,
    jsonRpcCode: -32700,
  },
  request_invalid: {
    text: "the JSON is no request",
    exitCode: 1,
    httpStatus: 400,
    jsonRpcCode: -32600,
  },
  method_unknown: { text: "no such method", exitCode: 1, httpStatus: 404, jsonRpcCode: -32601 },
  preflight_failed: {
    text: "the transaction failed in its simulation and was not sent",
    exitCode: 1,
    httpStatus: 400,
    jsonRpcCode: -32002,
  },
  block_unavailable: {
    text: "there is no such block yet",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32004,
  },
  block_cleaned_up: {
    text: "the block is older than what is kept",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32001,
  },
  slot_skipped: {
    text: "the slot passed without a block",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32007,
  },
  node_behind: {
    text: "the node is behind the cluster",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32005,
  },
  context_slot_ahead: {
    text: "the node has not reached the slot that was asked for",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32016,
  },
  unauthorized: {
    text: "no valid API key came with the request",
    exitCode: 1,
    httpStatus: 401,
    jsonRpcCode: -32600,
  },
  scope_missing: {
    text: "the API key is not made for this method",
    exitCode: 1,
    httpStatus: 403,
    jsonRpcCode: -32600,
  },
  rate_limited: {
    text: "more calls than the limit allows",
    exitCode: 1,
    httpStatus: 429,
    jsonRpcCode: -32005,
  },
  overloaded: {
    text: "the service has no room for more at present; try again later",
    exitCode: 1,
    httpStatus: 429,
    jsonRpcCode: -32603,
  },
  no_route: {
    text: "no route takes the transaction at present",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32603,
  },
  tip_missing: { text: "the transaction pays no tip", exitCode: 1, ...invalidParameters },
  tip_too_low: { text: "the tip is below the minimum", exitCode: 1, ...invalidParameters },
  bundle_invalid: { text: "the transactions are no bundle", exitCode: 1, ...invalidParameters },
  pair_invalid: {
    text: "the transactions are no pair of one durable nonce",
    exitCode: 1,
    ...invalidParameters,
  },
  nonce_invalid: {
    text: "the account is no durable nonce that can be used",
    exitCode: 1,
    ...invalidParameters,
  },
  nonce_stale: {
    text: "the durable nonce has another value by now",
    exitCode: 1,
    ...invalidParameters,
  },
  nonce_in_use: {
    text: "another pair of this durable nonce is under way",
    exitCode: 1,
    ...invalidParameters,
  },
  nonce_unavailable: {
    text: "nonce accounts are not managed here",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32601,
  },
  nonce_pending: {
    text: "the nonce account is being made; ask again",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32005,
  },
  nonce_failed: {
    text: "the nonce account could not be made",
    exitCode: 1,
    httpStatus: 502,
    jsonRpcCode: -32603,
  },
  co_signing_refused: {
    text: "the transaction is none that the nonce's authority signs",
    exitCode: 1,
    ...invalidParameters,
  },
  non_partner_slot: {
    text: "no alternative partner leads at present",
    exitCode: 1,
    ...invalidParameters,
  },
  priority_fee_too_low: {
    text: "the priority fee is below the minimum",
    exitCode: 1,
    ...invalidParameters,
  },
  leader_unknown: { text: "no such leader is known", exitCode: 1, httpStatus: 404 },
  batch_refused: {
    text: "the batch was refused",
    exitCode: 1,
    httpStatus: 400,
    jsonRpcCode: -32600,
  },
  batch_failed: {
    text: "the batch could not be sent",
    exitCode: 1,
    httpStatus: 500,
    jsonRpcCode: -32603,
  },
  upstream_missing: {
    text: "no node is configured that could answer",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32601,
  },
  store_failed: {
    text: "the store could not read or keep something",
    exitCode: 1,
    httpStatus: 503,
    jsonRpcCode: -32603,
  },
  store_newer: { text: "the store was written by a newer version", exitCode: 1 },
  key_unknown: { text: "no such API key", exitCode: 1, httpStatus: 404 },
  destination_unknown: {
    text: "no such destination of this account",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32602,
  },
  destination_refused: {
    text: "the destination cannot be had",
    exitCode: 1,
    ...invalidParameters,
  },
  proof_refused: {
    text: "the token proves nothing",
    exitCode: 1,
    ...invalidParameters,
  },
  registration_off: {
    text: "tips for shreds are not registered here",
    exitCode: 1,
    httpStatus: 404,
    jsonRpcCode: -32601,
  },
  http_method: {
    text: "the path takes another HTTP method",
    exitCode: 1,
    httpStatus: 405,
    jsonRpcCode: -32600,
  },
  path_unknown: { text: "no such path", exitCode: 1, httpStatus: 404, jsonRpcCode: -32600 },
  system: { text: "the operating system refused a call", exitCode: 1 },
  internal: { text: "a fault of the program", exitCode: 1, httpStatus: 500, jsonRpcCode: -32603 },
};

/** Facts for programs beside the message, e.g. `{ offset: 24 }`. */
export type ErrorDetails = Readonly<Record<string, string | number | bigint | boolean | null>>;

/** A refused call: a reason from the table and a message that says what was expected and what came. */
export class ShredwayError extends Error {
  override readonly name = "ShredwayError";
  readonly reason: Reason;
  readonly details: ErrorDetails;

  constructor(
    reason: Reason,
    message: string,
    options: { cause?: unknown; details?: ErrorDetails } = {},
  ) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.details = options.details ?? {};
  }

  get row(): ErrorRow {
    return errorTable[this.reason];
  }
}

/** The text of anything thrown, for messages that quote a cause. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** `value` as a message quotes it: short, on one line, never the whole of something large. */
export function quote(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined; // cycles, bigint inside: the type is all that can be said
  }
  text ??= typeof value;
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
