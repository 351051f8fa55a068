// Errors: the reasons why a call can fail, with their codes.
//
// Each reason has one row in the table below: its text, its exit code, HTTP status and JSON-RPC
// code, and its details. A failed call throws ShredwayError; src/tools and the HTTP and JSON-RPC
// endpoints derive the response from the table. Invalid packets do not throw: they get a verdict.

interface ErrorRow {
  /**
   * A short description of the reason. The error's message adds the received and the expected
   * value.
   */
  readonly text: string;
  /** Exit code of a command that fails with this reason; default: 1. */
  readonly exitCode?: 2;
  /**
   * Status of an HTTP response that is not JSON-RPC; absent: the reason never reaches HTTP callers.
   */
  readonly httpStatus?: number;
  /** JSON-RPC error code; absent: the reason never reaches JSON-RPC callers. */
  readonly jsonRpcCode?: number;
}

const invalidParameters = { httpStatus: 400, jsonRpcCode: -32602 } as const;
const invalidRequest = { httpStatus: 400, jsonRpcCode: -32600 } as const;
const methodNotFound = { httpStatus: 404, jsonRpcCode: -32601 } as const;
const notReady = { httpStatus: 503, jsonRpcCode: -32005 } as const;
const cannotSubmit = { httpStatus: 503, jsonRpcCode: -32603 } as const;
const nodeFailure = { httpStatus: 502, jsonRpcCode: -32603 } as const;
const internalError = { httpStatus: 500, jsonRpcCode: -32603 } as const;

const table = {
  usage: { text: "invalid command line", exitCode: 2 },
  config_invalid: { text: "invalid configuration" },
  value_invalid: { text: "invalid value", ...invalidParameters },
  address_invalid: { text: "invalid address", ...invalidParameters },
  capture_invalid: { text: "unreadable capture file" },
  leaders_invalid: { text: "invalid leader schedule" },
  addon_missing: { text: "native addon failed to load" },
  addon_mismatch: { text: "native addon version mismatch" },
  relay_open: { text: "relay failed to open" },
  relay_closed: { text: "relay is closed" },
  table_refused: { text: "table rejected; the previous table stays in force" },
  unknown_tier: { text: "unknown tier" },
  watch_refused: { text: "signatures could not be watched" },
  rpc_failed: { text: "Solana node request failed", ...nodeFailure },
  stream_failed: { text: "decoded stream failed" },
  sender_open: { text: "paced sender failed to open" },
  http_open: { text: "HTTP server failed to listen" },
  quic_open: { text: "QUIC ingress failed to listen" },
  http_closing: { text: "server is shutting down", ...notReady },
  body_too_large: { text: "request body too large", httpStatus: 413, jsonRpcCode: -32600 },
  shred_refused: { text: "entries could not be encoded as shreds" },
  sandbox_missing: { text: "sandbox packages are not installed" },
  transaction_invalid: { text: "invalid transaction", ...invalidParameters },
  transaction_version: {
    text: "unsupported transaction version",
    httpStatus: 400,
    jsonRpcCode: -32015,
  },
  signature_invalid: {
    text: "signature verification failed",
    httpStatus: 400,
    jsonRpcCode: -32003,
  },
  queue_full: { text: "queue is full; retry later", ...notReady },
  json_invalid: {
    text: "invalid JSON, or nested too deeply",
    httpStatus: 400,
    jsonRpcCode: -32700,
  },
  request_invalid: { text: "invalid request", ...invalidRequest },
  method_unknown: { text: "unknown method", ...methodNotFound },
  preflight_failed: {
    text: "transaction simulation failed; not sent",
    httpStatus: 400,
    jsonRpcCode: -32002,
  },
  block_unavailable: { text: "block not available yet", httpStatus: 404, jsonRpcCode: -32004 },
  block_cleaned_up: { text: "block no longer retained", httpStatus: 404, jsonRpcCode: -32001 },
  slot_skipped: { text: "slot was skipped", httpStatus: 404, jsonRpcCode: -32007 },
  node_behind: { text: "node is behind the cluster", ...notReady },
  context_slot_ahead: {
    text: "minimum context slot not reached",
    httpStatus: 503,
    jsonRpcCode: -32016,
  },
  unauthorized: { text: "missing or invalid API key", httpStatus: 401, jsonRpcCode: -32600 },
  scope_missing: {
    text: "API key lacks the scope for this method",
    httpStatus: 403,
    jsonRpcCode: -32600,
  },
  rate_limited: { text: "rate limit exceeded", httpStatus: 429, jsonRpcCode: -32005 },
  overloaded: { text: "service overloaded; retry later", httpStatus: 429, jsonRpcCode: -32603 },
  no_route: { text: "no route available for the transaction", ...cannotSubmit },
  tip_missing: { text: "missing tip", ...invalidParameters },
  tip_too_low: { text: "tip below the minimum", ...invalidParameters },
  bundle_invalid: { text: "invalid bundle", ...invalidParameters },
  pair_invalid: { text: "invalid pair of durable-nonce transactions", ...invalidParameters },
  nonce_invalid: { text: "not a usable durable nonce account", ...invalidParameters },
  nonce_stale: { text: "durable nonce value has changed", ...invalidParameters },
  nonce_in_use: { text: "durable nonce is used by another pair", ...invalidParameters },
  nonce_unavailable: { text: "managed nonce accounts are not enabled", ...methodNotFound },
  nonce_pending: { text: "nonce account is being created; retry later", ...notReady },
  nonce_failed: { text: "nonce account creation failed", ...nodeFailure },
  co_signing_refused: {
    text: "the nonce authority may not sign this transaction",
    ...invalidParameters,
  },
  non_partner_slot: { text: "current leader is not an alternative partner", ...invalidParameters },
  priority_fee_too_low: { text: "priority fee below the minimum", ...invalidParameters },
  leader_unknown: { text: "unknown leader", httpStatus: 404 },
  contention_unknown: { text: "write locks of tip addresses are not known", ...notReady },
  batch_refused: { text: "batch rejected", ...invalidRequest },
  batch_failed: { text: "batch could not be sent", ...internalError },
  upstream_missing: { text: "no node is configured for this method", ...methodNotFound },
  store_failed: { text: "database operation failed", ...cannotSubmit },
  store_newer: { text: "database was written by a newer version" },
  key_unknown: { text: "unknown API key", httpStatus: 404 },
  public_key_unknown: { text: "unknown public key", httpStatus: 404, jsonRpcCode: -32602 },
  public_key_refused: { text: "public key cannot be registered", ...invalidParameters },
  receipt_unknown: { text: "unknown submission", httpStatus: 404, jsonRpcCode: -32602 },
  receipt_not_final: { text: "submission has no final state yet", ...invalidParameters },
  destination_unknown: { text: "unknown destination", httpStatus: 404, jsonRpcCode: -32602 },
  destination_refused: { text: "destination not available", ...invalidParameters },
  proof_refused: { text: "invalid ownership token", ...invalidParameters },
  registration_off: { text: "tip registration is not enabled", ...methodNotFound },
  http_method: { text: "HTTP method not allowed", httpStatus: 405, jsonRpcCode: -32600 },
  path_unknown: { text: "unknown path", httpStatus: 404, jsonRpcCode: -32600 },
  system: { text: "system call failed" },
  internal: { text: "internal error", ...internalError },
} as const satisfies Readonly<Record<string, ErrorRow>>;

/** A stable word for programs (`error.data.reason`, logs, `--json`). */
export type Reason = keyof typeof table;

/** A row contains only the differences from the default. A reason exists because it has a row. */
export const errorTable: Readonly<Record<Reason, ErrorRow>> = table;

const isReason = (word: string): word is Reason => Object.hasOwn(table, word);

/** Every reason, in the order of the table. */
export const reasons: readonly Reason[] = Object.keys(table).filter(isReason);

// ---- details --------------------------------------------------------------------------------

/** The violated rule of a transaction, and the byte offset of the violation. */
interface TransactionFault {
  readonly refusal: string;
  readonly offset: number;
}

interface TipShortfall {
  readonly tipLamports: bigint;
  readonly minimumLamports: bigint;
}

interface RetryAfter {
  readonly retryAfterSeconds: number;
}

/** The one transaction of a list that the error concerns. */
interface TransactionIndex {
  readonly index: number;
}

/** One transaction of a batch, and its error. */
interface BatchFailure extends TransactionIndex {
  readonly cause: Reason;
  readonly detail: string;
}

/**
 * Machine-readable details in addition to the message; JSON-RPC callers receive them in `error.data`.
 * Errors of a reason with a required key always have these details; with an optional key, some
 * errors do; all others never do.
 */
export interface ErrorDetails {
  config_invalid?: { readonly path: string; readonly problems: number };
  capture_invalid?: { readonly file: string; readonly offset: number };
  /** The JSON-RPC code of the node's error. */
  rpc_failed?: { readonly code: number };
  http_open?: { readonly address: string };
  transaction_invalid?: TransactionFault;
  /** `version`: only from the sandbox, whose caller requested older versions only. */
  transaction_version?: TransactionFault | { readonly version: "legacy" | number };
  signature_invalid?: TransactionIndex;
  /** The result of the simulation, as the node's simulateTransaction returns it. */
  preflight_failed: { readonly err: unknown; readonly logs?: unknown };
  node_behind: { readonly numSlotsBehind: null } | { readonly slot: bigint };
  context_slot_ahead: { readonly contextSlot: bigint };
  /** `limit`: the burst size of the key. */
  rate_limited?: RetryAfter & { readonly limit?: number };
  overloaded?: RetryAfter;
  tip_missing?: TipShortfall;
  tip_too_low?: TipShortfall;
  bundle_invalid?: TransactionIndex;
  pair_invalid?: TransactionIndex;
  nonce_stale?: { readonly expected: string; readonly got: string };
  nonce_pending?: RetryAfter;
  contention_unknown?: RetryAfter;
  co_signing_refused?: TransactionFault;
  priority_fee_too_low?: {
    readonly minimumLamportsPerUnit: bigint;
    readonly computeUnitLimit: number;
    readonly priorityFeeLamports: bigint;
    /** Absent in version 1, which has only a total fee. */
    readonly computeUnitPrice?: bigint;
  };
  batch_refused:
    | { readonly size: number; readonly max: number }
    | { readonly signature: string }
    | BatchFailure;
  batch_failed: { readonly failed: readonly BatchFailure[]; readonly sent: readonly string[] };
  /** `code`: the database's own, or "UNKNOWN" if the result of the commit is unknown. */
  store_failed?:
    | { readonly code: string; readonly path?: string; readonly database?: string }
    | { readonly code: "UNFINISHED"; readonly mark: number }
    | { readonly node: string };
  store_newer: { readonly version: number; readonly newest: number };
}

/** Does not compile if ErrorDetails contains a reason without a row. */
type Known<R extends Reason> = R;
type DetailedReason = Known<keyof ErrorDetails>;

/** Type of `details` of an error with this reason; undefined: no details. */
type DetailsOf<R extends Reason> = R extends DetailedReason ? ErrorDetails[R] : undefined;

/** Arguments of an error whose reason has details; some or all of its errors include them. */
type DetailedArguments = {
  [R in DetailedReason]-?: undefined extends ErrorDetails[R]
    ? [reason: R, message: string, options?: ErrorOptions & { details?: NonNullable<DetailsOf<R>> }]
    : [reason: R, message: string, options: ErrorOptions & { details: DetailsOf<R> }];
}[DetailedReason];

/** A reason whose errors need no details. */
export type PlainReason =
  | Exclude<Reason, DetailedReason>
  | { [R in DetailedReason]-?: undefined extends ErrorDetails[R] ? R : never }[DetailedReason];

type ErrorArguments =
  | [reason: PlainReason, message: string, options?: ErrorOptions & { details?: never }]
  | DetailedArguments;

// ---- the error ------------------------------------------------------------------------------

/**
 * A failed call: a reason from the table and a message with the expected and the received value.
 */
export class ShredwayError extends Error {
  override readonly name = "ShredwayError";
  readonly reason: Reason;
  /** The type depends on the reason, after a check by isShredwayError. */
  readonly details: DetailsOf<Reason>;

  constructor(...[reason, message, options = {}]: ErrorArguments) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.details = options.details;
  }

  get row(): ErrorRow {
    return errorTable[this.reason];
  }
}

interface ErrorOf<R extends Reason> extends Omit<ShredwayError, "reason" | "details"> {
  readonly reason: R;
  readonly details: DetailsOf<R>;
}

/** Narrows an unknown error to one with this reason and its details. */
export function isShredwayError<R extends Reason>(
  thrown: unknown,
  reason: R,
): thrown is ErrorOf<R> {
  return thrown instanceof ShredwayError && thrown.reason === reason;
}

/**
 * Returns `cause` with another message; reason and details are unchanged. With `place`, the details
 * say which transaction of a list the error concerns.
 */
export function reworded(
  cause: ShredwayError,
  message: string,
  place?: TransactionIndex,
): ShredwayError {
  const { reason } = cause;
  const details = place ? { ...cause.details, ...place } : cause.details;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both come from one error
  return new ShredwayError(...([reason, message, { cause, details }] as ErrorArguments));
}

/** The code of a database error; undefined: it is another error, or it has no code. */
export function storeCodeOf(thrown: unknown): string | undefined {
  if (!isShredwayError(thrown, "store_failed")) return undefined;
  return thrown.details && "code" in thrown.details ? thrown.details.code : undefined;
}

/** Seconds after which the caller may retry; undefined: the error does not say. */
export function retryAfterOf(thrown: unknown): number | undefined {
  if (!(thrown instanceof ShredwayError) || thrown.details === undefined) return undefined;
  return "retryAfterSeconds" in thrown.details ? thrown.details.retryAfterSeconds : undefined;
}

/**
 * The text of an unknown error, for messages that quote a cause. An error of several addresses of one host has
 * no text of its own, but one of each address.
 */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.message !== "" || !(thrown instanceof AggregateError)) return thrown.message;
  const errors: readonly unknown[] = thrown.errors;
  return [...new Set(errors.map(messageOf))].join("; ");
}

/** The code of an unknown error, such as "ECONNRESET"; empty: it has none. */
export function codeOf(thrown: unknown): string {
  const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? thrown.code : "";
  return typeof code === "string" ? code : "";
}

/** Characters that JSON leaves as they are, and terminals obey or do not show. */
const hiddenCharacters = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/**
 * Quotes `value` for a message: on one line, shortened if it is long, and without characters that a terminal
 * obeys, such as marks that reverse the direction of text.
 */
export function quote(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "bigint" || typeof value === "number") return String(value);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    text = undefined; // values with cycles or bigints: only their type is shown
  }
  text = (text ?? typeof value).replaceAll(hiddenCharacters, escaped);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
