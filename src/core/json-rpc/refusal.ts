// JSON-RPC error objects for rejected calls.
//
// ShredwayErrors are converted by the table in core/errors.ts; their details become `error.data`.
// For an internal error the caller gets only a reference; the text is logged.

import { type Reason, ShredwayError } from "../errors.ts";
import { type JsonRpcCode, jsonRpcCodes } from "./codes.ts";
import { isJsonObject } from "./json-text.ts";

interface JsonRpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** A node's error object. The caller receives its code and data, and its message after the prefix. */
export class ForwardedError extends ShredwayError {
  readonly error: JsonRpcErrorObject & { readonly code: JsonRpcCode };

  constructor(error: ForwardedError["error"]) {
    super("rpc_failed", error.message);
    this.error = error;
  }
}

/** Logs an internal error. Returns a reference by which the operator finds it in the log. */
export type ReportFault = (thrown: unknown) => string;

export interface RefusalOptions {
  readonly report: ReportFault;
  /** Prefix of `error.message`; default: none. */
  readonly prefixOf?: (reason: Reason) => string;
}

/** "internal" for every error without a code for callers. */
export function reasonOf(thrown: unknown): Reason {
  const mayLeave = thrown instanceof ShredwayError && thrown.row.jsonRpcCode !== undefined;
  return mayLeave ? thrown.reason : "internal";
}

/** Data that is not an object stays as it is. */
function forwarded(
  { error, reason }: ForwardedError,
  prefixOf: RefusalOptions["prefixOf"],
): JsonRpcErrorObject {
  if (prefixOf === undefined) return error;
  const { data } = error;
  const isOpen = data === undefined || data === null || isJsonObject(data);
  return {
    ...error,
    message: `${prefixOf(reason)}${error.message}`,
    ...(isOpen && { data: { ...data, reason } }),
  };
}

export function errorObjectOf(
  thrown: unknown,
  { report, prefixOf }: RefusalOptions,
): JsonRpcErrorObject {
  if (thrown instanceof ForwardedError) return forwarded(thrown, prefixOf);
  const code = thrown instanceof ShredwayError ? thrown.row.jsonRpcCode : undefined;
  if (!(thrown instanceof ShredwayError) || code === undefined || thrown.reason === "internal") {
    const reference = report(thrown);
    const prefix = prefixOf?.("internal") ?? "";
    return {
      code: jsonRpcCodes.internalError,
      message: `${prefix}Internal error, reference ${reference}`,
      data: { reason: "internal", reference },
    };
  }
  // The node's address and its network errors are for the operator only: they are in the log.
  const isInner = prefixOf !== undefined && thrown.reason === "rpc_failed";
  const message = isInner
    ? "the Solana node behind this service did not return a valid answer; retry later"
    : thrown.message;
  return {
    code,
    message: `${prefixOf?.(thrown.reason) ?? ""}${message}`,
    data: { ...thrown.details, reason: thrown.reason },
  };
}
