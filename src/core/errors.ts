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
  "sender_open",
  "shred_refused",
  "system",
  "internal",
] as const;
export type Reason = (typeof reasons)[number];

export interface ErrorRow {
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
  sender_open: { text: "the paced sender could not be opened", exitCode: 1 },
  shred_refused: { text: "entries could not be made into shreds", exitCode: 1 },
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
